// Hand-written pre-tokenizers: each returns where the word that begins at p ends, in time linear in the word
// (amortized), and equals its published regular expression on every text (tests/text/split/test_splitter.cpp
// proves it against PCRE2). None of them looks behind p, so a text may be cut at any word's border.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/unicode/unicode.h"

namespace linnet {

/// The patterns with a hand-written splitter. `whole` does not split.
enum class Split : std::uint8_t { whole, gpt2, gpt2_digits, cl100k, llama3, qwen2, o200k, tekken };

/// A splitter's published expression (Rust / Oniguruma syntax); for `whole`, an empty string. gpt2_digits
/// stands for a sequence of two expressions (one a digit, then GPT-2's on what lies between): its first is
/// digit_pattern.
std::string_view split_pattern(Split split);
inline constexpr std::string_view digit_pattern = "\\p{N}";
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The splitter whose pattern this is, under any of the spellings in use, or `whole` where there is none.
Split split_of_pattern(std::string_view pattern);

namespace splitting {

using namespace char_class;

/// Bit 7 of every byte that is no ASCII letter (little-endian: the lowest set bit is the first such byte).
inline std::uint64_t not_ascii_letter(std::uint64_t v) {
    constexpr std::uint64_t ones = 0x0101010101010101u;
    std::uint64_t folded = (v | 0x20 * ones) & 0x7F * ones;
    std::uint64_t from_a = folded + (0x80 - 'a') * ones, beyond_z = folded + (0x7F - 'z') * ones;
    return (~(from_a & ~beyond_z) | v) & 0x80 * ones;
}

/// The end of the run of characters at p whose class has a bit of `any`. (Flattened: decoding a character is
/// too large to be inlined unasked, and here, not in every splitter, it pays.)
template <std::uint8_t any>
[[gnu::flatten]] const char* run(const char* p, const char* end, const ClassTable& table) {
    std::uint8_t size;
    while (p < end) {
        if constexpr (any == letter && std::endian::native == std::endian::little)
            while (end - p >= 8) {
                std::uint64_t v;
                std::memcpy(&v, p, 8);
                if (std::uint64_t stop = not_ascii_letter(v)) {
                    p += std::countr_zero(stop) >> 3;
                    if (static_cast<std::uint8_t>(*p) < 0x80) return p;
                    break;
                }
                p += 8;
            }
        if (p == end || !(table.at(p, end, size) & any)) return p;
        p += size;
    }
    return p;
}

/// The end of the run of characters without any bit of `none`.
template <std::uint8_t none>
[[gnu::flatten]] const char* run_without(const char* p, const char* end, const ClassTable& table) {
    std::uint8_t size;
    while (p < end && !(table.at(p, end, size) & none)) p += size;
    return p;
}

/// 's 't 're 've 'm 'll 'd after an apostrophe at p; `fold`: any case, where U+017F is a case of s. Null:
/// none.
template <bool fold>
const char* contraction(const char* p, const char* end) {
    if (end - p < 2) return nullptr;
    auto lower = [](char c) { return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    const char a = lower(p[1]);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if (fold && end - p >= 3 && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
    if (end - p < 3) return nullptr;
    const char b = lower(p[2]);
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? p + 3 : nullptr;
}

/// \s+(?!\S)|\s+ : a run of spaces gives its last one to the word behind it, unless it is alone or ends the
/// text.
inline const char* spaces(const char* p, const char* end, const ClassTable& table) {
    std::uint8_t size;
    const char *q = p, *last = p;
    while (q < end && table.at(q, end, size) & space) {
        last = q;
        q += size;
    }
    return q == end || last == p ? q : last;
}

/// gpt2_pattern. `digits`: every number character stands alone, and what lies between is split by itself.
template <bool digits>
struct Gpt2 {
    static const char* next(const char* p, const char* end, const ClassTable& table) {
        if (*p == '\'')
            if (const char* q = contraction<false>(p, end)) return q;
        std::uint8_t size;
        const char* q = *p == ' ' && end - p > 1 ? p + 1 : p;
        const std::uint8_t c = table.at(q, end, size);
        if (c & letter) return run<letter>(q + size, end, table);
        if (c & space) return digits ? digit_spaces(p, end, table) : spaces(p, end, table);
        if (c & number) return digits ? q == p ? q + size : q : run<number>(q + size, end, table);
        return run_without<space | letter | number>(q + size, end, table);
    }
    /// Before a digit a run of spaces ends its piece, so it keeps its last space.
    static const char* digit_spaces(const char* p, const char* end, const ClassTable& table) {
        const char *q = run<space>(p, end, table), *r = spaces(p, end, table);
        std::uint8_t size;
        return q < end && table.at(q, end, size) & number ? q : r;
    }
};

/// \p{N}{1,most}
template <int most>
const char* number_group(const char* p, const char* end, const ClassTable& table) {
    std::uint8_t size;
    for (int i = 0; i < most && p < end && table.at(p, end, size) & number; i++) p += size;
    return p;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ : spaces up to and with the last line end of the run, else as above.
inline const char* blank_lines(const char* p, const char* end, const ClassTable& table) {
    std::uint8_t size;
    const char *q = p, *last = p, *line_end = nullptr;
    while (q < end && table.at(q, end, size) & space) {
        if (*q == '\n' || *q == '\r') line_end = q + 1;
        last = q;
        q += size;
    }
    if (line_end) return line_end;
    return q == end || last == p ? q : last;
}

inline bool is_line_end(char c) {
    return c == '\r' || c == '\n';
}

///  ?[^\s\p{L}\p{N}]+ and then line ends (and slashes); the first character is known to be at q.
template <bool slash>
const char* symbols(const char* q, const char* end, const ClassTable& table) {
    q = run_without<space | letter | number>(q, end, table);
    while (q < end && (is_line_end(*q) || (slash && *q == '/'))) q++;
    return q;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}|
/// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int most>
struct Cl100k {
    static const char* next(const char* p, const char* end, const ClassTable& table) {
        std::uint8_t size, next_size;
        const std::uint8_t c = table.at(p, end, size);
        if (c & letter) return run<letter>(p + size, end, table);
        if (*p == '\'')
            if (const char* q = contraction<true>(p, end)) return q;
        if (c & number) return number_group<most>(p, end, table);
        const char* q = p + size;
        const std::uint8_t n = q < end ? table.at(q, end, next_size) : space;
        if (n & letter && !is_line_end(*p)) return run<letter>(q + next_size, end, table);
        if (!(c & space)) return symbols<false>(q, end, table);
        if (*p == ' ' && !(n & (space | number))) return symbols<false>(q, end, table);
        return blank_lines(p, end, table);
    }
};

/// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(contraction)?
/// |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(contraction)?
/// |\p{N}{1,most}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int most, bool contractions>
struct O200k {
    /// Of a run of capitals, uncased letters and marks that no small letter follows, the first alternative
    /// takes all up to the last uncased letter or mark (it needs one for its second half); the second takes a
    /// run of capitals alone. Null: no letter or mark stands at p. `uncased` says which of the two it was.
    static const char* word(const char* p, const char* end, const ClassTable& table,
                            bool& first_alternative) {
        std::uint8_t size, c = 0;
        const char *q = p, *after_uncased = nullptr;
        while (q < end) {
            c = table.at(q, end, size);
            if (!(c & (letter | mark)) || c & lower) break;
            q += size;
            if (!(c & upper)) after_uncased = q;
            c = 0;
        }
        first_alternative = true;
        if (q < end && c & lower) {
            while (q < end && (c = table.at(q, end, size)) & (letter | mark) && !(c & upper)) q += size;
            return q;
        }
        if (after_uncased) return after_uncased;
        first_alternative = false;
        return q > p ? q : nullptr;
    }
    static const char* suffix(const char* q, const char* end) {
        if (contractions && q < end && *q == '\'')
            if (const char* r = contraction<true>(q, end)) return r;
        return q;
    }
    static const char* next(const char* p, const char* end, const ClassTable& table) {
        std::uint8_t size, next_size;
        bool first = false, first_bare = false;
        const std::uint8_t c = table.at(p, end, size);
        if (c & letter) return suffix(word(p, end, table, first), end);
        if (c & number) return number_group<most>(p, end, table);
        const char* q = p + size;
        if (!is_line_end(*p)) {
            // The prefix may be a mark, which can also begin the word itself: then the first alternative
            // without the prefix comes before the second with it.
            const char* with = q < end ? word(q, end, table, first) : nullptr;
            if (with && first) return suffix(with, end);
            if (c & mark) {
                const char* bare = word(p, end, table, first_bare);
                if (first_bare) return suffix(bare, end);
            }
            if (with) return suffix(with, end);
        }
        if (!(c & space)) return symbols<true>(q, end, table);
        const std::uint8_t n = q < end ? table.at(q, end, next_size) : space;
        if (*p == ' ' && !(n & (space | letter | number))) return symbols<true>(q, end, table);
        return blank_lines(p, end, table);
    }
};

struct Whole {
    static const char* next(const char*, const char* end, const ClassTable&) { return end; }
};

/// Calls f with the splitter's type: with_splitter(split, []<class S>() { … S::next(p, end, table) … }).
template <class F>
auto with_splitter(Split split, F&& f) {
    switch (split) {
        case Split::gpt2:
            return f.template operator()<Gpt2<false>>();
        case Split::gpt2_digits:
            return f.template operator()<Gpt2<true>>();
        case Split::cl100k:
        case Split::llama3:
            return f.template operator()<Cl100k<3>>();
        case Split::qwen2:
            return f.template operator()<Cl100k<1>>();
        case Split::o200k:
            return f.template operator()<O200k<3, true>>();
        case Split::tekken:
            return f.template operator()<O200k<1, false>>();
        case Split::whole:
            break;
    }
    return f.template operator()<Whole>();
}

}  // namespace splitting

/// The smallest position >= `from` where the text may be cut without changing any word of any of the
/// splitters above: after a letter, before a space (0x20) or, unless `space_only`, before any white space or
/// a punctuation mark that is no apostrophe. text.size() where there is none.
std::size_t safe_cut(std::string_view text, std::size_t from, bool space_only = false);

}  // namespace linnet
