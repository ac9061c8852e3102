// Normalizers: what happens to a text before it is split. A list of steps, as tokenizer.json's Sequence.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

class Regex;
class CharsMap;

struct NormalizerStep {
    enum class Kind {
        nfc,
        nfd,
        nfkc,
        nfkd,
        lowercase,
        strip,            // spaces at the ends: left, right
        strip_accents,    // marks (\p{Mn})
        replace,          // `pattern` (a literal, or `regex`) by `content`
        prepend,          // `content` before a text that is not empty
        bert,             // clean_text, cjk, accents, lowercase flags
        precompiled,      // SentencePiece's character map
        nmt,              // control characters go, other white space becomes spaces
        collapse_spaces,  // runs of spaces become one, none at the ends (SentencePiece's
                          // remove_extra_whitespaces)
    };
    Kind kind = Kind::nfc;
    std::string pattern, content;
    std::shared_ptr<const Regex> regex;
    std::shared_ptr<const CharsMap> charsmap;
    bool left = true, right = true;
    bool clean_text = true, cjk = true, accents = true, lowercase = true;
};

class Normalizer {
  public:
    std::vector<NormalizerStep> steps;

    bool empty() const { return steps.empty(); }
    /// Needs valid UTF-8 (replace and prepend take anything).
    bool needs_utf8() const;
    /// `opens`: the text begins a stretch (prepend has nothing to do in the middle of one). `closes`: it ends
    /// one; where it does not, a token follows that belongs to the text, so that even of an empty beginning
    /// the stretch is not empty, and spaces before the token stay.
    /// Error(Exit::input) where the text would grow beyond longest(its size).
    void apply(std::string& text, bool opens, bool closes = true) const;
    /// Bytes that a text of `size` may become. (Unicode's own forms make at most 11 of one.)
    static std::size_t longest(std::size_t size) { return 32 * size + 4096; }
};

}  // namespace linnet
