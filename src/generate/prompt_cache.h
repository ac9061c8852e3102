// A prompt's state in a file, so that the prompt need not be read again.
#pragma once
#include <string>
#include <vector>

#include "generate/source.h"

namespace linnet {

struct CachedPrompt {
    std::vector<TokenId> tokens;
    std::vector<float> logits;  // [V] after the last of them
};

/// Writes what slot 0 of the source holds: `prompt`, which was read. Through a temporary file; a file of that
/// name is kept, as an Error(Exit::usage).
void save_prompt_cache(const std::string& path, EngineSource& source, const CachedPrompt& prompt);

/// Fills slot 0 with what a file holds. Error(Exit::input) where the file is no prompt cache, was cut short
/// or damaged, or was made by another model, another way to keep states or another instruction set (whose
/// roundings differ), or holds more than the context has room for.
CachedPrompt load_prompt_cache(const std::string& path, EngineSource& source);

}  // namespace linnet
