// The keys that the reader and the writer of a GGUF's vocabulary share.
#pragma once
#include <optional>
#include <string>

#include "text/encode/pipeline.h"

namespace linnet::gguf_keys {

inline const std::string prefix = "tokenizer.ggml.";

struct Role {
    const char* key;
    std::optional<TokenId> SpecialIds::*id;
};
// Keys of the roles ("seperator" is the specification's own spelling).
inline constexpr Role roles[] = {
    {"bos_token_id", &SpecialIds::bos},         {"eos_token_id", &SpecialIds::eos},
    {"unknown_token_id", &SpecialIds::unknown}, {"seperator_token_id", &SpecialIds::separator},
    {"padding_token_id", &SpecialIds::padding}, {"cls_token_id", &SpecialIds::cls},
    {"mask_token_id", &SpecialIds::mask},       {"eot_token_id", &SpecialIds::eot},
    {"eom_token_id", &SpecialIds::eom},
};

// What tokenizer.json can say and GGUF has no key for: other readers pass over these.
inline const std::string own_prefix = "linnet.tokenizer.";
inline const std::string own_normalizer = own_prefix + "normalizer",
                         own_ignore_merges = own_prefix + "ignore_merges",
                         own_byte_fallback = own_prefix + "byte_fallback",
                         own_max_characters = own_prefix + "max_characters";

struct Flag {
    const char* key;  // ids of the added tokens that have it
    bool AddedToken::*flag;
};
inline constexpr Flag flags[] = {{"lstrip", &AddedToken::lstrip},
                                 {"rstrip", &AddedToken::rstrip},
                                 {"single_word", &AddedToken::single_word},
                                 {"normalized", &AddedToken::normalized},
                                 {"joins", &AddedToken::joins}};

// SentencePiece's steps before its model, of a text.
inline const std::string space_prefix_key = prefix + "add_space_prefix",
                         collapse_key = prefix + "remove_extra_whitespaces",
                         charsmap_key = prefix + "precompiled_charsmap";

}  // namespace linnet::gguf_keys
