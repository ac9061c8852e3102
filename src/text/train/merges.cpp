#include "text/train/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "base/error.h"
#include "base/keyed_hash.h"
#include "base/utf8.h"
#include "text/train/pairs.h"

namespace linnet {
namespace {

struct HeapItem {
    std::uint64_t count, key;
    bool operator<(const HeapItem& other) const {
        return count != other.count ? count < other.count : key > other.key;
    }
};

/// Pairs by how frequent they are, in classes of an eighth of a power of two: what the pairs of a class would
/// hold.
class Census {
  public:
    static std::size_t class_of(std::uint64_t count) {
        auto high = static_cast<std::size_t>(std::bit_width(count)) - 1;
        return high < 3 ? static_cast<std::size_t>(count) : (high - 1) * 8 + (count >> (high - 3) & 7);
    }
    /// The smallest count of a class.
    static std::uint64_t floor_of(std::size_t c) {
        if (c < 16) return c;
        std::size_t high = c / 8 + 1;
        return (std::uint64_t{8} + c % 8) << (high - 3);
    }
    void add(std::uint64_t count, std::size_t bytes) { bytes_[class_of(count)] += bytes; }
    /// The least count such that the pairs from there up stay within `budget` (the highest class in use is
    /// always in).
    std::uint64_t threshold(std::size_t budget, std::uint64_t least) const {
        std::size_t sum = 0, c = bytes_.size() - 1;
        while (c > 0 && bytes_[c] == 0) c--;
        for (sum = bytes_[c]; c > 1 && sum + bytes_[c - 1] <= budget; c--) sum += bytes_[c - 1];
        return std::max(floor_of(c), least);
    }

  private:
    std::array<std::size_t, 512> bytes_{};
};

}  // namespace

/// What does not depend on the width of a symbol.
struct PairMerger::State {
    MergeLimits limits;
    std::vector<std::string> symbols;
    std::unordered_map<std::string, std::uint32_t, KeyedHash> ids;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;

    virtual ~State() = default;
    virtual void reserve(std::size_t words, std::size_t total) = 0;
    virtual void add(std::span<const std::uint32_t> word, std::uint64_t count) = 0;
    virtual void run(const std::function<void(std::size_t)>& progress) = 0;
};

namespace {

/// `Symbol`: 16 bits where the ids fit (half the memory, and the walks over it are what merging costs),
/// else 32.
template <class Symbol>
class MergeEngine final : public PairMerger::State {
  public:
    void reserve(std::size_t words, std::size_t total) override;
    void add(std::span<const std::uint32_t> word, std::uint64_t count) override;
    void run(const std::function<void(std::size_t)>& progress) override;

  private:
    static constexpr Symbol none = static_cast<Symbol>(~Symbol{0});  // fills what a word no longer needs

    // What one merge gains, by neighbour: index L is (L, T), stride + R is (T, R), 2 * stride is (T, T).
    struct Gain {
        std::uint64_t count = 0;
        std::uint32_t words = 0;        // in how many words, at most
        std::uint32_t* list = nullptr;  // being filled
        std::uint32_t filled = 0;
    };
    std::uint32_t stride() const { return static_cast<std::uint32_t>(limits.symbols + 1); }
    std::uint32_t marker() const { return static_cast<std::uint32_t>(limits.symbols); }
    std::uint32_t words() const { return static_cast<std::uint32_t>(counts_.size()); }
    std::span<Symbol> word(std::uint32_t w) {
        return {text_.data() + start_[w], static_cast<std::size_t>(start_[w + 1] - start_[w])};
    }
    template <class Visit>
    void each_pair(Visit visit);
    std::string joined(std::uint32_t left, std::uint32_t right) const;
    bool allowed(std::uint64_t key) const;
    std::size_t held() const {
        return lists_.memory() + pairs_.memory() + heap_.capacity() * sizeof(HeapItem);
    }
    void push(std::uint64_t key, std::uint64_t count);

    void count_all();
    std::uint64_t survey(std::size_t budget);
    void list_words();
    bool replace(std::span<Symbol> word, std::uint32_t a, std::uint32_t b, std::uint32_t t) const;
    template <class Visit>
    void each_neighbour(std::uint32_t w, std::uint32_t t, Visit visit);
    void see(std::uint32_t w, std::uint32_t t);
    void settle(std::uint32_t a, std::uint32_t b, std::uint32_t t, bool lose, bool keep);
    void lose(std::uint64_t key, std::uint64_t count);
    void merge(std::uint32_t a, std::uint32_t b);
    void join_twin(std::uint32_t t);
    bool pop(HeapItem& best);

    // Word w is text_[start_[w] .. start_[w + 1]), up to the first `none`.
    std::vector<Symbol> text_;
    std::vector<std::uint32_t> start_{0};
    std::vector<std::uint64_t> counts_;

    // Only pairs of at least threshold_ are known; the others are below it, and are counted again when they
    // are wanted. So memory is bounded by raising the threshold, and the merges are the same.
    std::uint64_t threshold_ = 1;
    std::size_t budget_ = 0;  // bytes for pairs_, lists_ and heap_
    PairTable pairs_;
    ListArena lists_;
    std::vector<HeapItem> heap_;

    std::vector<Gain> gains_;
    std::vector<std::uint32_t> touched_;
    std::vector<std::uint32_t> seen_;  // words
};

template <class Symbol>
void MergeEngine<Symbol>::reserve(std::size_t words, std::size_t total) {
    start_.reserve(words + 1);
    counts_.reserve(words);
    text_.reserve(total);
}

template <class Symbol>
void MergeEngine<Symbol>::add(std::span<const std::uint32_t> word, std::uint64_t count) {
    if (text_.size() + word.size() > 0xFFFFFFFFu)
        fail_input("", "tokenizer training", "distinct words of at most 4 294 967 295 symbols in all",
                   "more");
    for (std::uint32_t symbol : word) text_.push_back(static_cast<Symbol>(symbol));
    start_.push_back(static_cast<std::uint32_t>(text_.size()));
    counts_.push_back(count);
}

template <class Symbol>
template <class Visit>
void MergeEngine<Symbol>::each_pair(Visit visit) {
    for (std::uint32_t w = 0; w < words(); w++)
        for (std::uint32_t i = start_[w]; i + 1 < start_[w + 1] && text_[i + 1] != none; i++)
            visit(w, pair_key(text_[i], text_[i + 1]));
}

template <class Symbol>
std::string MergeEngine<Symbol>::joined(std::uint32_t left, std::uint32_t right) const {
    std::string_view tail = symbols[right];
    if (!limits.right_prefix.empty() && tail.starts_with(limits.right_prefix))
        tail.remove_prefix(limits.right_prefix.size());
    return symbols[left] + std::string(tail);
}

template <class Symbol>
bool MergeEngine<Symbol>::allowed(std::uint64_t key) const {
    if (limits.longest == 0) return true;
    auto left = static_cast<std::uint32_t>(key >> 32), right = static_cast<std::uint32_t>(key);
    const auto characters = [this](std::uint32_t symbol) {
        return static_cast<std::size_t>(character_count(symbols[symbol]));
    };
    return characters(left) + characters(right) <= limits.longest;
}

template <class Symbol>
void MergeEngine<Symbol>::push(std::uint64_t key, std::uint64_t count) {
    heap_.push_back({count, key});
    std::push_heap(heap_.begin(), heap_.end());
}

/// Counts the pairs anew and keeps the frequent ones, as many as half of the budget holds; the other half is
/// for what merging adds.
template <class Symbol>
void MergeEngine<Symbol>::count_all() {
    lists_.clear();
    heap_ = {};
    threshold_ = survey(budget_ / 2);
    list_words();
    heap_.reserve(pairs_.size());
    pairs_.each([&](Pair& pair) { heap_.push_back({pair.count, PairTable::key(pair)}); });
    std::make_heap(heap_.begin(), heap_.end());
}

/// Fills pairs_ with the pairs from some count on, and returns that count. All pairs at once may be too many,
/// so they are counted by classes of their key's hash, in as many passes as it takes.
template <class Symbol>
std::uint64_t MergeEngine<Symbol>::survey(std::size_t budget) {
    for (std::uint64_t passes = 1;; passes *= 4) {
        Census census;
        std::vector<Pair> kept;
        std::uint64_t threshold = limits.min_frequency;
        bool fits = true;
        for (std::uint64_t pass = 0; pass < passes && fits; pass++) {
            pairs_.clear();
            each_pair([&](std::uint32_t w, std::uint64_t key) {
                if (!fits || (passes > 1 && (key * 0x9E3779B97F4A7C15u >> 40) % passes != pass)) return;
                // While the table grows, the old one and the new one of twice its size are held.
                if (pairs_.full() && pairs_.memory() * 3 > budget && passes < 1024) {
                    fits = pairs_.find(key) != nullptr;
                    if (!fits) return;
                }
                Pair& pair = pairs_.at(key);
                pair.count += counts_[w];
                pair.word_count++;
            });
            pairs_.each([&](Pair& pair) {
                if (pair.count < limits.min_frequency || !allowed(PairTable::key(pair))) return;
                census.add(pair.count, 4 * sizeof(Pair) + pair.word_count * sizeof(std::uint32_t));
                if (pair.count >= threshold) kept.push_back(pair);
            });
            threshold = census.threshold(budget, limits.min_frequency);
            std::erase_if(kept, [&](const Pair& pair) { return pair.count < threshold; });
        }
        if (!fits) continue;
        pairs_.clear();
        for (const Pair& pair : kept) {
            Pair& entry = pairs_.at(PairTable::key(pair));
            entry.count = pair.count;
            entry.word_count = pair.word_count;
        }
        return threshold;
    }
}

/// Gives the pairs their lists. A pair in a quarter of all words needs none: walking over all costs little
/// more.
template <class Symbol>
void MergeEngine<Symbol>::list_words() {
    pairs_.each([&](Pair& pair) {
        bool everywhere = pair.word_count > words() / 4;
        bool room = held() + pair.word_count * sizeof(std::uint32_t) <= budget_;
        if (!everywhere && room) pair.words = lists_.allocate(pair.word_count);
        pair.word_count = 0;
    });
    each_pair([&](std::uint32_t w, std::uint64_t key) {
        Pair* pair = pairs_.find(key);
        if (!pair || !pair->words) return;
        auto* list = const_cast<std::uint32_t*>(pair->words);
        if (pair->word_count == 0 || list[pair->word_count - 1] != w) list[pair->word_count++] = w;
    });
}

/// Replaces a b by t from left to right; false where there was none.
template <class Symbol>
bool MergeEngine<Symbol>::replace(std::span<Symbol> word, std::uint32_t a, std::uint32_t b,
                                  std::uint32_t t) const {
    std::size_t n = word.size(), i = 0;
    while (i + 1 < n && word[i] != none && !(word[i] == a && word[i + 1] == b)) i++;
    if (i + 1 >= n || word[i] == none) return false;
    std::size_t out = i;
    while (i < n && word[i] != none) {
        bool here = word[i] == a && i + 1 < n && word[i + 1] == b;
        word[out++] = here ? static_cast<Symbol>(t) : word[i];
        i += here ? 2 : 1;
    }
    while (out < i) word[out++] = none;
    return true;
}

/// visit(index of a Gain) for the neighbours of every t in word w.
template <class Symbol>
template <class Visit>
void MergeEngine<Symbol>::each_neighbour(std::uint32_t w, std::uint32_t t, Visit visit) {
    std::span<Symbol> word = this->word(w);
    for (std::size_t i = 0; i < word.size() && word[i] != none; i++) {
        if (word[i] != t) continue;
        if (i > 0) visit(word[i - 1] == t ? 2 * stride() : word[i - 1]);
        if (i + 1 < word.size() && word[i + 1] != none && word[i + 1] != t) visit(stride() + word[i + 1]);
    }
}

/// Counts what t gains by word w.
template <class Symbol>
void MergeEngine<Symbol>::see(std::uint32_t w, std::uint32_t t) {
    seen_.push_back(w);
    each_neighbour(w, t, [&](std::uint32_t index) {
        Gain& g = gains_[index];
        if (g.words++ == 0) touched_.push_back(index);
        g.count += counts_[w];
    });
}

template <class Symbol>
void MergeEngine<Symbol>::lose(std::uint64_t key, std::uint64_t count) {
    Pair* pair = pairs_.find(key);
    if (!pair) return;
    if (pair->count > count && pair->count - count >= threshold_)
        pair->count -= count;
    else
        pairs_.erase(pair);
}

/// Books what was seen: pairs with a and b lose (`lose`), pairs with t are made (`keep`).
template <class Symbol>
void MergeEngine<Symbol>::settle(std::uint32_t a, std::uint32_t b, std::uint32_t t, bool lose, bool keep) {
    auto key_of = [&](std::uint32_t index, std::uint32_t left_of, std::uint32_t right_of) {
        if (index == 2 * stride()) return pair_key(right_of, left_of);
        return index < stride() ? pair_key(index, left_of) : pair_key(right_of, index - stride());
    };
    if (lose)
        for (std::uint32_t index : touched_) this->lose(key_of(index, a, b), gains_[index].count);
    if (keep) {
        for (std::uint32_t index : touched_) {
            Gain& g = gains_[index];
            if (g.count >= threshold_ && allowed(key_of(index, t, t))) g.list = lists_.allocate(g.words);
        }
        // The words are walked again for their lists: noting every neighbour above would take four times the
        // memory, and it is not in the budget.
        for (std::uint32_t w : seen_)
            each_neighbour(w, t, [&](std::uint32_t index) {
                Gain& g = gains_[index];
                if (g.list && (g.filled == 0 || g.list[g.filled - 1] != w)) g.list[g.filled++] = w;
            });
        for (std::uint32_t index : touched_) {
            Gain& g = gains_[index];
            if (!g.list) continue;
            Pair& pair = pairs_.at(key_of(index, t, t));
            pair.count = g.count;
            pair.words = g.list;
            pair.word_count = g.filled;
            push(PairTable::key(pair), g.count);
        }
    }
    for (std::uint32_t index : touched_) gains_[index] = {};
    touched_.clear();
    seen_.clear();
}

template <class Symbol>
void MergeEngine<Symbol>::merge(std::uint32_t a, std::uint32_t b) {
    std::string spelled = joined(a, b);
    auto twin = ids.find(spelled);
    bool fresh = twin == ids.end();
    std::uint32_t t = fresh ? static_cast<std::uint32_t>(symbols.size()) : twin->second;
    merges.emplace_back(a, b);
    if (fresh) {
        ids.emplace(spelled, t);
        symbols.push_back(std::move(spelled));
    }
    Pair* found = pairs_.find(pair_key(a, b));
    const Pair pair = *found;
    pairs_.erase(found);
    // A twin's words are marked first, so that only the merges of this pair count as losses.
    std::uint32_t mark = fresh ? t : marker();
    auto visit = [&](std::uint32_t w) {
        if (replace(word(w), a, b, mark)) see(w, mark);
    };
    if (pair.words)
        for (std::uint32_t i = 0; i < pair.word_count; i++) visit(pair.words[i]);
    else
        for (std::uint32_t w = 0; w < words(); w++) visit(w);
    settle(a, b, t, true, fresh);
    if (!fresh) join_twin(t);
}

/// The marked symbols become t, which was there before: all its pairs are counted anew.
template <class Symbol>
void MergeEngine<Symbol>::join_twin(std::uint32_t t) {
    std::uint32_t mark = marker();
    for (std::uint32_t w = 0; w < words(); w++) {
        bool here = false;
        for (Symbol& symbol : word(w)) {
            if (symbol == mark) symbol = static_cast<Symbol>(t);
            here |= symbol == t;
        }
        if (here) see(w, t);
    }
    settle(t, t, t, false, true);
}

/// The most frequent pair; false where none is left.
template <class Symbol>
bool MergeEngine<Symbol>::pop(HeapItem& best) {
    for (;;) {
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end());
            best = heap_.back();
            heap_.pop_back();
            Pair* pair = pairs_.find(best.key);
            if (!pair) continue;
            if (pair->count == best.count) return true;
            push(best.key, pair->count);  // it lost since
        }
        if (threshold_ <= limits.min_frequency) return false;
        count_all();  // what is left is below the threshold
        if (heap_.empty()) return false;
    }
}

template <class Symbol>
void MergeEngine<Symbol>::run(const std::function<void(std::size_t)>& progress) {
    std::size_t held_by_words = text_.capacity() * sizeof(Symbol) +
                                start_.capacity() * sizeof(std::uint32_t) +
                                counts_.capacity() * sizeof(std::uint64_t);
    gains_.resize(2 * std::size_t{stride()} + 1);
    // Outside the budget: the words and what allocating them has lost, the program itself, the symbols'
    // spellings, what one merge gains (measured: 1 GB of text, 32 000 tokens).
    const std::uint64_t others =
        held_by_words + held_by_words / 8 + (std::uint64_t{20} << 20) + limits.memory / 16;
    if (others + (std::uint64_t{12} << 20) > limits.memory)
        fail(Exit::io, "", "tokenizer training",
             "at least " + std::to_string(((held_by_words * 9 / 8 >> 20) + 33) * 16 / 15 + 1) +
                 " MiB of memory",
             std::to_string(limits.memory >> 20) + " MiB",
             std::to_string(words()) + " distinct words must be held while pairs merge; raise --mem");
    budget_ = limits.pair_memory > 0 ? limits.pair_memory : limits.memory - others;
    count_all();
    HeapItem best;
    while (symbols.size() < limits.symbols && pop(best)) {
        merge(static_cast<std::uint32_t>(best.key >> 32), static_cast<std::uint32_t>(best.key));
        if (held() > budget_) count_all();
        if (merges.size() % 64 == 0) progress(merges.size());
    }
}

}  // namespace

PairMerger::PairMerger(std::vector<std::string> symbols, MergeLimits limits) {
    limits.symbols = std::max(limits.symbols, symbols.size());
    limits.min_frequency = std::max<std::uint64_t>(limits.min_frequency, 1);
    if (limits.symbols < 0xFFFF)
        state_ = std::make_unique<MergeEngine<std::uint16_t>>();
    else
        state_ = std::make_unique<MergeEngine<std::uint32_t>>();
    for (std::size_t i = 0; i < symbols.size(); i++)
        state_->ids.emplace(symbols[i], static_cast<std::uint32_t>(i));
    state_->limits = limits;
    state_->symbols = std::move(symbols);
}

PairMerger::~PairMerger() = default;

const std::vector<std::string>& PairMerger::symbols() const {
    return state_->symbols;
}
const std::vector<std::pair<std::uint32_t, std::uint32_t>>& PairMerger::merges() const {
    return state_->merges;
}
void PairMerger::reserve(std::size_t words, std::size_t symbols) {
    state_->reserve(words, symbols);
}
void PairMerger::add(std::span<const std::uint32_t> word, std::uint64_t count) {
    if (word.size() >= 2) state_->add(word, count);
}
void PairMerger::run(const std::function<void(std::size_t)>& progress) {
    state_->run(progress);
}

}  // namespace linnet
