// How far a command has come.
#pragma once
#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/terminal.h"

namespace linnet {

/// "quantized 12 %" on a live line, or with `bytes` "converted 1.2 GB of 9.8 GB, 12 %". Nothing in the first
/// second: what is done by then needs no line.
class Percent {
  public:
    explicit Percent(std::string what, bool bytes = false) : what_(std::move(what)), bytes_(bytes) {}
    void operator()(double done, double all) {
        if (seconds_since(start_) < 1) return;
        const int percent = static_cast<int>(100 * done / std::max(all, 1.0));
        status_.show(what_ + " " + (bytes_ ? human_bytes(done) + " of " + human_bytes(all) + ", " : "") +
                     std::to_string(percent) + " %");
    }
    void clear() { status_.clear(); }

  private:
    std::string what_;
    bool bytes_;
    StatusLine status_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace linnet
