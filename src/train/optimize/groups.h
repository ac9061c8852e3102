// Parameter groups: other rates, decays, schedules or optimizers for parameters whose names match a pattern.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "graph/graph.h"
#include "train/optimize/schedule.h"
#include "train/optimize/settings.h"

namespace linnet {

/// The run's own settings, with what an entry of train.groups changes.
struct ParameterGroup {
    Repeating<std::string> match;  // patterns: * stands for any characters
    OptimizerConfig optimizer;
    ScheduleConfig schedule;
};

/// The learning rate of a group at step `step` (0-based); the span's peak is its own.
double group_rate(const ParameterGroup& group, RateSpan span, std::int64_t step);
/// The same as a share of the largest that its schedule comes to; 1 where that is 0.
double group_rate_share(const ParameterGroup& group, RateSpan span, std::int64_t step);

/// The fields of OptimizerConfig and ScheduleConfig, their keys beginning with `optimizer` and `schedule`
/// (each with its dot; may be empty).
std::vector<Field> optimizer_fields(OptimizerConfig& config, const std::string& prefix);
std::vector<Field> schedule_fields(ScheduleConfig& config, const std::string& prefix);

/// The run's own settings first (which match everything), then the entries of `groups` in order: each with
/// the run's settings but for those that it changes and those that its kind of optimizer lacks.
/// Error(Exit::input) for what contradicts itself, naming `file` and the place.
std::vector<ParameterGroup> parameter_groups(const OptimizerConfig& optimizer, const ScheduleConfig& schedule,
                                             const nlohmann::json& groups, std::string_view file);

/// What to say of the first learning rate that does not fall, as min_lr is no less, though its schedule is of
/// a kind that falls; empty: there is none.
std::string rate_that_stays(const std::vector<ParameterGroup>& groups);

/// The group of each of the graph's parameters: the last entry that matches its name, else 0.
/// Error(Exit::input) where a pattern matches none.
std::vector<std::size_t> assign_groups(const std::vector<ParameterGroup>& groups, const Graph& graph,
                                       std::string_view file);

}  // namespace linnet
