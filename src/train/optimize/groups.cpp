#include "train/optimize/groups.h"

#include "base/error.h"
#include "base/nearest.h"
#include "model/name_pattern.h"
#include "train/optimize/optimizers.h"

namespace linnet {

using nlohmann::json;

namespace {

void check_optimizer(const OptimizerConfig& c, std::string_view file, const std::string& place) {
    const OptimizerKind& kind = optimizer_kind(c.kind);
    const std::string name(kind.name);
    if (c.momentum_warmup > 0 && !kind.has_momentum)
        fail_input(file, place + "momentum_warmup", "0, as " + name + " has no momentum",
                   std::to_string(c.momentum_warmup));
    if (c.cautious_decay && kind.coupled_decay)
        fail_input(file, place + "cautious_decay",
                   "false, as " + name + " adds its weight decay to the gradient", "true");
}

/// What a group's kind lacks is not inherited: only where its own entry asks for it is it refused.
void leave_out(const json& entry, OptimizerConfig& c) {
    const OptimizerKind& kind = optimizer_kind(c.kind);
    if (!kind.has_momentum && !entry.contains("momentum_warmup")) c.momentum_warmup = 0;
    if (kind.coupled_decay && !entry.contains("cautious_decay")) c.cautious_decay = false;
}

std::vector<Field> optimizer_rows(OptimizerConfig& o, const std::string& p) {
    return {
        {p + "kind", &o.kind, "optimizer", 0, 0, optimizer_names()},
        {p + "lr", &o.lr, "peak learning rate", 0, 100},
        {p + "beta1", &o.beta1, "decay of the mean of gradients", 0, 0.9999999},
        {p + "beta2", &o.beta2, "decay of the mean of their squares", 0, 0.9999999},
        {p + "epsilon", &o.epsilon, "added to the root of that mean", 1e-30, 1},
        {p + "weight_decay", &o.weight_decay, "on matrices only", 0, 10},
        later(p + "momentum", &o.momentum, "of sgd and muon", 0, 0.9999999),
        later(p + "nesterov", &o.nesterov, "sgd and muon: Nesterov momentum"),
        later(p + "momentum_warmup", &o.momentum_warmup, "steps in which momentum rises; 0: none", 0, 1e12),
        later(p + "momentum_start", &o.momentum_start, "where it begins to rise", 0, 0.9999999),
        later(p + "cautious_decay", &o.cautious_decay,
              "weight decay only where update and parameter have the same sign"),
        later(p + "scaled_decay", &o.scaled_decay, "weight decay follows the schedule, too"),
    };
}

}  // namespace

double group_rate(const ParameterGroup& group, RateSpan span, std::int64_t step) {
    span.peak = group.optimizer.lr;
    return scheduled_rate(group.schedule, span, step);
}

double group_rate_share(const ParameterGroup& group, RateSpan span, std::int64_t step) {
    span.peak = group.optimizer.lr;
    const double largest = largest_rate(group.schedule, span);
    return largest > 0 ? scheduled_rate(group.schedule, span, step) / largest : 1;
}

std::vector<Field> optimizer_fields(OptimizerConfig& o, const std::string& prefix) {
    OptimizerConfig defaults;
    std::vector<Field> fields = optimizer_rows(o, prefix);
    take_defaults(fields, optimizer_rows(defaults, prefix));
    return fields;
}

std::vector<Field> schedule_fields(ScheduleConfig& s, const std::string& p) {
    return {
        {p + "kind", &s.kind, "learning-rate schedule", 0, 0, schedule_names()},
        {p + "warmup", &s.warmup, "steps in which the learning rate rises", 0, 1e12},
        {p + "min_lr", &s.min_lr, "lowest learning rate, of kinds that fall to one", 0, 100},
        {p + "decay", &s.decay, "wsd: share of the steps, at the end, in which the rate falls", 0, 1},
    };
}

std::vector<ParameterGroup> parameter_groups(const OptimizerConfig& optimizer, const ScheduleConfig& schedule,
                                             const json& groups, std::string_view file) {
    std::vector<ParameterGroup> all;
    all.reserve(groups.size() + 1);  // the fields point into it
    all.push_back({{}, optimizer, schedule});
    check_optimizer(optimizer, file, "train.optimizer.");
    if (!groups.is_array()) fail_input(file, "train.groups", "a list of objects", groups.type_name());
    for (const json& entry : groups) {
        const std::string place = "train.groups[" + std::to_string(all.size() - 1) + "]";
        if (!entry.is_object()) fail_input(file, place, "an object", entry.type_name());
        ParameterGroup& group = all.emplace_back(all.front());
        std::vector<Field> fields = optimizer_fields(group.optimizer, place + ".");
        for (Field& field : schedule_fields(group.schedule, place + ".schedule."))
            fields.push_back(std::move(field));
        fields.push_back({place + ".match", &group.match, "patterns of parameters' names"});
        apply_json(fields, entry, file, place);
        if (!entry.contains("match"))
            fail_input(file, place + ".match", "a pattern of parameters' names, as blk.*.attn_q.weight",
                       "none");
        leave_out(entry, group.optimizer);
        check_optimizer(group.optimizer, file, place + ".");
    }
    return all;
}

std::string rate_that_stays(const std::vector<ParameterGroup>& groups) {
    for (std::size_t g = 0; g < groups.size(); g++) {
        const auto& [match, optimizer, schedule] = groups[g];
        // A rate of 0 is to stay so.
        if (!schedule_kind(schedule.kind).to_floor || optimizer.lr == 0 || schedule.min_lr < optimizer.lr)
            continue;
        const std::string place = g == 0 ? "train." : "train.groups[" + std::to_string(g - 1) + "].";
        return place + (g == 0 ? "optimizer.lr " : "lr ") + json(optimizer.lr).dump() +
               " stays constant: " + place + "schedule.min_lr, to which kind " + schedule.kind +
               " falls, is " + json(schedule.min_lr).dump();
    }
    return {};
}

std::vector<std::size_t> assign_groups(const std::vector<ParameterGroup>& groups, const Graph& graph,
                                       std::string_view file) {
    const std::vector<Parameter>& parameters = graph.parameters();
    std::vector<std::size_t> assigned(parameters.size(), 0);
    for (std::size_t g = 1; g < groups.size(); g++)
        for (const std::string& pattern : groups[g].match.list()) {
            bool used = false;
            for (std::size_t i = 0; i < parameters.size(); i++) {
                if (!matches(pattern, parameters[i].name)) continue;
                assigned[i] = g, used = true;
            }
            if (used) continue;
            std::vector<std::string> names;
            for (const Parameter& p : parameters) names.push_back(p.name);
            fail_input(file, "train.groups[" + std::to_string(g - 1) + "].match",
                       "a pattern that a parameter's name matches",
                       pattern.empty() ? "an empty one" : pattern, did_you_mean(pattern, names));
        }
    return assigned;
}

}  // namespace linnet
