// progress.json: how far an unfinished corpus is.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/shard_writer.h"

namespace linnet {

inline constexpr const char* corpus_progress_name = "progress.json";  // in the folder

struct CorpusProgress {
    std::vector<std::pair<std::string, std::string>>
        settings;                  // all that the output depends on, but for the text
    std::uint64_t batches = 0;     // written
    std::uint64_t input_hash = 0;  // of their text
    SplitState splits[2];
    bool replaces = false;  // built beside a corpus that it is to replace (corpus_folder.h)
};

/// Nothing where the folder has none.
bool read_corpus_progress(const std::string& folder, CorpusProgress& progress);
void write_corpus_progress(const std::string& folder, const CorpusProgress& progress);
void remove_corpus_progress(const std::string& folder);

}  // namespace linnet
