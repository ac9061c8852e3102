#include "text/split/splitter.h"

namespace linnet {
namespace {

struct Pattern {
    Split split;
    std::string_view expression;
};

// The first line of each splitter is the one that is written out; the others are spellings of the same
// language (possessive quantifiers and anchors change the speed of a backtracking engine, not its answer).
constexpr Pattern patterns[] = {
    {Split::gpt2, gpt2_pattern},
    {Split::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Split::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {Split::cl100k,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::cl100k,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::qwen2,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::o200k,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::tekken,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

}  // namespace

std::string_view split_pattern(Split split) {
    if (split == Split::gpt2_digits) split = Split::gpt2;
    if (split == Split::llama3) split = Split::cl100k;
    for (const Pattern& p : patterns)
        if (p.split == split) return p.expression;
    return {};
}

Split split_of_pattern(std::string_view pattern) {
    for (const Pattern& p : patterns)
        if (p.expression == pattern) return p.split;
    return Split::whole;
}

std::size_t safe_cut(std::string_view text, std::size_t from, bool space_only) {
    const ClassTable& table = ClassTable::get();
    const char *begin = text.data(), *end = begin + text.size(), *p = begin + from;
    while (p > begin && p < end && is_tail(*p)) p--;  // to a character's start
    bool after_letter = false;
    for (std::uint8_t size; p < end; p += size) {
        const std::uint8_t c = table.at(p, end, size);
        const bool border =
            space_only ? *p == ' ' : *p != '\'' && c & (char_class::space | char_class::punctuation);
        if (after_letter && border && static_cast<std::size_t>(p - begin) >= from)
            return static_cast<std::size_t>(p - begin);
        after_letter = c & char_class::letter;
    }
    return text.size();
}

}  // namespace linnet
