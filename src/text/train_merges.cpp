#include "text/train_merges.h"

#include <algorithm>
#include <unordered_map>

namespace linnet {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFFu;  // fills what a word no longer needs

struct Pair {
    std::uint64_t key = 0;  // left << 32 | right; free where count is 0 and key is 0
    std::uint64_t count = 0;
    const std::uint32_t* words = nullptr;  // ascending; may hold words that lost the pair since
    std::uint32_t word_count = 0;
};

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
}

/// Open addressing with backward-shift deletion; key 0 (the pair (0, 0)) is stored as all ones.
class PairTable {
  public:
    PairTable() : slots_(1 << 12) {}
    Pair* find(std::uint64_t key) {
        std::uint64_t k = stored(key);
        for (std::size_t i = home(k);; i = (i + 1) & mask()) {
            if (slots_[i].key == k) return &slots_[i];
            if (slots_[i].key == 0) return nullptr;
        }
    }
    /// The entry of `key`, made where it is missing. Valid until the next call.
    Pair& at(std::uint64_t key) {
        if (Pair* found = find(key)) return *found;
        if (++size_ * 10 > slots_.size() * 7) grow();
        Pair& free = slots_[vacancy(stored(key))];
        free = {stored(key), 0, nullptr, 0};
        return free;
    }
    void erase(Pair* entry) {
        size_--;
        std::size_t hole = static_cast<std::size_t>(entry - slots_.data());
        for (std::size_t i = (hole + 1) & mask(); slots_[i].key != 0; i = (i + 1) & mask()) {
            std::size_t distance = (i - home(slots_[i].key)) & mask();
            if (distance < ((i - hole) & mask())) continue;
            slots_[hole] = slots_[i];
            hole = i;
        }
        slots_[hole] = {};
    }
    void clear() {
        slots_ = std::vector<Pair>(1 << 12);
        size_ = 0;
    }
    template <class Visit>
    void each(Visit visit) {
        for (Pair& pair : slots_)
            if (pair.key != 0) visit(pair);
    }
    static std::uint64_t key(const Pair& pair) { return pair.key == ~std::uint64_t{0} ? 0 : pair.key; }
    std::size_t size() const { return size_; }
    std::size_t memory() const { return slots_.size() * sizeof(Pair); }

  private:
    static std::uint64_t stored(std::uint64_t key) { return key == 0 ? ~std::uint64_t{0} : key; }
    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(std::uint64_t key) const {
        std::uint64_t h = key * 0x9E3779B97F4A7C15u;
        return (h ^ h >> 32) & mask();
    }
    std::size_t vacancy(std::uint64_t key) const {
        std::size_t i = home(key);
        while (slots_[i].key != 0) i = (i + 1) & mask();
        return i;
    }
    void grow() {
        std::vector<Pair> old(slots_.size() * 2);
        old.swap(slots_);
        for (Pair& pair : old)
            if (pair.key != 0) slots_[vacancy(pair.key)] = pair;
    }
    std::vector<Pair> slots_;
    std::size_t size_ = 0;
};

/// Lists of words, never freed one by one.
class ListArena {
  public:
    std::uint32_t* allocate(std::size_t n) {
        if (n > left_) {
            std::size_t size = std::max(n, chunk);
            chunks_.emplace_back(new std::uint32_t[size]);
            memory_ += size * sizeof(std::uint32_t);
            if (size > chunk) return chunks_.back().get();  // a long list has a chunk of its own
            next_ = chunks_.back().get();
            left_ = size;
        }
        std::uint32_t* list = next_;
        next_ += n;
        left_ -= n;
        return list;
    }
    void clear() {
        chunks_.clear();
        next_ = nullptr;
        left_ = memory_ = 0;
    }
    std::size_t memory() const { return memory_; }

  private:
    static constexpr std::size_t chunk = std::size_t{1} << 18;
    std::vector<std::unique_ptr<std::uint32_t[]>> chunks_;
    std::uint32_t* next_ = nullptr;
    std::size_t left_ = 0, memory_ = 0;
};

struct HeapItem {
    std::uint64_t count, key;
    bool operator<(const HeapItem& other) const {
        return count != other.count ? count < other.count : key > other.key;
    }
};

std::size_t characters(std::string_view text) {
    std::size_t n = 0;
    for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
}

}  // namespace

struct PairMerger::State {
    MergeLimits limits;
    std::vector<std::string> symbols;
    std::unordered_map<std::string, std::uint32_t> ids;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;

    // Word w is text[start[w] .. start[w + 1]), up to the first `none`.
    std::vector<std::uint32_t> text;
    std::vector<std::uint64_t> start{0};
    std::vector<std::uint64_t> counts;

    PairTable pairs;
    ListArena lists;
    std::vector<HeapItem> heap;

    // What one merge gains, by neighbour: left[L] is (L, T), right[R] is (T, R); self is (T, T).
    struct Gain {
        std::uint64_t count = 0;
        std::uint32_t words = 0;        // in how many words, at most
        std::uint32_t* list = nullptr;  // being filled
        std::uint32_t filled = 0;
    };
    std::vector<Gain> gains;  // [0, V) left, [V, 2V) right, 2V self
    std::vector<std::uint32_t> touched;
    struct Sighting {
        std::uint32_t gain, word;
    };
    std::vector<Sighting> sightings;

    std::uint32_t stride() const { return static_cast<std::uint32_t>(limits.symbols + 1); }
    std::uint32_t marker() const { return static_cast<std::uint32_t>(limits.symbols); }

    std::string joined(std::uint32_t left, std::uint32_t right) const {
        std::string_view tail = symbols[right];
        if (!limits.right_prefix.empty() && tail.starts_with(limits.right_prefix))
            tail.remove_prefix(limits.right_prefix.size());
        return symbols[left] + std::string(tail);
    }
    bool allowed(std::uint32_t left, std::uint32_t right) const {
        return limits.longest == 0 ||
               characters(symbols[left]) + characters(symbols[right]) <= limits.longest;
    }
    void push(std::uint64_t key, std::uint64_t count) {
        heap.push_back({count, key});
        std::push_heap(heap.begin(), heap.end());
    }

    void count_all();
    std::span<std::uint32_t> word(std::uint32_t w) {
        return {text.data() + start[w], static_cast<std::size_t>(start[w + 1] - start[w])};
    }
    bool replace(std::span<std::uint32_t> word, std::uint32_t a, std::uint32_t b, std::uint32_t t) const;
    void gain(std::uint32_t index, std::uint32_t w);
    void see(std::uint32_t w, std::uint32_t t);
    void settle(std::uint32_t a, std::uint32_t b, std::uint32_t t, bool lose, bool keep);
    void lose(std::uint64_t key, std::uint64_t count);
    void keep_gain(std::uint32_t index, std::uint64_t key);
    void merge(std::uint32_t a, std::uint32_t b);
    void join_twin(std::uint32_t t);
    bool pop(HeapItem& best);
};

PairMerger::PairMerger(std::vector<std::string> symbols, MergeLimits limits) : state_(new State) {
    State& s = *state_;
    s.limits = limits;
    s.limits.symbols = std::max(limits.symbols, symbols.size());
    s.symbols = std::move(symbols);
    for (std::size_t i = 0; i < s.symbols.size(); i++)
        s.ids.emplace(s.symbols[i], static_cast<std::uint32_t>(i));
    s.gains.resize(2 * std::size_t{s.stride()} + 1);
}

PairMerger::~PairMerger() = default;

const std::vector<std::string>& PairMerger::symbols() const {
    return state_->symbols;
}
const std::vector<std::pair<std::uint32_t, std::uint32_t>>& PairMerger::merges() const {
    return state_->merges;
}

void PairMerger::reserve(std::size_t words, std::size_t symbols) {
    state_->start.reserve(words + 1);
    state_->counts.reserve(words);
    state_->text.reserve(symbols);
}

void PairMerger::add(std::span<const std::uint32_t> word, std::uint64_t count) {
    if (word.size() < 2) return;
    State& s = *state_;
    s.text.insert(s.text.end(), word.begin(), word.end());
    s.start.push_back(s.text.size());
    s.counts.push_back(count);
}

/// Counts every pair and lists its words: once to count, once to fill.
void PairMerger::State::count_all() {
    std::size_t words = counts.size();
    auto each_pair = [&](auto visit) {
        for (std::size_t w = 0; w < words; w++)
            for (std::uint64_t i = start[w]; i + 1 < start[w + 1] && text[i + 1] != none; i++)
                visit(static_cast<std::uint32_t>(w), text[i], text[i + 1]);
    };
    each_pair([&](std::uint32_t w, std::uint32_t left, std::uint32_t right) {
        Pair& pair = pairs.at(pair_key(left, right));
        pair.count += counts[w];
        pair.word_count++;
    });
    heap.clear();
    pairs.each([&](Pair& pair) {
        std::uint64_t key = PairTable::key(pair);
        auto left = static_cast<std::uint32_t>(key >> 32), right = static_cast<std::uint32_t>(key);
        if (pair.count < limits.min_frequency || !allowed(left, right)) return;
        heap.push_back({pair.count, key});
        pair.words = lists.allocate(pair.word_count);
        pair.word_count = 0;
    });
    each_pair([&](std::uint32_t w, std::uint32_t left, std::uint32_t right) {
        Pair& pair = *pairs.find(pair_key(left, right));
        auto* list = const_cast<std::uint32_t*>(pair.words);
        if (list && (pair.word_count == 0 || list[pair.word_count - 1] != w)) list[pair.word_count++] = w;
    });
    std::make_heap(heap.begin(), heap.end());
}

/// Replaces a b by t from left to right; false where there was none.
bool PairMerger::State::replace(std::span<std::uint32_t> word, std::uint32_t a, std::uint32_t b,
                                std::uint32_t t) const {
    std::size_t n = word.size(), i = 0;
    while (i + 1 < n && word[i] != none && !(word[i] == a && word[i + 1] == b)) i++;
    if (i + 1 >= n || word[i] == none) return false;
    std::size_t out = i;
    while (i < n && word[i] != none) {
        bool here = word[i] == a && i + 1 < n && word[i + 1] == b;
        word[out++] = here ? t : word[i];
        i += here ? 2 : 1;
    }
    while (out < i) word[out++] = none;
    return true;
}

void PairMerger::State::gain(std::uint32_t index, std::uint32_t w) {
    Gain& g = gains[index];
    if (g.words++ == 0) touched.push_back(index);
    g.count += counts[w];
    sightings.push_back({index, w});
}

/// Notes the neighbours of every t in word w.
void PairMerger::State::see(std::uint32_t w, std::uint32_t t) {
    std::span<std::uint32_t> word = this->word(w);
    for (std::size_t i = 0; i < word.size() && word[i] != none; i++) {
        if (word[i] != t) continue;
        if (i > 0) {
            if (word[i - 1] == t)
                gain(2 * stride(), w);
            else
                gain(word[i - 1], w);
        }
        if (i + 1 < word.size() && word[i + 1] != none && word[i + 1] != t) gain(stride() + word[i + 1], w);
    }
}

void PairMerger::State::lose(std::uint64_t key, std::uint64_t count) {
    Pair* pair = pairs.find(key);
    if (!pair) return;
    if (pair->count > count && pair->count - count >= limits.min_frequency)
        pair->count -= count;
    else
        pairs.erase(pair);
}

void PairMerger::State::keep_gain(std::uint32_t index, std::uint64_t key) {
    Gain& g = gains[index];
    auto left = static_cast<std::uint32_t>(key >> 32), right = static_cast<std::uint32_t>(key);
    if (g.count < limits.min_frequency || !allowed(left, right)) return;
    g.list = lists.allocate(g.words);
    push(key, g.count);
}

/// Books what was seen: pairs with a and b lose (`lose`), pairs with t are made (`keep`).
void PairMerger::State::settle(std::uint32_t a, std::uint32_t b, std::uint32_t t, bool lose, bool keep) {
    auto key_of = [&](std::uint32_t index) {
        if (index == 2 * stride()) return pair_key(t, t);
        return index < stride() ? pair_key(index, t) : pair_key(t, index - stride());
    };
    if (lose)
        for (std::uint32_t index : touched) {
            if (index == 2 * stride())
                this->lose(pair_key(b, a), gains[index].count);
            else
                this->lose(index < stride() ? pair_key(index, a) : pair_key(b, index - stride()),
                           gains[index].count);
        }
    if (keep) {
        for (std::uint32_t index : touched) keep_gain(index, key_of(index));
        for (Sighting s : sightings) {
            Gain& g = gains[s.gain];
            if (g.list && (g.filled == 0 || g.list[g.filled - 1] != s.word)) g.list[g.filled++] = s.word;
        }
        for (std::uint32_t index : touched) {
            Gain& g = gains[index];
            if (!g.list) continue;
            Pair& pair = pairs.at(key_of(index));
            pair.count = g.count;
            pair.words = g.list;
            pair.word_count = g.filled;
        }
    }
    for (std::uint32_t index : touched) gains[index] = {};
    touched.clear();
    sightings.clear();
}

void PairMerger::State::merge(std::uint32_t a, std::uint32_t b) {
    std::string spelled = joined(a, b);
    auto twin = ids.find(spelled);
    bool fresh = twin == ids.end();
    std::uint32_t t = fresh ? static_cast<std::uint32_t>(symbols.size()) : twin->second;
    merges.emplace_back(a, b);
    if (fresh) {
        ids.emplace(spelled, t);
        symbols.push_back(std::move(spelled));
    }
    Pair* pair = pairs.find(pair_key(a, b));
    std::span<const std::uint32_t> list(pair->words, pair->word_count);
    pairs.erase(pair);
    // A twin's words are marked first, so that only the merges of this pair are booked as losses.
    std::uint32_t mark = fresh ? t : marker();
    for (std::uint32_t w : list)
        if (replace(word(w), a, b, mark)) see(w, mark);
    settle(a, b, t, true, fresh);
    if (!fresh) join_twin(t);
}

/// The marked symbols become t, which was there before: all its pairs are counted anew.
void PairMerger::State::join_twin(std::uint32_t t) {
    std::uint32_t mark = marker();
    for (std::size_t w = 0; w < counts.size(); w++) {
        bool here = false;
        for (std::uint32_t& symbol : word(static_cast<std::uint32_t>(w))) {
            if (symbol == mark) symbol = t;
            here |= symbol == t;
        }
        if (here) see(static_cast<std::uint32_t>(w), t);
    }
    settle(t, t, t, false, true);
}

/// The most frequent pair; false where none is left.
bool PairMerger::State::pop(HeapItem& best) {
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end());
        best = heap.back();
        heap.pop_back();
        Pair* pair = pairs.find(best.key);
        if (!pair || pair->count == 0) continue;
        if (pair->count == best.count) return true;
        push(best.key, pair->count);  // it lost since
    }
    return false;
}

void PairMerger::run(const std::function<void(std::size_t)>& progress) {
    State& s = *state_;
    s.count_all();
    HeapItem best;
    while (s.symbols.size() < s.limits.symbols && s.pop(best)) {
        s.merge(static_cast<std::uint32_t>(best.key >> 32), static_cast<std::uint32_t>(best.key));
        if (s.merges.size() % 64 == 0) progress(s.merges.size());
    }
}

}  // namespace linnet
