// The tokens that part a document from its neighbours.
#pragma once
#include <optional>

#include "text/tokenizer.h"

namespace linnet {

/// The vocabulary's begin token where it asks for one, and its end token where it has one.
struct DocumentMarks {
    std::optional<TokenId> begin, end;

    explicit DocumentMarks(const Tokenizer& tokenizer)
        : begin(tokenizer.add_bos() ? tokenizer.bos() : std::nullopt), end(tokenizer.eos()) {}
};

}  // namespace linnet
