#include "formats/json_reader.h"

#include "base/error.h"
#include "base/utf8.h"

namespace linnet {
namespace {

constexpr std::string_view white = " \t\r\n";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

void JsonReader::refuse(std::string_view expected, std::string_view got) const {
    fail_input(file_, what_ + ", byte " + std::to_string(at_), expected, got);
}

std::string JsonReader::shown() const {
    return at_ == text_.size() ? "its end" : quoted(text_.substr(at_, 20));
}

char JsonReader::peek() {
    while (at_ < text_.size() && white.find(text_[at_]) != white.npos) at_++;
    return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::expect(char c) {
    if (peek() != c) refuse("'" + std::string(1, c) + "'", shown());
    at_++;
}

void JsonReader::open(char c, std::string_view what) {
    if (peek() != c) refuse(what, shown());
    if (++depth_ > deepest) refuse("values at most " + std::to_string(deepest) + " deep", "deeper ones");
    at_++;
}

bool JsonReader::more(char close, bool first) {
    const char c = peek();
    if (c == close) {
        at_++;
        return false;
    }
    if (!first) {
        expect(',');
        if (peek() == close) refuse("a value behind the comma", shown());
    }
    return true;
}

std::uint32_t JsonReader::hex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; i++, at_++) {
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        const bool upper = c >= 'A' && c <= 'F', lower = c >= 'a' && c <= 'f';
        if (!is_digit(c) && !upper && !lower) refuse("four hexadecimal digits", shown());
        code = code * 16 + static_cast<std::uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
}

/// What follows a backslash.
void JsonReader::escape() {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (const std::size_t i = letters.find(c); c != '\0' && i != letters.npos) {
        string_ += meanings[i], at_++;
        return;
    }
    if (c != 'u') refuse("an escape", shown());
    at_++;
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
        at_ += 2;
        const std::uint32_t low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) refuse("the second half of a surrogate pair", "another character");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xD800 && code < 0xE000) {
        refuse("a character", "half of a surrogate pair");
    }
    append_utf8(string_, code);
}

std::string_view JsonReader::string(std::size_t longest) {
    if (peek() != '"') refuse("a string", shown());
    at_++;
    string_.clear();
    while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\') {
            at_++;
            escape();
        } else {
            const Char c = decode_utf8(text_.data() + at_, text_.data() + text_.size());
            if (!c.valid) refuse("UTF-8", "another encoding");
            if (c.code < 0x20) refuse("a string without control characters", "one");
            string_.append(text_, at_, c.size);
            at_ += c.size;
        }
        if (string_.size() > longest)
            refuse("a string of at most " + std::to_string(longest) + " bytes", "a longer one");
    }
    if (at_ == text_.size()) refuse("the end of a string", "its end");
    at_++;
    return string_;
}

std::uint64_t JsonReader::whole_number() {
    if (!is_digit(peek())) refuse("a whole number from 0", shown());
    const bool zero = text_[at_] == '0';
    std::uint64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && is_digit(text_[at_]); at_++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, static_cast<std::uint64_t>(text_[at_] - '0'), &value))
            refuse("a number below 2^64", "a larger one");
    if ((zero && at_ - begin > 1) ||
        (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] | 0x20) == 'e')))
        refuse("a whole number", quoted(text_.substr(begin, 20)));
    return value;
}

void JsonReader::number() {
    auto digits = [&] {
        if (at_ == text_.size() || !is_digit(text_[at_])) refuse("a digit", shown());
        while (at_ < text_.size() && is_digit(text_[at_])) at_++;
    };
    auto take = [&](std::string_view any) {
        const bool there = at_ < text_.size() && any.find(text_[at_]) != any.npos;
        at_ += there;
        return there;
    };
    take("-");
    if (!take("0")) digits();
    if (take(".")) digits();
    if (take("eE")) {
        take("+-");
        digits();
    }
}

void JsonReader::word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) refuse("a value", shown());
    at_ += word.size();
}

void JsonReader::skip() {
    switch (peek()) {
        case '{':
            return object([&](std::string_view) { skip(); });
        case '[':
            return array([&] { skip(); });
        case '"':
            string();
            return;
        case 't':
            return word("true");
        case 'f':
            return word("false");
        case 'n':
            return word("null");
        default:
            if (text_.size() == at_ || (text_[at_] != '-' && !is_digit(text_[at_])))
                refuse("a value", shown());
            number();
    }
}

void JsonReader::end() {
    if (peek() != '\0' || at_ < text_.size()) refuse("the end of the JSON", shown());
}

}  // namespace linnet
