// How near answers are to what was wanted.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// Insertions, deletions and replacements that make one sequence of the other (Levenshtein 1966).
std::size_t edit_distance(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b);
/// Characters of a UTF-8 text (bytes that are none count each).
std::vector<std::string_view> characters(std::string_view text);

/// Sums over a corpus, one answer at a time. An answer with several accepted references counts against the
/// nearest by words.
class AnswerScores {
  public:
    void add(std::string_view answer, const std::vector<std::string>& references);

    std::uint64_t count() const { return count_; }
    double exact() const;       // share of answers that are a reference
    double word_error() const;  // edits by words / words of the references
    double char_error() const;  // the same by characters
    /// Character n-grams up to 6 without spaces, recall twice as heavy (Popovic 2015): 0 to 100.
    double chrf() const;
    /// Word n-grams up to 4 with the brevity penalty, of the whole corpus (Papineni et al. 2002): 0 to 100.
    double bleu() const;

  private:
    struct Grams {
        double match = 0, answer = 0, reference = 0;
    };
    std::uint64_t count_ = 0, exact_ = 0;
    double word_edits_ = 0, words_ = 0, answer_words_ = 0, char_edits_ = 0, chars_ = 0;
    Grams character_grams_[6], word_grams_[4];
};

}  // namespace linnet
