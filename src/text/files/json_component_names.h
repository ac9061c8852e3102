// What tokenizer.json calls our steps: for reading and writing alike.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "text/split/pre_tokenizer.h"
#include "text/unicode/normalizer.h"

namespace linnet {

inline constexpr std::pair<NormalizerStep::Kind, std::string_view> normalizer_names[] = {
    {NormalizerStep::Kind::nfc, "NFC"},
    {NormalizerStep::Kind::nfd, "NFD"},
    {NormalizerStep::Kind::nfkc, "NFKC"},
    {NormalizerStep::Kind::nfkd, "NFKD"},
    {NormalizerStep::Kind::nmt, "Nmt"},
    {NormalizerStep::Kind::lowercase, "Lowercase"},
    {NormalizerStep::Kind::strip_accents, "StripAccents"},
    {NormalizerStep::Kind::strip, "Strip"},
    {NormalizerStep::Kind::replace, "Replace"},
    {NormalizerStep::Kind::prepend, "Prepend"},
    {NormalizerStep::Kind::bert, "BertNormalizer"},
    {NormalizerStep::Kind::precompiled, "Precompiled"},
};

inline constexpr std::pair<PreTokenizerStep::Kind, std::string_view> pre_tokenizer_names[] = {
    {PreTokenizerStep::Kind::words, "Split"},
    {PreTokenizerStep::Kind::pattern, "Split"},
    {PreTokenizerStep::Kind::digits, "Digits"},
    {PreTokenizerStep::Kind::punctuation, "Punctuation"},
    {PreTokenizerStep::Kind::whitespace, "Whitespace"},
    {PreTokenizerStep::Kind::whitespace_split, "WhitespaceSplit"},
    {PreTokenizerStep::Kind::bert, "BertPreTokenizer"},
    {PreTokenizerStep::Kind::metaspace, "Metaspace"},
    {PreTokenizerStep::Kind::prefix_space, "ByteLevel"},
};

inline constexpr std::pair<SplitBehavior, std::string_view> behavior_names[] = {
    {SplitBehavior::removed, "Removed"},
    {SplitBehavior::isolated, "Isolated"},
    {SplitBehavior::merged_with_previous, "MergedWithPrevious"},
    {SplitBehavior::merged_with_next, "MergedWithNext"},
    {SplitBehavior::contiguous, "Contiguous"},
};

/// std::logic_error where the table has no name for it: no file is written without one.
template <class Kind, std::size_t n>
constexpr std::string_view name_in(const std::pair<Kind, std::string_view> (&table)[n], Kind kind) {
    for (const auto& [each, name] : table)
        if (each == kind) return name;
    throw std::logic_error("a step of a tokenizer has no name in tokenizer.json");
}
constexpr std::string_view name_of(NormalizerStep::Kind kind) {
    return name_in(normalizer_names, kind);
}
constexpr std::string_view name_of(PreTokenizerStep::Kind kind) {
    return name_in(pre_tokenizer_names, kind);
}
constexpr std::string_view name_of(SplitBehavior behavior) {
    return name_in(behavior_names, behavior);
}

}  // namespace linnet
