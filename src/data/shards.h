// Token shards: the files that a corpus is made of, in the layout that llm.c's data loader reads.
//
// A header of 256 little-endian int32 (magic, version, tokens, zeros), then the tokens, little-endian:
//   magic 20240520, version 1: 16 bits a token (llm.c's "gpt-2")
//   magic 20240801, version 7: 32 bits a token (llm.c's "llama-3"), for vocabularies beyond 65 536
// (llm.c, dev/data/data_common.py and llmc/dataloader.h.)
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "text/tokenizer.h"

namespace linnet {

inline constexpr std::size_t shard_header_bytes = 256 * sizeof(std::int32_t);

/// One layout of a shard; the width follows from the vocabulary.
struct ShardFormat {
    std::int32_t magic, version;
    int token_bytes;

    /// Writes the ids at `to`, little-endian, token_bytes each.
    void store(std::span<const TokenId> ids, char* to) const;
};
inline constexpr ShardFormat shard_formats[] = {{20240520, 1, 2}, {20240801, 7, 4}};
const ShardFormat& shard_format(TokenId vocab_size);

/// A shard mapped read-only; magic, version and length are checked when it is opened.
class TokenShard {
  public:
    explicit TokenShard(const std::string& path);
    std::uint64_t size() const { return tokens_; }
    std::uint32_t operator[](std::uint64_t i) const;  // i < size()
    const std::string& path() const { return file_.path(); }
    int token_bytes() const { return token_bytes_; }

  private:
    MappedFile file_;
    std::uint64_t tokens_ = 0;
    int token_bytes_ = 2;
};

}  // namespace linnet
