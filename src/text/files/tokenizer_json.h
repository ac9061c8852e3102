// Hugging Face's tokenizer.json, read and written.
#pragma once
#include <string>
#include <string_view>

#include "text/encode/pipeline.h"
#include "text/files/hints.h"
#include "text/files/json.h"

namespace linnet {

/// `text` is the whole file; messages name `file`. Unknown components are refused.
TokenizerPtr tokenizer_from_json(std::string_view text, const std::string& file,
                                 const TokenizerHints& hints = {});

/// The same tokenizer for Hugging Face's library. Error(Exit::input) where that has no model of its kind.
std::string tokenizer_to_json(const Pipeline& tokenizer);

/// An added token as tokenizer.json and tokenizer_config.json write it: {"content": …, "special": …}.
AddedToken added_token_from_json(Json::Value value, TokenId id);

// The component trees, one file each way (json_components_read.cpp, json_components_write.cpp).
Normalizer normalizer_from_json(Json::Value value, bool& byte_level);
PreTokenizer pre_tokenizer_from_json(Json::Value value, bool& byte_level);
Decoder decoder_from_json(Json::Value value);
void post_processor_from_json(Json::Value value, Parts& parts);
std::string normalizer_to_json(const Normalizer& normalizer);
std::string pre_tokenizer_to_json(const PreTokenizer& pre, bool byte_level);
std::string decoder_to_json(const Decoder& decoder);

/// As JSON spells it.
inline std::string boolean(bool b) {
    return b ? "true" : "false";
}

}  // namespace linnet
