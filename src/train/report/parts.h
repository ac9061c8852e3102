// What pages about training runs are made of: charts with their captions, tables, maps of blocks.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "train/report/chart.h"
#include "train/report/logged_run.h"

namespace linnet {

/// Nested objects as rows of a table with dotted keys, as `--set` spells them.
std::string config_rows(const LogRecord& object, const std::string& prefix = "");

/// A chart for wide pages and for narrow ones, under a title and a line of text. Two lines or more get a
/// legend.
std::string figure(const std::string& title, const std::string& caption, const Chart& chart);

/// The style of line `index`: eight colours in turn, whole, then dashed, then dotted.
inline std::string line_style(std::size_t index) {
    constexpr const char* strokes[] = {"", " dashed", " dotted"};
    return std::string(1, static_cast<char>('a' + index % 8)) + strokes[std::min<std::size_t>(index / 8, 2)];
}

/// A line's name behind a piece of its colour.
std::string key_of(const std::string& style, const std::string& name);

/// Rows of squares, one row for each block and one column for each step that was measured: the darker, the
/// larger the record's `key` ("grad_norm", "update"), on a logarithmic scale. Empty where nothing was.
std::string block_map(const LoggedRun& run, const char* key);

/// The learning rate of each group of train.groups, named after its patterns, against steps. Their styles
/// leave the first free, for the rate of the other parameters.
std::vector<Series> group_rates(const LoggedRun& run);
inline constexpr const char* rates_by_group = "Of each group of train.groups, and of parameters in none.";

/// What rows of each class were taken for: a table, the darker the larger the share; empty where the record
/// has none.
std::string confusion_table(const LogRecord& record);

/// The page up to its first heading (`style`: further rules of CSS), and from its last section on.
std::string page_begin(const std::string& title, const std::string& style = {});
std::string page_end();

}  // namespace linnet
