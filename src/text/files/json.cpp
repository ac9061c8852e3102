#include "text/files/json.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/keyed_hash.h"
#include "base/team.h"
#include "text/encode/vocabulary.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

constexpr const char* kind_names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

const char* json_plain_run(const char* p, const char* end) {
    if constexpr (std::endian::native == std::endian::little) {
        for (; end - p >= 16; p += 16) {
            const auto stop = json_stops(p);
            std::uint64_t half[2];
            std::memcpy(half, &stop, sizeof half);
            if (half[0]) return p + (std::countr_zero(half[0]) >> 3);
            if (half[1]) return p + 8 + (std::countr_zero(half[1]) >> 3);
        }
    }
    while (p < end && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) p++;
    return p;
}

Json::Json(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)), at_(text.data()), end_(text.data() + text.size()) {
    if (text_.size() > UINT32_MAX)
        fail_input(file_, "", "at most 4 GiB of JSON", std::to_string(text_.size()) + " bytes");
    const int threads = text_.size() < (1u << 20) ? 1 : std::min(2, physical_cores());
    run_team(threads, [&](Worker worker) {
        if (worker.index == 0)
            if (std::size_t valid = valid_utf8_prefix(text_); valid < text_.size())
                fail_at(text_.data() + valid, "UTF-8");
        if (worker.index == worker.count - 1) parse();
    });
}

void Json::parse() {
    // What is not used is never touched; more than 2^24 (a vocabulary of three million) grow as they come.
    nodes_.reserve(std::min<std::size_t>(text_.size() / 8 + 4, 1u << 24));
    nodes_.emplace_back();
    value(0);
    blanks();
    if (at_ < end_) fail_here("the end of the file");
}

void Json::fail_at(const char* at, std::string_view expected) const {
    const std::size_t offset = static_cast<std::size_t>(at - text_.data());
    const std::string_view before = text_.substr(0, offset);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n');
    const std::size_t column = offset - (start == std::string_view::npos ? 0 : start + 1) + 1;
    std::string got = "the end of the file";
    if (at < end_) {
        Char c = decode_utf8(at, end_);
        got = c.valid && c.code >= 0x20 ? "'" + std::string(at, c.size) + "'"
                                        : spelling_of_byte(static_cast<std::uint8_t>(*at));
    }
    fail_input(file_, "line " + std::to_string(line) + ", column " + std::to_string(column), expected, got);
}

void Json::blanks() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
}

Json::Node Json::node(Kind kind, std::size_t at, std::size_t size, bool decoded) const {
    if (size > most) fail_here("at most " + std::to_string(most) + " bytes of one value");
    Node node;
    node.at = static_cast<std::uint32_t>(at);
    node.size = static_cast<std::uint32_t>(size) & most;
    node.kind_ = static_cast<std::uint32_t>(kind) & 7;
    node.decoded = decoded;
    return node;
}

Json::Node Json::string() {
    if (at_ == end_ || *at_ != '"') fail_here("a string");
    const char* begin = ++at_;
    at_ = json_plain_run(at_, end_);
    if (at_ < end_ && *at_ == '"') {
        const char* end = at_++;
        return node(Kind::string, static_cast<std::size_t>(begin - text_.data()),
                    static_cast<std::size_t>(end - begin), false);
    }
    return decoded(begin);
}

Json::Node Json::decoded(const char* begin) {
    std::string out(begin, at_);
    auto four = [&] {
        char32_t v = 0;
        for (int i = 0; i < 4; i++, at_++) {
            if (at_ == end_) fail_here("four hexadecimal digits");
            const char c = *at_;
            const int digit = is_digit(c)            ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) fail_here("four hexadecimal digits");
            v = v * 16 + static_cast<char32_t>(digit);
        }
        return v;
    };
    while (true) {
        if (at_ == end_) fail_here("the end of a string");
        const char c = *at_;
        if (c == '"') break;
        if (static_cast<unsigned char>(c) < 0x20) fail_here("a control character written as an escape");
        if (c != '\\') {
            out += c;
            at_++;
            continue;
        }
        if (++at_ == end_) fail_here("an escape");
        constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
        if (std::size_t i = from.find(*at_); i != std::string_view::npos) {
            out += to[i];
            at_++;
        } else if (*at_ == 'u') {
            at_++;
            char32_t code = four();
            if (code >= 0xD800 && code < 0xDC00) {
                if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u')
                    fail_here("the second half of a surrogate pair");
                at_ += 2;
                const char32_t low = four();
                if (low < 0xDC00 || low > 0xDFFF) fail_here("the second half of a surrogate pair");
                code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
            } else if (code >= 0xDC00 && code <= 0xDFFF) {
                fail_here("a character, not half a surrogate pair");
            }
            append_utf8(out, code);
        } else {
            fail_here("an escape");
        }
    }
    at_++;
    const Node at_end = node(Kind::string, arena_.size(), out.size(), true);
    arena_ += out;
    return at_end;
}

void Json::value(int depth) {
    blanks();
    if (depth > 100) fail_here("at most 100 levels of nesting");
    if (at_ == end_) fail_here("a value");
    const char c = *at_;
    if (c == '{' || c == '[')
        container(depth);
    else
        nodes_.push_back(c == '"' ? string() : c == '-' || is_digit(c) ? number() : word());
}

void Json::container(int depth) {
    const bool object = *at_++ == '{';
    const char close = object ? '}' : ']';
    const std::uint32_t index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node(object ? Kind::object : Kind::array, 0, 0, false));
    std::size_t size = 0;
    blanks();
    if (at_ < end_ && *at_ == close)
        at_++;
    else
        while (true) {
            if (object) {
                blanks();
                nodes_.push_back(string());
                blanks();
                if (at_ == end_ || *at_ != ':') fail_here("':'");
                at_++;
            }
            value(depth + 1);
            if (++size > most) fail_here("at most " + std::to_string(most) + " of one array or object");
            blanks();
            if (at_ == end_ || (*at_ != ',' && *at_ != close))
                fail_here(object ? "',' or '}'" : "',' or ']'");
            if (*at_++ == close) break;
        }
    nodes_[index].size = static_cast<std::uint32_t>(size) & most;
    nodes_[index].at = static_cast<std::uint32_t>(nodes_.size());
    if (object) check_keys(index);
}

Json::Node Json::number() {
    const char* begin = at_;
    if (*at_ == '-') at_++;
    auto digits = [&] {
        if (at_ == end_ || !is_digit(*at_)) fail_here("a digit");
        while (at_ < end_ && is_digit(*at_)) at_++;
    };
    if (at_ < end_ && *at_ == '0')
        at_++;
    else
        digits();
    if (at_ < end_ && *at_ == '.') {
        at_++;
        digits();
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
        at_++;
        if (at_ < end_ && (*at_ == '+' || *at_ == '-')) at_++;
        digits();
    }
    return node(Kind::number, static_cast<std::size_t>(begin - text_.data()),
                static_cast<std::size_t>(at_ - begin), false);
}

Json::Node Json::word() {
    constexpr std::pair<std::string_view, Kind> words[] = {
        {"true", Kind::boolean}, {"false", Kind::boolean}, {"null", Kind::null}};
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    for (auto [word, kind] : words)
        if (rest.starts_with(word)) {
            at_ += word.size();
            return node(kind, text_.size() - rest.size(), word.size(), false);
        }
    fail_here("a value");
}

void Json::check_keys(std::uint32_t object) {
    const std::uint32_t size = nodes_[object].size, end = nodes_[object].at;
    if (size < 2) return;
    auto repeated = [&](std::string_view key) {
        fail_input(file_, path_of(object), "every key once",
                   "'" + std::string(key.substr(0, 80)) + "' again");
    };
    if (size <= 8) {
        for (std::uint32_t i = object + 1; i < end; i = behind(i + 1))
            for (std::uint32_t j = object + 1; j < i; j = behind(j + 1))
                if (text_of(i) == text_of(j)) repeated(text_of(i));
        return;
    }
    std::size_t mask = 16;
    while (mask < std::size_t{size} * 2) mask *= 2;
    struct Slot {
        std::uint32_t hash, key;
    };
    std::vector<Slot> slots(mask--, {0, 0});
    // In batches whose slots are fetched ahead: the table of a large vocabulary lies outside the caches.
    Slot batch[32];
    std::size_t count = 0;
    auto flush = [&] {
        for (const Slot& member : std::span(batch, count)) {
            std::size_t s = member.hash & mask;
            for (; slots[s].key; s = (s + 1) & mask)
                if (slots[s].hash == member.hash && text_of(slots[s].key) == text_of(member.key))
                    repeated(text_of(member.key));
            slots[s] = member;
        }
        count = 0;
    };
    for (std::uint32_t i = object + 1; i < end; i = behind(i + 1)) {
        batch[count++] = {static_cast<std::uint32_t>(keyed_hash(text_of(i))), i};
        __builtin_prefetch(&slots[batch[count - 1].hash & mask]);
        if (count == std::size(batch)) flush();
    }
    flush();
}

std::string Json::path_of(std::uint32_t index) const {
    // Only for messages: walk down from the root to the value. What is open ends with the
    // last node; an absent value has no place.
    std::string path;
    std::uint32_t at = index == 0 ? 0 : 1;
    while (at != index) {
        const bool object = nodes_[at].kind() == Kind::object;
        std::uint32_t child = at + 1 + object;
        for (std::size_t position = 0;; position++) {
            if (is_open(child) || index < behind(child)) {
                if (object)
                    path += (path.empty() ? "" : ".") + std::string(text_of(child - 1).substr(0, 80));
                else
                    path += "[" + std::to_string(position) + "]";
                break;
            }
            child = behind(child) + object;
        }
        at = child;
    }
    return path;
}

void Json::Value::fail(std::string_view expected, std::string_view got) const {
    fail_input(json_->file_, path(), expected, got);
}

void Json::Value::expect(Kind k) const {
    if (!is(k)) fail(kind_names[static_cast<int>(k)], kind_names[static_cast<int>(kind())]);
}

bool Json::Value::boolean() const {
    expect(Kind::boolean);
    return json_->text_of(index_) == "true";
}

double Json::Value::number() const {
    expect(Kind::number);
    double v = 0;
    const std::string_view t = json_->text_of(index_);
    auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (error != std::errc() || !std::isfinite(v)) fail("a number within a double's range", t);
    return v;
}

std::int64_t Json::Value::integer(std::int64_t min, std::int64_t max) const {
    expect(Kind::number);
    std::int64_t v = 0;
    const std::string_view t = json_->text_of(index_);
    auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (error != std::errc() || end != t.data() + t.size() || v < min || v > max)
        fail("an integer from " + std::to_string(min) + " to " + std::to_string(max), t);
    return v;
}

std::string_view Json::Value::string() const {
    expect(Kind::string);
    return json_->text_of(index_);
}

Json::Value Json::Value::operator[](std::string_view key) const {
    if (is_null()) return Value(json_, 0);
    Value found(json_, 0);
    members([&](std::string_view name, Value value) {
        if (name == key) found = value;
    });
    return found;
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    const char *p = text.data(), *end = p + text.size();
    constexpr char hex[] = "0123456789abcdef";
    while (p < end) {
        Char c = decode_utf8(p, end);
        if (!c.valid)
            out += "\xEF\xBF\xBD";
        else if (c.code == '"' || c.code == '\\')
            (out += '\\') += *p;
        else if (c.code == '\n')
            out += "\\n";
        else if (c.code < 0x20 || c.code == 0x7F)
            ((out += "\\u00") += hex[c.code >> 4]) += hex[c.code & 15];
        else
            out.append(p, c.size);
        p += c.size;
    }
    return out + "\"";
}

}  // namespace linnet
