// Megatron-LM's .idx: where each document of a token file begins (megatron/core/datasets/indexed_dataset.py).
//
//   9 bytes   "MMIDIDX\0\0"
//   u64       version 1
//   u8        type of an id: 8 uint16, 4 int32
//   u64       N, sequences (linnet: documents)
//   u64       D, N + 1 where each sequence is a document
//   i32 [N]   tokens of each
//   i64 [N]   byte where each begins
//   i64 [D]   the first sequence of each document, and N
#pragma once
#include <cstdint>
#include <string>

namespace linnet {

struct MegatronIndex {
    int token_bytes = 2;
    std::uint64_t sequences = 0, documents = 0, tokens = 0;
};

/// Checked whole against a token file of `bin_bytes`. Error(Exit::input).
MegatronIndex read_megatron_index(const std::string& path, std::uint64_t bin_bytes);

/// Writes `path` for `tokens` tokens; the file `starts` has an int64 per document, the token it begins at,
/// ascending. Documents without a token are left out.
void write_megatron_index(const std::string& path, const std::string& starts, std::uint64_t tokens,
                          int token_bytes);

}  // namespace linnet
