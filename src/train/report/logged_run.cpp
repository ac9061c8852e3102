#include "train/report/logged_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fields.h"

namespace linnet {
namespace {

/// A default run follows the clock, a resumed one may be given another end: the config is shown as it is now.
void set_steps(LogRecord& start, const LogRecord& record) {
    const LogRecord::json_pointer steps("/config/train/steps");
    const auto now = record.find("steps");
    if (now != record.end() && start.contains(steps)) start[steps] = *now;
}

StepRecord step_record(const LogRecord& record) {
    StepRecord step;
    for (std::size_t i = 0; i < step.keys.size(); i++) step.values[i] = number_of(record, step.keys[i]);
    const auto rates = record.find("group_lr");
    if (rates == record.end() || !rates->is_array()) return step;
    for (const LogRecord& rate : *rates)
        if (step.group_rates.size() < step.most_groups)
            step.group_rates.push_back(rate.is_number() ? rate.get<double>() : NAN);
    return step;
}

/// `b` becomes the mean of both, as far as they are numbers.
void take_mean(double a, double& b) {
    b = !std::isfinite(a) ? b : !std::isfinite(b) ? a : (a + b) / 2;
}

/// Neighbours become one, at the later one's place.
void merge_neighbours(std::map<std::int64_t, StepRecord>& steps) {
    for (auto first = steps.begin(); first != steps.end();) {
        const auto second = std::next(first);
        if (second == steps.end()) break;
        const StepRecord& a = first->second;
        StepRecord& b = second->second;
        for (std::size_t i = 0; i < StepRecord::keys.size(); i++) take_mean(a.values[i], b.values[i]);
        for (std::size_t i = 0; i < std::min(a.group_rates.size(), b.group_rates.size()); i++)
            take_mean(a.group_rates[i], b.group_rates[i]);
        steps.erase(first);
        first = std::next(second);
    }
}

/// Every second record goes, but for `kept`.
void drop_every_second(std::map<std::int64_t, LogRecord>& records, const LogRecord* kept) {
    for (auto at = records.begin(); at != records.end();) {
        const auto next = std::next(at);
        if (&at->second != kept) records.erase(at);
        at = next == records.end() ? next : std::next(next);
    }
}

/// The records of an event that has a map of them; null for others.
std::map<std::int64_t, LogRecord>* records_of(LoggedRun& run, std::string_view event) {
    return event == "eval"      ? &run.evals
           : event == "sample"  ? &run.samples
           : event == "experts" ? &run.experts
           : event == "blocks"  ? &run.blocks
                                : nullptr;
}

void resume(LoggedRun& run, std::int64_t step, const LogRecord& record) {
    set_steps(run.start, record);
    run.resumes++;
    run.end = LogRecord::object();
    if (number_of(run.confusion, "step") > static_cast<double>(step)) run.confusion = LogRecord::object();
    run.steps.erase(run.steps.upper_bound(step), run.steps.end());
    for (auto* records : {&run.evals, &run.samples, &run.experts, &run.blocks})
        records->erase(records->upper_bound(step), records->end());
}

void add(LoggedRun& run, LogRecord record) {
    const std::string event = text_of(record, "event");
    const double at = number_of(record, "step");
    constexpr double most = 1LL << 53;  // a log says any number
    const auto step = static_cast<std::int64_t>(std::isfinite(at) ? std::clamp(at, 0.0, most) : 0);
    if (event == "step") {
        if (run.steps.size() >= run.most_steps) merge_neighbours(run.steps);
        run.steps[step] = step_record(record);
    } else if (auto* records = records_of(run, event)) {
        if (records->size() >= run.most_records)
            drop_every_second(*records, records == &run.evals ? best_eval(run) : nullptr);
        (*records)[step] = std::move(record);
    } else if (event == "confusion") {
        run.confusion = std::move(record);
    } else if (event == "start") {
        run.start = std::move(record);
    } else if (event == "end" || event == "diverged") {
        run.end = std::move(record);
        if (event == "diverged") run.end["reason"] = event;
    } else if (event == "plan") {
        set_steps(run.start, record);
    } else if (event == "resume") {
        resume(run, step, record);
    }
}

}  // namespace

void add_line(LoggedRun& run, std::string_view line) {
    LogRecord record = parse_or_discard<LogRecord>(line);
    if (record.is_object()) add(run, std::move(record));
}

LoggedRun read_logged_run(std::string_view log) {
    LoggedRun run;
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        add_line(run, log.substr(begin, end - begin));
        begin = end + 1;
    }
    return run;
}

double number_of(const LogRecord& record, const char* key) {
    auto found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : NAN;
}

double number_of(const StepRecord& record, std::string_view key) {
    const auto found = std::find(record.keys.begin(), record.keys.end(), key);
    return found == record.keys.end() ? NAN
                                      : record.values[static_cast<std::size_t>(found - record.keys.begin())];
}

std::string text_of(const LogRecord& record, const char* key) {
    auto found = record.find(key);
    return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool losses_comparable(const LoggedRun& run) {
    return std::ranges::none_of(run.evals,
                                [](const auto& eval) { return eval.second.contains("generator_loss"); });
}

const LogRecord* best_eval(const LoggedRun& run) {
    if (!losses_comparable(run)) return &run.evals.rbegin()->second;
    const LogRecord* best = nullptr;
    for (const auto& [step, record] : run.evals)
        if (std::isfinite(number_of(record, "loss")) &&
            (!best || number_of(record, "loss") < number_of(*best, "loss")))
            best = &record;
    return best;
}

std::vector<std::pair<std::string, double>> text_losses(const LogRecord& eval) {
    std::vector<std::pair<std::string, double>> losses;
    const auto texts = eval.find("texts");
    if (texts == eval.end() || !texts->is_array()) return losses;
    for (const LogRecord& text : *texts)
        if (text.is_object()) losses.emplace_back(text_of(text, "name"), number_of(text, "loss"));
    return losses;
}

std::string ending_of(const LoggedRun& run) {
    if (run.end.empty()) return "not ended yet";
    constexpr std::pair<const char*, const char*> endings[] = {
        {"steps", "ended after its last step"},
        {"time", "ended when its time was up"},
        {"diverged", "ended as its numbers were no longer finite"},
        {"overfitting", "ended as the model was overfitting"},
        {"memorised", "ended as the model was overfitting"},  // in logs of older versions
        {"signal", "stopped by a signal"}};
    const std::string reason = text_of(run.end, "reason");
    for (const auto& [name, words] : endings)
        if (reason == name) return words;
    return "ended";
}

}  // namespace linnet
