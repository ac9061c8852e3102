// A corpus in files of tokens, from any program.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/corpus_index.h"

namespace linnet {

struct TokenFiles {
    std::string folder;  // that index.shards' files are in
    CorpusIndex index;   // of another program's files: layout, split and tokens are known, the rest is empty
    bool ours = false;   // linnet corpus wrote it: with its tokenizer, checksums and bytes of text

    /// The tokenizer beside the files: our tokenizer.gguf, or of another program's a tokenizer.gguf,
    /// tokenizer.json, tokenizer.model that somebody put there; empty where there is none.
    std::string tokenizer() const;
    /// Of index.json; of other files: of their names, their sizes, and a MiB at both ends of each.
    std::string sha256() const;
};

/// What `path` is the corpus of: a folder that linnet corpus wrote, a folder of llm.c's, nanoGPT's or
/// Megatron-LM's files, one such file, or Megatron-LM's prefix of .bin and .idx. Nothing where it is none of
/// these. Files with "val" in their names are for validation. Error(Exit::input) for files that are damaged.
std::optional<TokenFiles> find_token_files(const std::string& path);

}  // namespace linnet
