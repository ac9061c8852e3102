// Where two tokenizers differ on a text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// A stretch of text whose two encodings agree in where it begins and ends, and in nothing between.
struct Difference {
    std::size_t begin = 0, end = 0;  // bytes of the text
    std::vector<TokenId> a, b;
};

struct Comparison {
    std::size_t tokens_a = 0, tokens_b = 0;
    std::size_t differences = 0;
    bool aligned =
        true;  // false: the decoded texts are not the text itself, so that `first` counts tokens, not bytes
    Difference first;  // meaningful where differences > 0
};

/// Encodes `text` with both (no special tokens added or read) and compares.
Comparison compare_tokenizers(const Tokenizer& a, const Tokenizer& b, std::string_view text, int threads);

}  // namespace linnet
