// Training a model from a text or a corpus folder, from the first weights to model.gguf.
#pragma once
#include "train/options.h"

namespace linnet {

/// Trains. Returns Exit::ok, or 130 / 143 after a graceful stop on a signal; throws Error otherwise
/// (Exit::diverged where the loss is not finite or a resume is refused). Files in `out`: model.gguf (the
/// best by validation) and report.html from the first evaluation on, last.gguf at the end, config.json,
/// log.jsonl, checkpoints/.
int train(const TrainingOptions& options);

}  // namespace linnet
