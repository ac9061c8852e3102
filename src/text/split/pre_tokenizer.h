// Pre-tokenizers: how a normalized text is cut into words. A list of steps, each cutting the pieces of the
// last.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/split/splitter.h"

namespace linnet {

class Regex;

/// What becomes of the separators that a step finds.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PreTokenizerStep {
    enum class Kind {
        words,    // a hand-written splitter
        pattern,  // a regular expression, or a literal (`literal` not empty)
        digits,   // number characters apart, each alone where `each`
        punctuation,
        whitespace,  // \w+|[^\w\s]+
        whitespace_split,
        bert,          // at spaces, punctuation apart
        metaspace,     // spaces become `literal` (a mark), words begin at marks where `each`
        prefix_space,  // a space before a text that does not begin with one (ByteLevel's add_prefix_space)
    };
    Kind kind = Kind::words;
    Split words = Split::whole;
    std::shared_ptr<const Regex> regex;
    std::string literal;
    SplitBehavior behavior = SplitBehavior::isolated;
    bool invert = false, each = true;
    enum class Prepend {
        always,
        first,
        never
    } prepend = Prepend::always;  // metaspace: a mark before the text
};

class PreTokenizer {
  public:
    std::vector<PreTokenizerStep> steps;
    /// The steps from this one on stand behind tokenizer.json's ByteLevel and see GPT-2's alphabet instead of
    /// the bytes: there a space is the letter U+0120, and byte 0xB2 the number U+00B2.
    std::size_t spelled_from = SIZE_MAX;

    bool has_spelled() const { return spelled_from < steps.size(); }
    /// Offsets [begin, end) into `text`, which a step may rewrite. `first`: the text begins the
    /// document; `opens`: it begins a stretch between added tokens.
    using Words = std::vector<std::pair<std::size_t, std::size_t>>;
    void apply(std::string& text, bool first, bool opens, Words& words) const;
};

}  // namespace linnet
