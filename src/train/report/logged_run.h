// A run, read back from its log in bounded memory: however long it was, some thousands of records are kept.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace linnet {

using LogRecord = nlohmann::ordered_json;

/// What pages show of a step's record; NaN where it says nothing.
struct StepRecord {
    static constexpr std::array keys{"loss", "lr", "grad_norm", "tokens_per_s", "mfu", "seconds"};
    static constexpr std::size_t most_groups = 64;
    std::array<double, keys.size()> values;
    std::vector<double> group_rates{};  // of train.groups, most_groups of them at most
};

/// Records by their steps, so that what a resumed run did again stands once. Beyond `most_steps` entries,
/// neighbouring steps become one, their mean, at the later one's place; beyond `most_records`, every second
/// evaluation, sample, … is left out, but never the last one nor the best evaluation.
struct LoggedRun {
    static constexpr std::size_t most_steps = 8192, most_records = 512;
    LogRecord start = LogRecord::object(), end = LogRecord::object();
    LogRecord confusion = LogRecord::object();  // the last one
    std::map<std::int64_t, StepRecord> steps;
    std::map<std::int64_t, LogRecord> evals, samples, experts, blocks;
    int resumes = 0;
};

/// Adds the record of a line; one that cannot be read is passed over.
void add_line(LoggedRun& run, std::string_view line);
/// Of all lines of a log.
LoggedRun read_logged_run(std::string_view log_jsonl);

/// A record's number (NaN where there is none), and text (empty where there is none).
double number_of(const LogRecord& record, const char* key);
double number_of(const StepRecord& record, std::string_view key);
std::string text_of(const LogRecord& record, const char* key);

/// Whether losses of evaluations compare. With the objective replaced they do not: the better its generator
/// guesses, the harder its tokens are to tell.
bool losses_comparable(const LoggedRun& run);
/// The evaluation with the lowest loss, or where losses do not compare the last; null where there is none.
const LogRecord* best_eval(const LoggedRun& run);

/// Name and loss (NaN: none) of each text that an evaluation measures by itself.
std::vector<std::pair<std::string, double>> text_losses(const LogRecord& eval);

/// How the run ended, in words: "ended after its last step".
std::string ending_of(const LoggedRun& run);

}  // namespace linnet
