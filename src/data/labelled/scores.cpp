#include "data/labelled/scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/split.h"
#include "base/utf8.h"

namespace linnet {
namespace {

using Units = std::vector<std::string_view>;

/// How often each run of n units occurs.
std::map<Units, int> grams_of(const Units& units, std::size_t n) {
    std::map<Units, int> counts;
    for (std::size_t i = 0; i + n <= units.size(); i++)
        counts[Units(units.begin() + static_cast<std::ptrdiff_t>(i),
                     units.begin() + static_cast<std::ptrdiff_t>(i + n))]++;
    return counts;
}

template <class Grams>
void add_grams(Grams& sums, const Units& answer, const Units& reference, std::size_t n) {
    const auto ours = grams_of(answer, n), theirs = grams_of(reference, n);
    for (const auto& [gram, count] : ours)
        if (auto found = theirs.find(gram); found != theirs.end())
            sums.match += std::min(count, found->second);
    sums.answer += answer.size() >= n ? static_cast<double>(answer.size() - n + 1) : 0;
    sums.reference += reference.size() >= n ? static_cast<double>(reference.size() - n + 1) : 0;
}

}  // namespace

std::size_t edit_distance(const Units& a, const Units& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); i++) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); j++) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

Units characters(std::string_view text) {
    Units all;
    const char *at = text.data(), *end = at + text.size();
    while (at < end) {
        const std::size_t size = std::max<std::size_t>(1, decode_utf8(at, end).size);
        all.emplace_back(at, size);
        at += size;
    }
    return all;
}

void AnswerScores::add(std::string_view answer, const std::vector<std::string>& references) {
    const Units words = split(answer, ' ');
    const std::string* nearest = nullptr;
    std::size_t edits = 0;
    for (const std::string& reference : references) {
        const std::size_t here = edit_distance(words, split(reference, ' '));
        if (!nearest || here < edits) nearest = &reference, edits = here;
    }
    if (!nearest) return;
    const Units wanted = split(*nearest, ' '), ours = characters(answer), theirs = characters(*nearest);
    count_++;
    exact_ += answer == *nearest;
    word_edits_ += static_cast<double>(edits), words_ += static_cast<double>(wanted.size());
    answer_words_ += static_cast<double>(words.size());
    char_edits_ += static_cast<double>(edit_distance(ours, theirs));
    chars_ += static_cast<double>(theirs.size());
    auto without_spaces = [](Units units) {
        std::erase(units, std::string_view(" "));
        return units;
    };
    const Units plain = without_spaces(ours), plain_wanted = without_spaces(theirs);
    for (std::size_t n = 1; n <= 6; n++) add_grams(character_grams_[n - 1], plain, plain_wanted, n);
    for (std::size_t n = 1; n <= 4; n++) add_grams(word_grams_[n - 1], words, wanted, n);
}

double AnswerScores::exact() const {
    return static_cast<double>(exact_) / static_cast<double>(std::max<std::uint64_t>(1, count_));
}
double AnswerScores::word_error() const {
    return word_edits_ / std::max(1.0, words_);
}
double AnswerScores::char_error() const {
    return char_edits_ / std::max(1.0, chars_);
}

double AnswerScores::chrf() const {
    double precision = 0, recall = 0;
    int orders = 0;
    for (const Grams& g : character_grams_) {
        if (g.answer == 0 || g.reference == 0) continue;
        precision += g.match / g.answer, recall += g.match / g.reference;
        orders++;
    }
    if (orders == 0 || precision + recall == 0) return 0;
    precision /= orders, recall /= orders;
    constexpr double beta_squared = 4;
    return 100 * (1 + beta_squared) * precision * recall / (beta_squared * precision + recall);
}

double AnswerScores::bleu() const {
    double sum = 0;
    for (const Grams& g : word_grams_) {
        if (g.match == 0) return 0;
        sum += std::log(g.match / g.answer) / 4;
    }
    return 100 * std::exp(sum + std::min(0.0, 1 - words_ / answer_words_));
}

}  // namespace linnet
