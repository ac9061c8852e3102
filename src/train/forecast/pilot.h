// A short run in memory, on the text of a run that is planned: the bits per byte that a known model and
// budget reach on it.
#pragma once
#include <cstdint>
#include <optional>

#include "train/setup.h"

namespace linnet {

struct PilotResult {
    double seconds = 0;
    std::int64_t parameters = 0;
    std::int64_t tokens = 0;
    std::optional<double> bits_per_byte;  // held out, at its end; nothing where no text is held out
};

/// Trains what a default run of so many seconds would, with the vocabulary and the windows of `setup`, for
/// that long, and evaluates it. `setup` comes back as it was.
PilotResult run_pilot(RunSetup& setup, double seconds, double flops_per_s);

}  // namespace linnet
