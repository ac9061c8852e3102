// log.jsonl: everything a run says, one JSON object per line. report.html is made from it.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/descriptor.h"
#include "train/report/logged_run.h"

namespace linnet {

class RunLog {
  public:
    /// Opens `path`, keeping its first `keep` bytes (what a resumed run had written by its checkpoint). Never
    /// follows a symbolic link. Where `echo`, every record goes to stdout too (--json), for as long as that
    /// takes them.
    RunLog(std::string path, std::uint64_t keep, bool echo);

    /// Appends a record at once (a killed run loses none). Error(Exit::io) where the disk is full.
    void write(const nlohmann::ordered_json& record);
    std::uint64_t bytes() const { return bytes_; }
    /// What all of it says, for pages: reading the file again for each would take time that grows with it.
    const LoggedRun& run() const { return run_; }

  private:
    std::string path_;
    Descriptor file_;
    std::uint64_t bytes_ = 0;
    bool echo_;
    LoggedRun run_;
};

/// `value` with `digits` significant ones: what is written is read by people, too.
double with_digits(double value, int digits);

}  // namespace linnet
