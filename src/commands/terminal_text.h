// What a model wrote, for a terminal; what a token spells.
#pragma once
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace linnet {

/// Text in pieces of whole characters, as stdout may have it. A terminal: line ends stay (CR LF as LF), all
/// else that could steer it is spelled out. A pipe gets it as it is.
class TerminalText {
  public:
    std::string push(std::string_view piece);

  private:
    bool held_ = false;  // a CR, whose LF may come with the next piece
};

/// What a token spells; where that is nothing, its piece.
std::string token_text(const Tokenizer& tokenizer, TokenId id);

}  // namespace linnet
