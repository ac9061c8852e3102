// generation_config.json: which tokens end a text, and how a model is sampled by those who made it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "text/encode/pipeline.h"

namespace linnet {

constexpr std::string_view generation_name = "generation_config.json";
/// Bytes of its text; its members are kept in their order, in which each is looked for among all before it.
constexpr std::size_t largest_generation = std::size_t{1} << 16;

/// The text's sampling values under the names that GGUF has for them, and the whole of it, so that the way
/// back has the same keys. Error(Exit::input) naming `path`, also for a text that is too large.
void add_generation_config(GgufWriter& metadata, std::string_view text, const std::string& path);

/// The one that the model came with, or one made of GGUF's sampling values and the roles of tokens.
nlohmann::ordered_json generation_config(const Gguf& file, const SpecialIds& special);

}  // namespace linnet
