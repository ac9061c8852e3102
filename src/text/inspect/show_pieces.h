// Tokens for people: coloured on a terminal, or as a page to look at.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace linnet {

/// A token's text, or its spelling where it adds none (a control token), printable; line feeds and tabs stay.
/// `first`: it begins a text.
std::string shown_token(const Tokenizer& tokenizer, TokenId id, bool first);

/// Tokens side by side, line ends kept; with colours (ANSI) they alternate, without they are divided by '|'.
/// `first`: the ids begin the text.
std::string pieces_for_terminal(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool first,
                                bool colours);

/// One self-contained HTML page: every token with its id, spelling and bytes on hover, bytes per token, and
/// the words of the pre-tokenizer below.
std::string pieces_page(const Tokenizer& tokenizer, std::string_view text, std::span<const TokenId> ids,
                        std::string_view title);

}  // namespace linnet
