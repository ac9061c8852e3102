// Training a model from a text or a corpus folder, from the first weights to model.gguf.
#pragma once
#include "train/options.h"

namespace linnet {

/// Trains. Returns Exit::ok, or 128 + the signal (129, 130, 143) after a graceful stop; throws Error
/// otherwise (Exit::diverged where the loss is not finite or a resume is refused). Files in `out`: model.gguf
/// (the best by validation; with the objective `replaced` the newest), or adapter.gguf, and report.html from
/// the first evaluation on, last.gguf at the end, config.json, log.jsonl, checkpoints/; with train.save hf
/// also hf/.
int train(const TrainingOptions& options);

}  // namespace linnet
