// index.json: what a corpus folder says about itself.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

inline constexpr std::string_view corpus_format = "linnet-corpus";  // what index.json says of itself
inline constexpr const char* corpus_index_name = "index.json";      // in the folder
inline constexpr const char* corpus_tokenizer = "tokenizer.gguf";   // in the folder: what its ids mean

struct CorpusShard {
    std::string file, split;                             // a name inside the folder; one of split_names
    std::uint64_t documents = 0, tokens = 0, bytes = 0;  // documents: that begin here; bytes: of text
    std::string sha256;
};

struct CorpusIndex {
    std::string layout = "llmc";  // of the shards (layouts.h)
    TokenId vocab_size = 0;
    std::string tokenizer;         // its file's name, for people
    std::string tokenizer_sha256;  // of the folder's tokenizer.gguf
    double validation_fraction = 0;
    std::uint64_t documents = 0, tokens = 0, bytes = 0, skipped = 0;
    std::vector<CorpusShard> shards;
};

/// The folder's index.json, checked: Error(Exit::input) names the key that is missing, of another type, or
/// out of range.
CorpusIndex read_corpus_index(const std::string& folder);
std::string corpus_index_json(const CorpusIndex& index);

}  // namespace linnet
