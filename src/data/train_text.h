// Documents from files into a vocabulary's training.
#pragma once
#include <functional>

#include "data/document_reader.h"
#include "text/train/train.h"

namespace linnet {

/// Adds every document of `files` to the trainer, reading one block while the trainer counts another. Reads
/// as `options` say (its `cut` is set here, and bytes that are no UTF-8 are kept: a byte-level vocabulary
/// learns from any bytes). `progress(bytes read, bytes in all or 0)` of the files is called between blocks
/// and may throw to stop. Returns how many bad documents were skipped.
std::uint64_t train_on_files(VocabularyTrainer& trainer, const std::vector<std::string>& files,
                             ReadOptions options,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

/// All of it at once, read in the same way, for vocabularies that need no words counted. Ends with Stopped
/// where a signal asks for it.
std::string training_text(const std::vector<std::string>& files, ReadOptions options);

}  // namespace linnet
