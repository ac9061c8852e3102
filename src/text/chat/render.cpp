// A conversation in its template's form, and its ids.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "text/chat/template.h"

namespace linnet {
namespace {

/// The ids of a template's text; none where the vocabulary cannot spell it.
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view markup) {
    EncodeOptions options;
    options.parse_special = true;
    try {
        return tokenizer.encode(markup, options);
    } catch (const Error&) {
        return {};
    }
}

/// Collects text until a token has to stand by itself.
class Encoder {
  public:
    Encoder(const Tokenizer& tokenizer, bool special) : tokenizer_(tokenizer), special_(special) {}

    /// Tokens of the template's markup that are matched everywhere, and so in a person's words, too.
    void withhold(std::string_view markup) {
        for (TokenId id : ids_of(tokenizer_, markup)) {
            const std::string_view piece = tokenizer_.piece(id);
            const bool mark = piece.size() > 2 && markup.find(piece) != std::string_view::npos &&
                              (piece.front() == '<' || piece.front() == '[');
            if (mark) plain_.withheld.push_back(id);
        }
    }
    void markup(std::string_view text) {
        while (!text.empty()) {
            const std::size_t brace = std::min(text.find('{'), text.size());
            text_ += text.substr(0, brace);
            text.remove_prefix(brace);
            if (text.starts_with("{bos}") || text.starts_with("{eos}")) {
                const bool begin = text[1] == 'b';
                if (auto id = begin ? tokenizer_.bos() : tokenizer_.eos()) token(*id);
                text.remove_prefix(5);
            } else if (!text.empty()) {
                text_ += '{';
                text.remove_prefix(1);
            }
        }
    }
    void plain(std::string_view text) {
        if (!text.empty() && !special_) plain_.ranges.push_back({text_.size(), text_.size() + text.size()});
        text_ += text;
    }
    void token(TokenId id) {
        flush();
        ids_.push_back(id);
        goes_on_ = false;  // what follows a special token begins anew
    }
    /// Returns where they begin.
    std::size_t written(std::span<const TokenId> ids) {
        if (!ids.empty()) flush();
        const std::size_t begin = ids_.size();
        ids_.insert(ids_.end(), ids.begin(), ids.end());
        goes_on_ |= !ids.empty();
        return begin;
    }
    std::vector<TokenId> take() {
        flush();
        return std::move(ids_);
    }

  private:
    void flush() {
        if (text_.empty()) return;
        EncodeOptions options;
        options.parse_special = true;
        options.continues = goes_on_;
        options.plain = &plain_;
        tokenizer_.encode(text_, ids_, options);
        text_.clear();
        plain_.ranges.clear();
        goes_on_ = true;
    }

    const Tokenizer& tokenizer_;
    bool special_;
    std::string text_;
    PlainStretches plain_;
    std::vector<TokenId> ids_;
    bool goes_on_ = false;
};

}  // namespace

std::vector<ChatPart> chat_parts(const ChatTemplate& form, std::string_view system,
                                 std::span<const ChatTurn> turns) {
    std::vector<ChatPart> parts;
    auto markup = [&](std::string_view text) {
        if (!text.empty()) parts.push_back({ChatPart::Kind::markup, std::string(text), {}});
    };
    auto plain = [&](std::string_view text) {
        parts.push_back({ChatPart::Kind::plain, std::string(form.trim ? trimmed(text) : text), {}});
    };
    auto put_system = [&] {
        if (system.empty()) return;
        markup(form.system.before);
        plain(system);
        markup(form.system.after);
    };
    if (!form.system_in_user) put_system();
    for (const ChatTurn& turn : turns) {
        markup(form.user.before);
        if (form.system_in_user && &turn == &turns.front()) put_system();
        plain(turn.user);
        markup(form.user.after);
        if (!turn.answer || !turn.answer->ids.empty())
            markup(without_last_spaces(form.assistant.before));
        else
            markup(form.assistant.before);
        if (!turn.answer) continue;
        if (!turn.answer->ids.empty())
            parts.push_back({ChatPart::Kind::written, turn.answer->text, turn.answer->ids});
        else
            plain(turn.answer->text);
        markup(form.assistant.after);
    }
    return parts;
}

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatPart> parts, bool special,
                                 std::vector<std::size_t>* written_at) {
    Encoder encoder(tokenizer, special);
    if (tokenizer.add_bos()) encoder.token(*tokenizer.bos());
    std::set<std::string_view> marks;  // a template has few, and a conversation each of them many times
    for (const ChatPart& part : parts)
        if (!special && part.kind == ChatPart::Kind::markup && marks.insert(part.text).second)
            encoder.withhold(part.text);
    for (const ChatPart& part : parts) {
        if (part.kind == ChatPart::Kind::markup) encoder.markup(part.text);
        if (part.kind == ChatPart::Kind::plain) encoder.plain(part.text);
        if (part.kind != ChatPart::Kind::written) continue;
        const std::size_t begin = encoder.written(part.tokens);
        if (written_at) written_at->push_back(begin);
    }
    return encoder.take();
}

std::vector<TokenId> end_tokens(const Tokenizer& tokenizer, const ChatTemplate& form) {
    std::vector<TokenId> tokens;
    for (const std::string& end : form.ends) {
        const std::vector<TokenId> ids = ids_of(tokenizer, end);
        if (ids.size() == 1 && tokenizer.is_control(ids[0])) tokens.push_back(ids[0]);
    }
    return tokens;
}

}  // namespace linnet
