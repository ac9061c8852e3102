// SentencePiece's two models, set up from a vocabulary that GGUF, a .model file or tokenizer.json gave.
#pragma once
#include <string>
#include <string_view>

#include "text/encode/pipeline.h"

namespace linnet {

/// What SentencePiece does to a text before its model sees it.
struct SpaceMarks {
    bool prefix = true;         // a mark goes before the text (add_dummy_prefix)
    bool collapse = false;      // one space for several, none at the ends (remove_extra_whitespaces)
    std::string charsmap = {};  // precompiled_charsmap, applied first
};

/// Gives `parts` (its vocabulary with scores, its special ids) SentencePiece's BPE: pairs merge in the order
/// of the joined token's score. Errors in the character map name `file` and `where`.
void use_spm_model(Parts& parts, const SpaceMarks& marks, std::string_view file = {},
                   std::string_view where = {});

/// The same for the unigram model.
void use_unigram_model(Parts& parts, const SpaceMarks& marks, bool byte_fallback, std::string_view file,
                       std::string_view where);

}  // namespace linnet
