// What a person sees while a model trains: one live line on a terminal, a plain line now and then elsewhere.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/terminal.h"

namespace linnet {

/// Where a run stands. NaN: not known (yet), and not shown.
struct Progress {
    std::int64_t step = 0, steps = 0;
    double loss = NAN;        // nats per token, of this step or smoothed
    double validation = NAN;  // nats per token, of the last evaluation
    double lr = NAN;          // learning rate
    double tokens_per_s = NAN;
    double peak_share = NAN;  // 0 to 1: arithmetic done over the machine's measured peak
    double seconds_left = NAN;
};

/// "step 120/2000  6%  loss 2.913  val 3.021  lr 9.8e-04  41.2k tokens/s  57% of peak  2m 10s left" in at
/// most `width` columns: where that is too long, what matters least is left out (first the learning rate).
std::string progress_line(const Progress& progress, int width);

/// Nothing where quiet (base/terminal.h). One at a time.
class LiveLine {
  public:
    /// After every step: loss in nats per token; share: 0 to 1, 0 where the machine's peak is not known;
    /// seconds_left: until the run ends whatever its step, infinity where it does not.
    void step(std::int64_t step, std::int64_t steps, double loss, double lr, double tokens_per_s,
              double share, double seconds_left);
    /// After an evaluation: nats per token, bits per byte, share of classes told rightly (NaN: not told). A
    /// line that stays.
    void evaluated(std::int64_t step, double loss, double bpb, double accuracy);
    /// What the model wrote, after the prompt it was given.
    void sample(const std::string& prompt, const std::string& text);
    /// Wipes the live line.
    void clear() { status_.clear(); }

  private:
    StatusLine status_{30};
    Progress progress_;
    std::int64_t first_ = -1;  // the step before the first that was seen: a resumed run does not begin at 0
    Clock::time_point started_ = Clock::now();
};

}  // namespace linnet
