// report.html: what a training run did, on one page that needs nothing else.
#pragma once
#include <string>
#include <string_view>

#include "train/report/logged_run.h"

namespace linnet {

/// Writes the page of a run at `path`, named after its folder. Error(Exit::io) where it cannot be written.
void write_report(const std::string& path, const LoggedRun& run);

/// The page itself.
std::string report_html(const LoggedRun& run, const std::string& name);
/// Of a log (train/LOG.md lists its records). Records that cannot be read (a line cut by a power failure) are
/// passed over; steps done again after a resume replace the first ones.
std::string report_html(std::string_view log_jsonl, const std::string& name);

}  // namespace linnet
