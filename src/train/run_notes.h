// What a person should know of a run before it begins, and at its end.
#pragma once
#include <cstdint>

#include "train/setup.h"

namespace linnet {

/// Notes that there is no evaluation, and so no best model and no early end, where too little is held out; of
/// several texts, which are not evaluated.
void note_whether_held_out(const RunSetup& setup);

/// Notes that the learning rate only rises where the warm-up takes the whole run, as that of a config may
/// with few steps.
void note_rate_never_peaks(const RunSetup& setup);
/// Notes that the rate of a schedule that ends with the run had not fallen where the run ended at `step`, its
/// time being up.
void note_rate_cut_off(const RunSetup& setup, std::int64_t step);

}  // namespace linnet
