// config.json in a run's folder, where its user has written into it.
#pragma once
#include "train/options.h"
#include "train/setup.h"

namespace linnet {

/// A resumed run goes on with the checkpoint's settings, or those of the config that it is given, and writes
/// them to config.json: what its user has written there is kept beside it.
void keep_edited_config(const TrainingOptions& options, const RunSetup& setup);

}  // namespace linnet
