#include "generate/grammar/gbnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace linnet {
namespace {

constexpr std::size_t longest_file = std::size_t{1} << 20;
constexpr int deepest = 200;  // brackets in brackets
constexpr std::int32_t most_rounds = 1'000'000;

class Parser {
  public:
    Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {
        for (std::size_t i = 0; i < text.size(); i++)
            if (text[i] == '\n') lines_.push_back(i + 1);
    }

    Grammar grammar() {
        if (text_.size() > longest_file)
            fail_input(file_, "", "at most 1 MiB of grammar", std::to_string(text_.size()) + " bytes");
        for (skip(true); at_ < text_.size(); skip(true)) rule();
        for (const auto& [name, id] : ids_)
            if (grammar_.rule(id).body < 0) fail_undefined(name);
        const auto root = ids_.find("root");
        if (root == ids_.end()) fail_input(file_, "", "a rule named root", "none");
        grammar_.root = root->second;
        grammar_.check(file_);
        return std::move(grammar_);
    }

  private:
    std::string place(std::size_t at) const {
        const auto line = std::upper_bound(lines_.begin(), lines_.end(), at) - 1;
        return "line " + std::to_string(line - lines_.begin() + 1) + ", column " +
               std::to_string(at - *line + 1);
    }
    std::string here() const {
        if (at_ >= text_.size()) return "the end of the file";
        if (text_[at_] == '\n') return "the end of the line";
        const Char c = decode_utf8(text_.data() + at_, text_.data() + text_.size());
        return quoted(text_.substr(at_, c.size));
    }
    [[noreturn]] void wrong(std::string_view expected, std::string_view hint = {}) const {
        fail_input(file_, place(at_), expected, here(), hint);
    }
    [[noreturn]] void fail_undefined(const std::string& name) const {
        std::vector<std::string> known;
        for (const auto& [other, id] : ids_)
            if (grammar_.rule(id).body >= 0) known.push_back(other);
        fail_input(file_, place(first_use_.at(name)), "the name of a rule", quoted(name),
                   did_you_mean(name, known));
    }

    bool is(char c) const { return at_ < text_.size() && text_[at_] == c; }
    bool take(char c) { return is(c) && ++at_; }
    static bool is_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
    }
    /// Spaces and comments, and line ends where they mean nothing.
    void skip(bool lines) {
        for (; at_ < text_.size(); at_++) {
            const char c = text_[at_];
            if (c == '#')
                at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
            else if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n'))
                return;
        }
    }
    std::string name() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_name(text_[at_])) at_++;
        return std::string(text_.substr(begin, at_ - begin));
    }
    RuleId rule_named(const std::string& name, std::size_t at) {
        const auto [entry, fresh] = ids_.emplace(name, -1);
        if (fresh) {
            entry->second = grammar_.declare(name);
            first_use_[name] = at;
        }
        return entry->second;
    }

    void rule() {
        const std::size_t begin = at_;
        const std::string rule_name = name();
        if (rule_name.empty()) wrong("the name of a rule");
        skip(false);
        if (text_.substr(at_, 3) != "::=") wrong("'::='");
        at_ += 3;
        const RuleId id = rule_named(rule_name, begin);
        if (grammar_.rule(id).body >= 0)
            fail_input(file_, place(begin), "each rule once", "a second " + quoted(rule_name));
        grammar_.place(id, place(begin));
        skip(true);
        const ExprId body = alternatives(0);
        grammar_.define(id, body);
        if (at_ < text_.size() && !is('\n')) wrong("the end of the rule", "its line ends it");
    }

    ExprId alternatives(int depth) {
        if (depth > deepest) wrong("brackets at most " + std::to_string(deepest) + " deep");
        std::vector<ExprId> parts{sequence(depth)};
        for (;;) {
            const std::size_t end = at_;
            skip(true);
            if (!take('|')) {
                if (depth == 0) at_ = end;
                break;
            }
            skip(true);
            parts.push_back(sequence(depth));
        }
        return grammar_.choice(std::move(parts));
    }

    ExprId sequence(int depth) {
        std::vector<ExprId> parts;
        for (;; skip(depth > 0)) {
            std::optional<ExprId> part = item(depth);
            if (!part) return grammar_.sequence(std::move(parts));
            skip(depth > 0);
            parts.push_back(repeated(*part));
        }
    }

    std::optional<ExprId> item(int depth) {
        const std::size_t begin = at_;
        if (take('"')) return literal(begin);
        if (take('[')) return characters(begin);
        if (take('.')) return grammar_.chars(CharSet::all());
        if (take('(')) {
            skip(true);
            const ExprId group = alternatives(depth + 1);
            if (!take(')')) wrong("')'", "for the '(' in " + place(begin));
            return group;
        }
        const std::string used = name();
        if (used.empty()) return std::nullopt;
        return grammar_.reference(rule_named(used, begin));
    }

    ExprId repeated(ExprId part) {
        constexpr int most = 16;
        for (int count = 0;; skip(false), count++) {
            if (count > most) wrong("fewer repetitions of one item");
            if (take('*'))
                part = grammar_.repeat(part, 0, -1);
            else if (take('+'))
                part = grammar_.repeat(part, 1, -1);
            else if (take('?'))
                part = grammar_.repeat(part, 0, 1);
            else if (take('{'))
                part = counted(part);
            else
                return part;
        }
    }

    ExprId counted(ExprId part) {
        skip(false);
        const std::optional<std::int32_t> min = number();
        std::optional<std::int32_t> max = min;
        skip(false);
        if (take(',')) {
            skip(false);
            max = number();
            if (!max) max = -1;
            skip(false);
        } else if (!min) {
            wrong("a number of repetitions");
        }
        if (*max >= 0 && *max < min.value_or(0)) wrong("a largest number that is not below the smallest");
        if (!take('}')) wrong("'}'");
        return grammar_.repeat(part, min.value_or(0), *max);
    }

    std::optional<std::int32_t> number() {
        std::optional<std::int32_t> value;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
            value = value.value_or(0) * 10 + (text_[at_] - '0');
            if (*value > most_rounds) wrong("at most " + std::to_string(most_rounds) + " repetitions");
        }
        return value;
    }

    ExprId literal(std::size_t begin) {
        std::vector<ExprId> parts;
        while (!take('"')) {
            if (at_ >= text_.size() || is('\n')) wrong("'\"'", "for the text that begins in " + place(begin));
            const char32_t code = character();
            parts.push_back(grammar_.chars({{code, code}}));
        }
        return grammar_.sequence(std::move(parts));
    }

    ExprId characters(std::size_t begin) {
        const bool others = take('^');
        CharSet set;
        while (!take(']')) {
            if (at_ >= text_.size() || is('\n')) wrong("']'", "for the '[' in " + place(begin));
            const std::size_t from = at_;
            const char32_t first = character();
            char32_t last = first;
            if (is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
                at_++;
                last = character();
            }
            if (last < first) at_ = from, wrong("a range in ascending order");
            set.add(first, last);
        }
        if (others) set = set.inverted();
        if (set.empty()) at_ = begin, wrong("at least one character");
        return grammar_.chars(std::move(set));
    }

    char32_t character() {
        if (take('\\')) return escape();
        const Char c = decode_utf8(text_.data() + at_, text_.data() + text_.size());
        if (!c.valid) wrong("UTF-8");
        at_ += c.size;
        return c.code;
    }

    char32_t escape() {
        static constexpr std::pair<char, char> plain[] = {{'n', '\n'},  {'r', '\r'}, {'t', '\t'},
                                                          {'\\', '\\'}, {'"', '"'},  {'[', '['},
                                                          {']', ']'},   {'-', '-'},  {'^', '^'}};
        for (auto [letter, meaning] : plain)
            if (take(letter)) return static_cast<char32_t>(meaning);
        if (take('x')) return hexadecimal(2);
        if (take('u')) return hexadecimal(4);
        if (take('U')) return hexadecimal(8);
        wrong("an escape, one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
    }

    char32_t hexadecimal(int digits) {
        const std::size_t begin = at_;
        char32_t code = 0;
        for (int i = 0; i < digits; i++, at_++) {
            const char c = at_ < text_.size() ? text_[at_] : '\0';
            const int value = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (value < 0) wrong(std::to_string(digits) + " hexadecimal digits");
            code = code << 4 | static_cast<char32_t>(value);
        }
        if (code > CharSet::largest || (code >= 0xD800 && code <= 0xDFFF))
            at_ = begin, wrong("a Unicode scalar value");
        return code;
    }

    std::string_view text_, file_;
    std::size_t at_ = 0;
    std::vector<std::size_t> lines_{0};  // where they begin
    Grammar grammar_;
    std::map<std::string, RuleId> ids_;
    std::map<std::string, std::size_t> first_use_;
};

}  // namespace

Grammar read_gbnf(std::string_view text, std::string_view file) {
    return Parser(text, file).grammar();
}

}  // namespace linnet
