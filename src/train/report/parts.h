// What pages about training runs are made of: a log read back, charts with their captions, maps of blocks.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "train/report/chart.h"

namespace linnet {

using LogRecord = nlohmann::ordered_json;

/// A run, read back from its log. Steps are keys, so that what a resumed run did again stands once.
struct LoggedRun {
    LogRecord start = LogRecord::object(), end = LogRecord::object();
    std::map<std::int64_t, LogRecord> steps, evals, samples, experts, blocks;
    int resumes = 0;
};

/// Records that cannot be read are passed over.
LoggedRun read_logged_run(std::string_view log_jsonl);

/// A record's number (NaN where there is none), and text (empty where there is none).
double number_of(const LogRecord& record, const char* key);
std::string text_of(const LogRecord& record, const char* key);

/// The evaluation with the lowest loss; null where there is none.
const LogRecord* best_eval(const LoggedRun& run);

/// Nested objects as rows of a table with dotted keys, as `--set` spells them.
std::string config_rows(const LogRecord& object, const std::string& prefix = "");

/// A chart for wide pages and for narrow ones, under a title and a line of text. Two lines or more get a
/// legend.
std::string figure(const std::string& title, const std::string& caption, const Chart& chart);

/// The style of line `index`; there are eight, in turn.
inline std::string line_style(std::size_t index) {
    return std::string(1, static_cast<char>('a' + index % 8));
}

/// Rows of squares, one row for each block and one column for each step that was measured: the darker, the
/// larger the record's `key` ("grad_norm", "update"), on a logarithmic scale. Empty where nothing was.
std::string block_map(const LoggedRun& run, const char* key);

/// The page up to its first heading, and from its last section on.
std::string page_begin(const std::string& title);
std::string page_end();

}  // namespace linnet
