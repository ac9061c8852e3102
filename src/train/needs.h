// What a run will need of the machine, before it begins.
#pragma once
#include <cstddef>

#include "train/setup.h"

namespace linnet {

/// Bytes that this process, which has prepared the data, will hold with a learner of `config` beside it.
std::size_t memory_with_learner(const RunSetup& setup, const RunConfig& config);
/// The most that it has held by then: what preparing the data took and gave back counts once.
std::size_t peak_memory_of_run(const RunSetup& setup, const RunConfig& config);

/// Bytes of the folder of a run that begins from nothing, about: models, two checkpoints, log and report.
std::size_t disk_of_run(const RunConfig& config);

}  // namespace linnet
