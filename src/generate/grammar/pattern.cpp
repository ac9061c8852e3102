#include "generate/grammar/pattern.h"

#include <optional>
#include <stdexcept>
#include <string>

namespace linnet {
namespace {

constexpr int deepest = 100;
constexpr std::int32_t most_rounds = 100'000;

const CharSet digits{{'0', '9'}}, words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    spaces{{'\t', '\r'}, {' ', ' '}};

/// What \S must leave out: all that ECMA-262 calls white space or a line end.
CharSet all_spaces() {
    CharSet set{{0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    set.add(spaces);
    return set;
}

class Parser {
  public:
    Parser(std::string_view pattern, Grammar& grammar, JsonText& json, const PatternFault& fail)
        : text_(code_points(pattern)), grammar_(grammar), json_(json), fail_(fail) {}

    ExprId whole() {
        std::vector<ExprId> choices;
        do {
            const bool begins = take('^');
            const ExprId body = sequence(0);
            const bool ends = take('$');
            const ExprId anything = grammar_.repeat(json_.character(CharSet::all()), 0, -1);
            std::vector<ExprId> parts;
            if (!begins) parts.push_back(anything);
            parts.push_back(body);
            if (!ends) parts.push_back(anything);
            choices.push_back(grammar_.sequence(std::move(parts)));
        } while (take('|'));
        if (at_ < text_.size()) wrong();
        return grammar_.choice(std::move(choices));
    }

  private:
    [[noreturn]] void wrong() {
        const std::string found = at_ < text_.size() ? utf8_of(text_[at_]) : "";
        fail_(found.empty() ? "its end" : found + " at character " + std::to_string(at_ + 1));
        throw std::logic_error("a fault that was passed over");
    }
    bool is(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
    bool take(char32_t c) { return is(c) && ++at_; }

    ExprId alternatives(int depth) {
        if (depth > deepest) wrong();
        std::vector<ExprId> choices{sequence(depth)};
        while (take('|')) choices.push_back(sequence(depth));
        return grammar_.choice(std::move(choices));
    }

    ExprId sequence(int depth) {
        std::vector<ExprId> parts;
        while (at_ < text_.size() && !is('|') && !is(')') && !is('$')) parts.push_back(repeated(item(depth)));
        return grammar_.sequence(std::move(parts));
    }

    ExprId item(int depth) {
        if (take('(')) {
            if (take('?')) group_kind();
            const ExprId group = alternatives(depth + 1);
            if (!take(')')) wrong();
            return group;
        }
        if (take('.'))
            return json_.character(CharSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.inverted());
        if (take('[')) return json_.character(bracket());
        if (take('\\')) return json_.character(escape(false));
        for (char c : std::string_view("^*+?{}]"))
            if (is(static_cast<char32_t>(c))) wrong();
        const char32_t code = text_[at_++];
        return json_.character({{code, code}});
    }

    /// Behind "(?": a group without a number, or with a name.
    void group_kind() {
        if (take(':')) return;
        if (!take('<') || is('=') || is('!')) wrong();
        while (!take('>')) {
            if (at_ >= text_.size()) wrong();
            at_++;
        }
    }

    ExprId repeated(ExprId part) {
        std::int32_t min = 1, max = 1;
        if (take('*'))
            min = 0, max = -1;
        else if (take('+'))
            max = -1;
        else if (take('?'))
            min = 0;
        else if (take('{'))
            counted(min, max);
        else
            return part;
        take('?');  // the fewest first: the same texts
        return grammar_.repeat(part, min, max);
    }

    void counted(std::int32_t& min, std::int32_t& max) {
        auto number = [&]() -> std::optional<std::int32_t> {
            std::optional<std::int32_t> value;
            for (; at_ < text_.size() && digits.contains(text_[at_]); at_++) {
                value = value.value_or(0) * 10 + static_cast<std::int32_t>(text_[at_] - '0');
                if (*value > most_rounds) wrong();
            }
            return value;
        };
        const auto low = number();
        if (!low) wrong();
        min = max = *low;
        if (take(',')) max = number().value_or(-1);
        if (!take('}') || (max >= 0 && max < min)) wrong();
    }

    CharSet bracket() {
        const bool others = take('^');
        CharSet set;
        while (!take(']')) {
            if (at_ >= text_.size()) wrong();
            const std::size_t from = at_;
            const CharSet first = one();
            if (!is('-') || (at_ + 1 < text_.size() && text_[at_ + 1] == ']')) {
                set.add(first);
                continue;
            }
            at_++;
            if (at_ >= text_.size()) wrong();
            const CharSet last = one();
            const auto single = [](const CharSet& s) {
                return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].last;
            };
            if (!single(first) || !single(last) || first.ranges()[0].first > last.ranges()[0].first)
                at_ = from, wrong();
            set.add(first.ranges()[0].first, last.ranges()[0].first);
        }
        if (others) set = set.inverted();
        if (set.empty()) at_--, wrong();
        return set;
    }

    CharSet one() {
        if (take('\\')) return escape(true);
        const char32_t code = text_[at_++];
        return {{code, code}};
    }

    CharSet escape(bool in_brackets) {
        if (at_ >= text_.size()) wrong();
        const char32_t c = text_[at_++];
        switch (c) {
            case 'd':
                return digits;
            case 'D':
                return digits.inverted();
            case 'w':
                return words;
            case 'W':
                return words.inverted();
            case 's':
                return spaces;
            case 'S':
                return all_spaces().inverted();
            case 't':
                return {{'\t', '\t'}};
            case 'n':
                return {{'\n', '\n'}};
            case 'v':
                return {{'\v', '\v'}};
            case 'f':
                return {{'\f', '\f'}};
            case 'r':
                return {{'\r', '\r'}};
            case 'x':
                return hexadecimal(2);
            case 'u':
                return hexadecimal(4);
            default:
                break;
        }
        if (c == 'b' && in_brackets) return {{'\b', '\b'}};
        if (c >= 0x80 || words.contains(c)) at_--, wrong();  // \1, \b, \p{…}: not here
        return {{c, c}};
    }

    CharSet hexadecimal(int count) {
        char32_t code = 0;
        for (int i = 0; i < count; i++, at_++) {
            const char32_t c = at_ < text_.size() ? text_[at_] : U'\0';
            const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
            if (!letter && !digits.contains(c)) wrong();
            code = code << 4 | (letter ? (c | 0x20) - 'a' + 10 : c - '0');
        }
        if (code >= 0xD800 && code <= 0xDFFF) at_--, wrong();
        return {{code, code}};
    }

    std::u32string text_;
    std::size_t at_ = 0;
    Grammar& grammar_;
    JsonText& json_;
    const PatternFault& fail_;
};

}  // namespace

ExprId read_pattern(std::string_view pattern, Grammar& grammar, JsonText& json, const PatternFault& fail) {
    return Parser(pattern, grammar, json, fail).whole();
}

}  // namespace linnet
