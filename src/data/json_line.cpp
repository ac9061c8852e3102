#include "data/json_line.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "text/files/json.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

/// What the letter behind a backslash means; 0: nothing.
constexpr std::array<char, 256> escapes = [] {
    std::array<char, 256> meaning{};
    meaning['"'] = '"', meaning['\\'] = '\\', meaning['/'] = '/';
    meaning['b'] = '\b', meaning['f'] = '\f', meaning['n'] = '\n', meaning['r'] = '\r', meaning['t'] = '\t';
    return meaning;
}();

class Scanner {
  public:
    Scanner(std::string_view line, std::string_view field, std::string& out, JsonFieldError& error)
        : begin_(line.data()),
          p_(begin_),
          end_(begin_ + line.size()),
          field_(field),
          out_(out),
          error_(error) {}

    bool run() {
        blanks();
        if (p_ == end_ || *p_ != '{') return refuse("an object");
        if (!top_object()) return false;
        blanks();
        if (p_ != end_) return refuse("the end of the line");
        if (found_) return true;
        error_ = {static_cast<std::size_t>(end_ - begin_), "the field \"" + std::string(field_) + "\"",
                  "none"};
        return false;
    }

  private:
    void blanks() {
        while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n')) p_++;
    }
    bool refuse(std::string expected) {
        error_.at = static_cast<std::size_t>(p_ - begin_);
        error_.expected = std::move(expected);
        if (p_ == end_)
            error_.got = "the end of the line";
        else if (*p_ > ' ' && *p_ < 127)
            error_.got = std::string("'") + *p_ + "'";
        else
            error_.got = "byte " + std::to_string(static_cast<unsigned char>(*p_));
        return false;
    }
    bool take(char c, const char* expected) {
        blanks();
        if (p_ == end_ || *p_ != c) return refuse(expected);
        p_++;
        return true;
    }
    bool top_object() {
        p_++;
        blanks();
        if (p_ < end_ && *p_ == '}') return p_++, true;
        for (;;) {
            blanks();
            if (!name() || !take(':', "':'")) return false;
            blanks();
            if (name_ == field_) {
                if (found_) return refuse("the field \"" + std::string(field_) + "\" once");
                if (p_ == end_ || *p_ != '"') return refuse("a string as \"" + std::string(field_) + "\"");
                found_ = true;
                if (!append_string()) return false;
            } else if (!value()) {
                return false;
            }
            blanks();
            if (p_ < end_ && *p_ == ',') {
                p_++;
                continue;
            }
            return take('}', "',' or '}'");
        }
    }
    /// Any value, checked and passed over; open brackets are on a stack of our own.
    bool value() {
        stack_.clear();
        for (;;) {
            blanks();
            if (p_ == end_) return refuse("a value");
            if (*p_ == '{' || *p_ == '[') {
                if (stack_.size() >= 512) return refuse("at most 512 levels of nesting");
                bool object = *p_++ == '{';
                blanks();
                if (p_ < end_ && *p_ == (object ? '}' : ']')) {
                    p_++;
                } else {
                    stack_.push_back(object);
                    if (object && !key()) return false;
                    continue;
                }
            } else if (!scalar()) {
                return false;
            }
            for (;;) {  // after a value: close what ends here
                if (stack_.empty()) return true;
                blanks();
                if (p_ < end_ && *p_ == ',') {
                    p_++;
                    if (stack_.back() && !key()) return false;
                    break;
                }
                if (!take(stack_.back() ? '}' : ']', stack_.back() ? "',' or '}'" : "',' or ']'"))
                    return false;
                stack_.pop_back();
            }
        }
    }
    bool key() {
        blanks();
        char* none = nullptr;
        return string<false>(none) && take(':', "':'");
    }
    bool scalar() {
        char* none = nullptr;
        if (*p_ == '"') return string<false>(none);
        if (*p_ == '-' || (*p_ >= '0' && *p_ <= '9')) return number();
        for (std::string_view word : {"true", "false", "null"})
            if (std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word)) {
                p_ += word.size();
                return true;
            }
        return refuse("a value");
    }
    bool digits() {
        if (p_ == end_ || *p_ < '0' || *p_ > '9') return refuse("a digit");
        while (p_ < end_ && *p_ >= '0' && *p_ <= '9') p_++;
        return true;
    }
    bool number() {
        if (*p_ == '-') p_++;
        if (p_ < end_ && *p_ == '0')
            p_++;
        else if (!digits())
            return false;
        if (p_ < end_ && *p_ == '.' && (p_++, !digits())) return false;
        if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
            p_++;
            if (p_ < end_ && (*p_ == '+' || *p_ == '-')) p_++;
            return digits();
        }
        return true;
    }
    /// A name: where it lies, or unescaped in a string of its own.
    bool name() {
        const char* const begin = p_;
        char* none = nullptr;
        if (!string<false>(none)) return false;
        name_ = std::string_view(begin + 1, static_cast<std::size_t>(p_ - begin - 2));
        if (name_.find('\\') == std::string_view::npos) return true;
        unescaped_.clear();
        Scanner({begin, p_}, {}, unescaped_, error_).append_string();
        name_ = unescaped_;
        return true;
    }
    /// The string at p_, unescaped, behind what is in out_.
    bool append_string() {
        // No escape is shorter than its meaning, so the rest of the line is room enough. Where that is much,
        // the string's end is looked for first: `out_` keeps what it once held, and the line may be hostile.
        std::size_t room = static_cast<std::size_t>(end_ - p_);
        if (room > (1u << 16)) {
            const char* const begin = p_;
            char* none = nullptr;
            if (!string<false>(none)) return false;
            room = static_cast<std::size_t>(p_ - begin) + 64;  // blocks() copies as many at a time
            p_ = begin;
        }
        const std::size_t before = out_.size();
        out_.resize(before + room);
        char* to = out_.data() + before;
        const bool good = string<true>(to);
        out_.resize(static_cast<std::size_t>(to - out_.data()));
        return good;
    }
    /// What string() does to plain bytes and to escapes of one letter, 64 bytes at a time, up to what else
    /// there is or near the line's end. An escape comes every 20 bytes or so and nobody can foresee where:
    /// where all of a block's are is found without a branch, and what follows one is copied to its new place
    /// at once, whatever its length.
    void blocks(char*& to) {
        while (end_ - p_ >= 128) {
            const char *const block = p_, *const block_end = p_ + 64;
            std::uint64_t stops = stops_of(block);
            while (p_ < block_end) {
                std::memcpy(to, p_, 64);
                const int at = std::countr_zero(stops);  // of none: 64
                to += block + at - p_;
                p_ = block + at;
                if (!stops) break;
                const char meaning = *p_ == '\\' ? escapes[static_cast<unsigned char>(p_[1])] : '\0';
                if (!meaning) return;
                *to++ = meaning;
                p_ += 2;
                stops &= ~(std::uint64_t{3} << at);
            }
        }
    }
    /// A bit for each of 64 bytes at which a plain run ends.
    static std::uint64_t stops_of(const char* p) {
        std::uint64_t stops = 0;
        for (int i = 0; i < 64; i += 16) {
            const auto stop = json_stops(p + i);
#if defined(__SSE2__)
            const int bits = _mm_movemask_epi8(reinterpret_cast<__m128i>(stop));
            stops |= std::uint64_t{static_cast<std::uint32_t>(bits)} << i;
#else
            std::uint8_t bytes[16];
            std::memcpy(bytes, &stop, sizeof bytes);
            stops |= (bits_of(bytes) | bits_of(bytes + 8) << 8) << i;
#endif
        }
        return stops;
    }
#if !defined(__SSE2__)
    /// The lowest bits of eight bytes that are 0 or 255, side by side: the product moves that of byte k to
    /// bit 56 + k.
    static std::uint64_t bits_of(const std::uint8_t* bytes) {
        std::uint64_t v = 0;
        if constexpr (std::endian::native == std::endian::little)
            std::memcpy(&v, bytes, sizeof v);
        else
            for (int k = 0; k < 8; k++) v |= std::uint64_t{bytes[k]} << 8 * k;
        return (v & 0x0101010101010101u) * 0x0102040810204080u >> 56;
    }
#endif
    /// The string at p_, unescaped to `to`, which has room for it and 64 bytes more, or for the rest of the
    /// line. Where it is not kept,
    /// `to` means nothing.
    template <bool keep>
    bool string(char*& to) {
        if (p_ == end_ || *p_ != '"') return refuse("a string");
        p_++;
        for (;;) {
            if constexpr (keep)
                if (p_ < end_ && *p_ != '\\')
                    blocks(to);  // else one that blocks() has stopped at, or a row of them
            const char* const run = json_plain_run(p_, end_);
            if constexpr (keep) to = std::copy(p_, run, to);
            p_ = run;
            if (p_ == end_) return refuse("'\"'");
            if (*p_ == '"') return p_++, true;
            if (*p_ != '\\') return refuse("an escaped control character");
            if (++p_ == end_) return refuse("an escape");
            if (*p_ == 'u') {
                std::uint32_t code = 0;
                if (!character(code)) return false;
                if constexpr (keep) to = put_utf8(to, code);
                continue;
            }
            const char meaning = escapes[static_cast<unsigned char>(*p_)];
            if (!meaning) return refuse("an escape");
            p_++;
            if constexpr (keep) *to++ = meaning;
        }
    }
    /// uXXXX, or two of them for a character beyond U+FFFF.
    bool character(std::uint32_t& code) {
        if (!unit(code)) return false;
        if (code >= 0xDC00 && code <= 0xDFFF) return refuse("no lone surrogate");
        if (code < 0xD800 || code > 0xDBFF) return true;
        std::uint32_t low = 0;
        if (end_ - p_ < 2 || p_[0] != '\\' || p_[1] != 'u')
            return refuse("the second half of a surrogate pair");
        p_++;
        if (!unit(low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return refuse("the second half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        return true;
    }
    /// uXXXX
    bool unit(std::uint32_t& code) {
        p_++;
        for (int i = 0; i < 4; i++, p_++) {
            if (p_ == end_) return refuse("four hexadecimal digits");
            char c = *p_, l = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                code = code << 4 | static_cast<std::uint32_t>(c - '0');
            else if (l >= 'a' && l <= 'f')
                code = code << 4 | static_cast<std::uint32_t>(l - 'a' + 10);
            else
                return refuse("four hexadecimal digits");
        }
        return true;
    }
    const char *begin_, *p_, *end_;
    std::string_view field_;
    std::string& out_;
    JsonFieldError& error_;
    std::string_view name_;
    std::string unescaped_;
    std::vector<bool> stack_;
    bool found_ = false;
};

}  // namespace

bool extract_json_field(std::string_view line, std::string_view field, std::string& out,
                        JsonFieldError& error) {
    std::size_t size = out.size();
    if (Scanner(line, field, out, error).run()) return true;
    out.resize(size);
    return false;
}

}  // namespace linnet
