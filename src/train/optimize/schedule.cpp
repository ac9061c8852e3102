#include "train/optimize/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "base/split.h"

namespace linnet {
namespace {

using Config = ScheduleConfig;
using Span = RateSpan;

/// 0 at the end of the warm-up, 1 at the end of the run.
double done(const Config& c, const Span& s, double now) {
    auto warmup = static_cast<double>(c.warmup);
    return std::min(1.0, (now - warmup) / std::max(1.0, s.steps - warmup));
}

double cosine(const Config& c, const Span& s, double floor, double now) {
    return floor + (s.peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done(c, s, now)));
}
double linear(const Config& c, const Span& s, double floor, double now) {
    return floor + (s.peak - floor) * (1 - done(c, s, now));
}
double constant(const Config&, const Span& s, double, double) {
    return s.peak;
}
// Vaswani et al. 2017, section 5.3, scaled so that the peak is the rate asked for.
double inverse_sqrt(const Config& c, const Span& s, double floor, double now) {
    return std::max(floor, s.peak * std::sqrt((static_cast<double>(c.warmup) + 1) / (now + 1)));
}
// The same section's own formula: lr · width^-½ · min(t^-½, t · warmup^-3/2), t counted from 1.
double noam(const Config& c, const Span& s, double, double now) {
    double t = now + 1, warmup = std::max(1.0, static_cast<double>(c.warmup));
    return s.peak / std::sqrt(s.width) * std::min(1 / std::sqrt(t), t / std::pow(warmup, 1.5));
}
// Hu et al. 2024 (MiniCPM), section 4: constant, then straight down. Until the decay begins a step does not
// depend on how many there will be, so the end may still be moved.
double wsd(const Config& c, const Span& s, double floor, double now) {
    double begin = decay_begin(c, s.steps);
    if (now < begin) return s.peak;
    return floor + (s.peak - floor) * std::max(0.0, (s.steps - now) / std::max(1.0, s.steps - begin));
}

constexpr ScheduleKind kinds[] = {
    {"cosine", false, true, true, cosine},       {"linear", false, true, true, linear},
    {"constant", false, false, false, constant}, {"inverse-sqrt", false, false, true, inverse_sqrt},
    {"noam", true, false, false, noam},          {"wsd", false, false, true, wsd},
};

}  // namespace

std::span<const ScheduleKind> schedule_kinds() {
    return kinds;
}

std::vector<std::string> schedule_names() {
    return names_of(kinds);
}

const ScheduleKind& schedule_kind(std::string_view name) {
    for (const ScheduleKind& kind : kinds)
        if (kind.name == name) return kind;
    throw std::logic_error("a schedule without a row in the table");
}

double scheduled_rate(const ScheduleConfig& c, const RateSpan& span, std::int64_t step) {
    const ScheduleKind& kind = schedule_kind(c.kind);
    auto warmup = static_cast<double>(c.warmup), now = static_cast<double>(step);
    if (!kind.own_warmup && now < warmup) return span.peak * (now + 1) / (warmup + 1);
    return kind.rate(c, span, std::min(c.min_lr, span.peak), now);
}

double largest_rate(const ScheduleConfig& c, const RateSpan& span) {
    if (!schedule_kind(c.kind).own_warmup) return span.peak;
    return scheduled_rate(c, span, std::max<std::int64_t>(0, c.warmup - 1));  // where its warm-up ends
}

double decay_begin(const ScheduleConfig& c, double steps) {
    return steps * (1 - c.decay);
}

}  // namespace linnet
