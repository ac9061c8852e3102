// Learning rates by step: a table of schedules.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/optimize/settings.h"

namespace linnet {

/// What a rate depends on besides the step.
struct RateSpan {
    double peak = 0;   // train.optimizer.lr
    double steps = 0;  // of the run
    double width = 1;  // of the model, for noam
};

/// A schedule after its warm-up, or with one of its own.
struct ScheduleKind {
    std::string_view name;
    bool own_warmup;  // else the rate rises in a straight line over `warmup` steps first
    bool to_the_end;  // depends on how many steps there will be from the first one on
    bool to_floor;    // falls from the peak, to min_lr at least
    /// Of step `now` (0-based; after the warm-up unless own_warmup). `floor`: min_lr, at most the peak.
    double (*rate)(const ScheduleConfig&, const RateSpan&, double floor, double now);
};

std::span<const ScheduleKind> schedule_kinds();
std::vector<std::string> schedule_names();
/// `name` must be one of the table's.
const ScheduleKind& schedule_kind(std::string_view name);

/// The learning rate of optimizer step `step` (0-based).
double scheduled_rate(const ScheduleConfig& config, const RateSpan& span, std::int64_t step);

/// The largest that it comes to: the peak, but for noam, whose lr is a factor.
double largest_rate(const ScheduleConfig& config, const RateSpan& span);

/// The step from which a schedule of kind wsd decays.
double decay_begin(const ScheduleConfig& config, double steps);

}  // namespace linnet
