#include "commands/terminal_text.h"

#include "base/terminal.h"

namespace linnet {

std::string TerminalText::push(std::string_view piece) {
    if (!stdout_is_terminal()) return std::string(piece);
    std::string text = (held_ ? "\r" : "") + std::string(piece);
    held_ = text.ends_with('\r');
    if (held_) text.pop_back();
    for (std::size_t at; (at = text.find("\r\n")) != std::string::npos;) text.erase(at, 1);
    return printable(text, true);
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
    std::string text;
    tokenizer.decode(id, false, text);
    return text.empty() ? std::string(tokenizer.piece(id)) : text;
}

}  // namespace linnet
