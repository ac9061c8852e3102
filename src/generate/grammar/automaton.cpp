#include "generate/grammar/automaton.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"

namespace linnet {
namespace {

/// The rounds of an element that is no loop's: a call returns there (perhaps to where a loop begins).
constexpr std::int32_t call_return = -1;
/// Places of a program followed for one byte, and edges of sets at a time (some 100 MB of them). Sets as deep
/// as this are not united.
constexpr std::size_t most_places = 200'000, most_edges = 6'000'000;
constexpr int deepest = 10'000;

std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t both[2] = {a, b};
    return hash_bytes({reinterpret_cast<const char*>(both), sizeof both});
}

std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
}

}  // namespace

std::int32_t Automaton::Index::find_or_add(std::uint64_t hash, std::int32_t fresh, auto&& same) {
    if (4 * (used_ + 1) > 3 * slots_.size()) {
        std::vector<Slot> old =
            std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, 2 * slots_.size())));
        for (const Slot& s : old) {
            if (s.number < 0) continue;
            std::size_t at = s.hash & (slots_.size() - 1);
            while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = s;
        }
    }
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1))
        if (slots_[at].hash == hash && same(slots_[at].number)) return slots_[at].number;
    slots_[at] = {hash, fresh};
    used_++;
    return -1;
}

Automaton::Automaton(GrammarProgram program) : program_(std::move(program)) {
    reset();
    begin_state();
    go(program_.start(), make_set({}, true, false), 0);
    follow_all();
    start_ = finish_state();
}

void Automaton::reset() {
    edges_.clear();
    sets_.clear();
    states_.clear();
    state_of_set_.clear();
    steps_.clear();
    set_index_.clear();
    united_.clear();
    state_of(make_set({}, false, false));  // none, and dead
}

Automaton::StackSet Automaton::make_set(std::span<const Edge> edges, bool bottom, bool unknown) {
    const auto fresh = static_cast<StackSet>(sets_.size());
    const std::uint64_t hash =
        hash_bytes({reinterpret_cast<const char*>(edges.data()), edges.size_bytes()}, bottom + 2 * unknown);
    const StackSet known = set_index_.find_or_add(hash, fresh, [&](std::int32_t i) {
        const Set& s = sets_[static_cast<std::size_t>(i)];
        const std::span<const Edge> has = this->edges(i);
        return s.bottom == bottom && s.unknown == unknown &&
               std::equal(has.begin(), has.end(), edges.begin(), edges.end());
    });
    if (known >= 0) return known;
    sets_.push_back({static_cast<std::uint32_t>(edges_.size()), static_cast<std::uint32_t>(edges.size()),
                     bottom, unknown});
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    state_of_set_.push_back(-1);
    return fresh;
}

Automaton::StackSet Automaton::unite(StackSet a, StackSet b, int depth) {
    if (a == b || b == none) return a;
    if (a == none) return b;
    if (depth > deepest) {
        forgot_ = true;
        return a;
    }
    if (a > b) std::swap(a, b);
    const std::uint64_t key = pair_of(a, b);
    if (const auto known = united_.find(key); known != united_.end()) return known->second;
    const Set of_a = sets_[static_cast<std::size_t>(a)], of_b = sets_[static_cast<std::size_t>(b)];
    std::vector<Edge> both;
    std::uint32_t i = 0, j = 0;
    while (i < of_a.count || j < of_b.count) {
        // By number: edges_ moves as sets are made.
        const Edge* left = i < of_a.count ? &edges_[of_a.first + i] : nullptr;
        const Edge* right = j < of_b.count ? &edges_[of_b.first + j] : nullptr;
        if (!right || (left && left->top < right->top)) {
            both.push_back(*left), i++;
        } else if (!left || right->top < left->top) {
            both.push_back(*right), j++;
        } else {
            const Element top = left->top;
            both.push_back({top, unite(left->below, right->below, depth + 1)}), i++, j++;
        }
    }
    return united_[key] = make_set(both, of_a.bottom || of_b.bottom, of_a.unknown || of_b.unknown);
}

void Automaton::begin_state() {
    places_.clear();
    todo_.clear();
    place_index_.clear();
    end_ = leaves_ = false;
}

/// The text may stand at `pc` with these stacks below.
void Automaton::go(std::int32_t pc, StackSet below, std::int32_t fresh) {
    const bool waits_for_byte = program_.at(pc).op == Instruction::Op::bytes;
    if (waits_for_byte) fresh = 0;  // it ends the time in which they count
    const auto number = static_cast<std::int32_t>(places_.size());
    const std::int32_t known =
        place_index_.find_or_add(hash_of(static_cast<std::uint64_t>(pc), static_cast<std::uint64_t>(fresh)),
                                 number, [&](std::int32_t i) {
                                     const Place& p = places_[static_cast<std::size_t>(i)];
                                     return p.pc == pc && p.fresh == fresh;
                                 });
    if (known < 0) places_.push_back({pc, fresh, none, false});
    const std::int32_t at = known < 0 ? number : known;
    const StackSet all = unite(places_[static_cast<std::size_t>(at)].below, below);
    Place& place = places_[static_cast<std::size_t>(at)];
    if (all == place.below) return;
    place.below = all;
    if (place.waiting || waits_for_byte) return;
    place.waiting = true;
    todo_.push_back(at);
}

/// Goes on from every place until all wait for a byte. A place whose stacks grow is followed again.
void Automaton::follow_all() {
    for (std::size_t i = 0; i < todo_.size(); i++) {
        if (i > most_places || edges_.size() > most_edges) {
            forgot_ = true;
            return;
        }
        Place& place = places_[static_cast<std::size_t>(todo_[i])];
        place.waiting = false;
        follow(place);
    }
}

void Automaton::follow(Place place) {
    const Instruction& i = program_.at(place.pc);
    switch (i.op) {
        case Instruction::Op::bytes:
            break;
        case Instruction::Op::split:
            for (std::int32_t target : program_.targets(i)) go(target, place.below, place.fresh);
            break;
        case Instruction::Op::call:
            go(i.first, push({i.next, call_return}, place.below), place.fresh + 1);
            break;
        case Instruction::Op::loop:
            rounds_done(std::array{Edge{{place.pc, 0}, place.below}}, place.fresh);
            break;
        case Instruction::Op::ret:
            pop(place.below, place.fresh);
            break;
    }
}

/// As many rounds of a loop are done as the tops of these stacks say, ascending: another, or on behind it.
/// All numbers of rounds at once, as the sets in between would be as many as the rounds, each as large.
void Automaton::rounds_done(std::span<const Edge> stacks, std::int32_t fresh) {
    const std::int32_t pc = stacks[0].top.pc;
    const Instruction& loop = program_.at(pc);
    StackSet behind = none;
    for (std::size_t i = stacks.size();
         i-- > 0;)  // the longest there first: most unions are those of a byte ago
        if (stacks[i].top.rounds >= loop.min) behind = unite(behind, stacks[i].below);
    if (behind != none) go(loop.next, behind, fresh);
    std::vector<Edge> again;
    for (const Edge& edge : stacks) {
        const std::int32_t rounds = edge.top.rounds;
        if (loop.max >= 0 && rounds >= loop.max) continue;
        const std::int32_t done = loop.max < 0 ? std::min(rounds + 1, loop.min) : rounds + 1;
        if (!again.empty() && again.back().top.rounds == done)
            again.back().below = unite(again.back().below, edge.below);
        else
            again.push_back({{pc, done}, edge.below});
    }
    if (!again.empty()) go(loop.first, make_set(again, false, false), fresh + 1);
}

void Automaton::pop(StackSet stacks, std::int32_t fresh) {
    const Set set = sets_[static_cast<std::size_t>(stacks)];
    end_ |= set.bottom;
    leaves_ |= set.unknown;
    const auto first = edges_.begin() + set.first;
    const std::vector<Edge> tops(first, first + set.count);  // a copy: edges_ moves as sets are made
    for (std::size_t i = 0, end = 0; i < tops.size(); i = end) {
        const Element top = tops[i].top;
        end = i + 1;
        if (top.rounds == call_return) {
            go(top.pc, tops[i].below, std::max(fresh - 1, 0));
            continue;
        }
        while (end < tops.size() && tops[end].top.pc == top.pc) end++;
        if (fresh == 0)  // else the round consumed nothing
            rounds_done(std::span(tops).subspan(i, end - i), 0);
    }
}

GrammarState Automaton::finish_state() {
    std::vector<Edge> waiting;
    for (const Place& place : places_)
        if (program_.at(place.pc).op == Instruction::Op::bytes)
            waiting.push_back({{place.pc, 0}, place.below});
    std::sort(waiting.begin(), waiting.end(), [](const Edge& a, const Edge& b) { return a.top < b.top; });
    return state_of(make_set(waiting, end_, leaves_));
}

GrammarState Automaton::state_of(StackSet stacks) {
    GrammarState& known = state_of_set_[static_cast<std::size_t>(stacks)];
    if (known >= 0) return known;
    const Set& set = sets_[static_cast<std::size_t>(stacks)];
    State made{stacks, set.bottom || set.unknown};
    for (const Edge& edge : edges(stacks)) made.open |= program_.at(edge.top.pc).open;
    states_.push_back(made);
    // A dead state stays dead.
    const bool is_dead = states_.size() == 1;
    steps_.resize(states_.size() * program_.classes(), is_dead ? dead : -1);
    return known = static_cast<GrammarState>(states_.size() - 1);
}

GrammarState Automaton::make_step(GrammarState state, std::uint8_t byte) {
    begin_state();
    const Set from = set_of(state);
    for (std::uint32_t i = 0; i < from.count; i++) {
        const Edge top = edges_[from.first + i];
        for (const ByteEdge& edge : program_.edges(program_.at(top.top.pc)))
            if (edge.bytes.first <= byte && byte <= edge.bytes.last) go(edge.target, top.below, 0);
    }
    follow_all();
    const GrammarState made = finish_state();
    steps_[static_cast<std::size_t>(state) * program_.classes() + program_.class_of(byte)] = made;
    return made;
}

GrammarState Automaton::piece(std::span<const Element> top, bool whole) {
    StackSet stack = make_set({}, whole, !whole);
    for (std::size_t i = top.size(); i-- > 0;) stack = push(top[i], stack);
    return state_of(stack);
}

Automaton::Element Automaton::folded(Element element, std::size_t bytes) const {
    const Instruction& i = program_.at(element.pc);
    if (i.op != Instruction::Op::loop || element.rounds == call_return) return element;
    const std::int64_t done = element.rounds, n = static_cast<std::int64_t>(bytes);
    if (done >= i.min && (i.max < 0 || i.max - done > n)) return {element.pc, i.min};
    if (i.min - done > n && (i.max < 0 || i.max - done > n)) return {element.pc, 0};
    return element;
}

void Automaton::shrink(std::span<GrammarState* const> live) {
    std::vector<GrammarState*> all(live.begin(), live.end());
    all.push_back(&start_);
    const std::vector<Set> old_sets = std::exchange(sets_, {});
    const std::vector<Edge> old_edges = std::exchange(edges_, {});
    // A set was made after those below it.
    std::vector<bool> needed(old_sets.size(), false);
    std::vector<StackSet> stacks_of;
    for (const GrammarState* state : all) {
        stacks_of.push_back(stacks(*state));
        needed[static_cast<std::size_t>(stacks_of.back())] = true;
    }
    for (std::size_t i = old_sets.size(); i-- > 0;)
        for (std::uint32_t e = 0; needed[i] && e < old_sets[i].count; e++)
            needed[static_cast<std::size_t>(old_edges[old_sets[i].first + e].below)] = true;
    reset();
    std::vector<StackSet> now(old_sets.size(), none);
    for (std::size_t i = 0; i < old_sets.size(); i++) {
        if (!needed[i]) continue;
        const Set& set = old_sets[i];
        std::vector<Edge> edges(old_edges.begin() + set.first, old_edges.begin() + set.first + set.count);
        for (Edge& edge : edges) edge.below = now[static_cast<std::size_t>(edge.below)];
        now[i] = make_set(edges, set.bottom, set.unknown);
    }
    for (std::size_t i = 0; i < all.size(); i++)
        *all[i] = state_of(now[static_cast<std::size_t>(stacks_of[i])]);
}

}  // namespace linnet
