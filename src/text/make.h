// Tokenizers made here, not loaded.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/pre_names.h"
#include "text/tokenizer.h"

namespace linnet {

/// A token for every character of `text`, in code point order. Error(Exit::input) where it is no UTF-8.
TokenizerPtr char_tokenizer(std::string_view text);

/// 256 tokens.
TokenizerPtr byte_tokenizer();

/// Byte-level BPE: ids 0–255 are the bytes in byte order, 256 + i is the i-th merge (of earlier ids), then
/// the special tokens, whose first is the end of a text. `pre`: a name of pre_names().
TokenizerPtr byte_bpe_tokenizer(const std::vector<std::pair<TokenId, TokenId>>& merges,
                                const std::vector<std::string>& special, std::string_view pre);

}  // namespace linnet
