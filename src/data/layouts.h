// The layouts of token files: what a corpus is written as, and what other programs' corpora look like.
//
//   llmc      llm.c: shards train_000000.bin, …, each with a header of 256 int32 (dev/data/data_common.py)
//   nanogpt   nanoGPT: train.bin and val.bin, 16-bit ids and nothing else (data/*/prepare.py)
//   megatron  Megatron-LM: train_text_document.bin, ids and nothing else, with its index .idx
//             (megatron/core/datasets/indexed_dataset.py; megatron_index.h)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// llm.c's header: magic, version, tokens, then zeros.
///   magic 20240520, version 1: 16 bits per token ("gpt-2")
///   magic 20240801, version 7: 32 bits per token ("llama-3")
inline constexpr std::size_t llmc_header_bytes = 256 * sizeof(std::int32_t);
struct LlmcHeader {
    std::int32_t magic, version;
    int token_bytes;
};
inline constexpr LlmcHeader llmc_headers[] = {{20240520, 1, 2}, {20240801, 7, 4}};

/// The parts of a corpus.
inline constexpr const char* split_names[2] = {"train", "validation"};

struct CorpusLayout {
    std::string_view name;
    std::string_view stem;  // of a file's name behind its split's; '#' stands for the shard's number
    TokenId narrow;         // the largest vocabulary with 16 bits per token
    bool wide = false;      // larger ones have 32 bits; otherwise they are refused
    std::size_t header_bytes = 0;
    bool index = false;          // an .idx beside each .bin
    bool cuts_one_text = false;  // a corpus of one document is cut in two rather than not validated

    bool many_shards() const { return stem.find('#') != stem.npos; }
    /// Error(Exit::usage) for a vocabulary that the layout has no room for.
    int token_bytes(TokenId vocab_size) const;
    /// A shard's name without its suffix; `split` is one of split_names.
    std::string file(std::string_view split, std::size_t number) const;
    /// Whether `name` is that of a file of this layout, finished (.bin, .idx) or not (.part, .starts).
    bool owns(std::string_view name) const;
};

const std::vector<CorpusLayout>& corpus_layouts();
std::vector<std::string> layout_names();
/// By its name; null for an unknown one.
const CorpusLayout* find_layout(std::string_view name);

/// Writes the ids at `to`, little-endian, token_bytes (2 or 4) each.
void store_tokens(std::span<const TokenId> ids, int token_bytes, char* to);
/// The id at `from`, as store_tokens() writes it.
inline std::uint32_t load_token(const void* from, int token_bytes) {
    std::uint32_t id = 0;
    std::memcpy(&id, from, static_cast<std::size_t>(token_bytes));
    return id;
}

}  // namespace linnet
