// SentencePiece's two models, set up from a vocabulary that GGUF, a .model file or tokenizer.json gave.
#pragma once
#include <string_view>

#include "text/encode/pipeline.h"

namespace linnet {

/// Gives `parts` (its vocabulary with scores, its special ids) SentencePiece's BPE: pairs merge in the order
/// of the joined token's score. `space_prefix`: a mark goes before the text (add_dummy_prefix).
void use_spm_model(Parts& parts, bool space_prefix);

/// The same for the unigram model; parts.charsmap is applied first, `collapse` is remove_extra_whitespaces.
/// Errors in the character map name `file` and `where`.
void use_unigram_model(Parts& parts, bool space_prefix, bool collapse, bool byte_fallback,
                       std::string_view file, std::string_view where);

}  // namespace linnet
