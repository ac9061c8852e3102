// Pair merging: the most frequent pair of neighbouring symbols becomes a symbol, again and again.
//
// Exact and incremental. Every word (a string of symbols with a count) is stored once; a pair knows its count
// and the words it occurs in, so a merge visits those words only. The pair's neighbours' counts follow from
// the merge itself: where L A B R becomes L T R, (L,A) loses what (L,T) gains and (B,R) loses what (T,R)
// gains. Hence an old pair never gains, the words of a new pair are all known when it appears (its list never
// grows), and the heap of pairs may be lazy: an entry that is out of date is only ever too high.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace linnet {

struct MergeLimits {
    std::size_t symbols = 0;                        // stop when there are so many (counting the initial ones)
    std::uint64_t min_frequency = 1;                // stop below this count
    std::size_t longest = 0;                        // characters in a symbol; 0: no limit
    std::string_view right_prefix;                  // what a right part loses when joined ("##")
    std::uint64_t memory = std::uint64_t{1} << 40;  // bytes
    std::size_t pair_memory = 0;  // of them for pairs and their lists; 0: what the words leave
};

/// Within `limits.memory` (the words themselves must fit: Error(Exit::io) says how much they take), pairs
/// that are too rare to be next are forgotten and counted again later; the merges do not depend on it.
///
/// Ties go to the smaller (left id, right id), as in Hugging Face's BpeTrainer. Two pairs may spell the same
/// symbol; the second then merges into the first's id, and adds a merge but no symbol (also as there).
class PairMerger {
  public:
    /// `symbols`: the initial ones. Their ids are their positions.
    PairMerger(std::vector<std::string> symbols, MergeLimits limits);
    ~PairMerger();

    /// Room for the words that will come: exact totals keep vectors from doubling.
    void reserve(std::size_t words, std::size_t symbols);
    /// Words of fewer than two symbols have no pair and are dropped.
    void add(std::span<const std::uint32_t> word, std::uint64_t count);

    /// Runs to the limits; `progress(merges done)` is called after every few merges and may throw.
    void run(const std::function<void(std::size_t)>& progress);

    const std::vector<std::string>& symbols() const;
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& merges() const;

    struct State;

  private:
    std::unique_ptr<State> state_;
};

}  // namespace linnet
