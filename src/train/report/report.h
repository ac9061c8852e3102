// report.html: what a training run did, on one page that needs nothing else.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

/// Writes the page at `path`, named after its folder, from the records of a run (train/LOG.md lists them).
/// Records that cannot be read (a line cut by a power failure) are passed over; steps done again after a
/// resume replace the first ones. Throws Error(Exit::io) where a file cannot be read or written.
void write_report(const std::string& path, const std::string& log_jsonl_path);

/// The page itself.
std::string report_html(std::string_view log_jsonl, const std::string& name);

}  // namespace linnet
