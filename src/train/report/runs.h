// Several training runs over each other, on one page (linnet report).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// A run's name and its log.jsonl.
struct NamedLog {
    std::string name;
    std::string_view log;
};

/// The page: it needs nothing else, and can be read on a telephone. Runs whose logs lack what a curve needs
/// are left out of that curve.
std::string runs_report_html(const std::vector<NamedLog>& runs);

}  // namespace linnet
