#include "generate/grammar/automaton.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace linnet {
namespace {

/// The rounds of an element that is no loop's: a call returns there (perhaps to where a loop begins).
constexpr std::int32_t call_return = -1;
/// Places of a program looked at for one byte, and stacks at a time (some 300 MB of them): only grammars with
/// very many readings come so far.
constexpr std::size_t most_places = 100'000, most_nodes = 6'000'000;

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
    follow(program_.start(), bottom);
    start_ = finish_state();
}

void Automaton::reset() {
    nodes_.assign(2, {});  // the two that are no elements
    members_.clear();
    states_.clear();
    steps_.clear();
    node_index_.clear();
    state_index_.clear();
    begin_state();
    finish_state();  // dead
}

Automaton::StackId Automaton::push(Element element, StackId below) {
    const auto fresh = static_cast<StackId>(nodes_.size());
    const StackId known = node_index_.find_or_add(
        hash_of(pair_of(element.pc, element.rounds), static_cast<std::uint64_t>(below)), fresh,
        [&](std::int32_t i) {
            const Node& node = nodes_[static_cast<std::size_t>(i)];
            return node.top == element && node.below == below;
        });
    if (known >= 0) return known;
    nodes_.push_back({element, below});
    return fresh;
}

void Automaton::begin_state() {
    found_.clear();
    end_ = leaves_ = false;
}

/// Adds all stacks that wait for a byte behind `pc` with this stack below.
void Automaton::follow(std::int32_t pc, StackId below) {
    places_.clear();
    place_index_.clear();
    todo_ = 0;
    go({pc, below, 0});
    while (todo_ < places_.size()) {
        if (found_.size() >= most_stacks || places_.size() > most_places || nodes_.size() > most_nodes) {
            forgot_ = true;
            return;
        }
        const Place place = places_[todo_++];
        const Instruction& i = program_.at(place.pc);
        switch (i.op) {
            case Instruction::Op::bytes: {
                const StackId stack = push({place.pc, 0}, place.below);
                if (std::find(found_.begin(), found_.end(), stack) == found_.end()) found_.push_back(stack);
                break;
            }
            case Instruction::Op::split:
                for (std::int32_t target : program_.targets(i)) go({target, place.below, place.fresh});
                break;
            case Instruction::Op::call:
                go({i.first, push({i.next, call_return}, place.below), place.fresh + 1});
                break;
            case Instruction::Op::loop:
                enter_loop(place.pc, place.below, 0, place.fresh);
                break;
            case Instruction::Op::ret:
                pop(place);
                break;
        }
    }
}

void Automaton::go(Place place) {
    const auto fresh = static_cast<std::int32_t>(places_.size());
    const std::int32_t known = place_index_.find_or_add(
        hash_of(pair_of(place.pc, place.below), static_cast<std::uint64_t>(place.fresh)), fresh,
        [&](std::int32_t i) { return places_[static_cast<std::size_t>(i)] == place; });
    if (known < 0) places_.push_back(place);
}

/// So many rounds of a loop are done: another, or on behind it.
void Automaton::enter_loop(std::int32_t pc, StackId below, std::int32_t rounds, std::int32_t fresh) {
    const Instruction& loop = program_.at(pc);
    if (rounds >= loop.min) go({loop.next, below, fresh});
    if (loop.max >= 0 && rounds >= loop.max) return;
    const std::int32_t done = loop.max < 0 ? std::min(rounds + 1, loop.min) : rounds + 1;
    go({loop.first, push({pc, done}, below), fresh + 1});
}

void Automaton::pop(const Place& place) {
    if (place.below == bottom) {
        end_ = true;
    } else if (place.below == unknown) {
        leaves_ = true;
    } else {
        const Node node = nodes_[static_cast<std::size_t>(place.below)];
        if (node.top.rounds == call_return)
            go({node.top.pc, node.below, std::max(place.fresh - 1, 0)});
        else if (place.fresh == 0)  // else the round consumed nothing
            enter_loop(node.top.pc, node.below, node.top.rounds, 0);
    }
}

GrammarState Automaton::finish_state() {
    std::uint64_t hash = hash_bytes(
        {reinterpret_cast<const char*>(found_.data()), found_.size() * sizeof(StackId)}, end_ + 2 * leaves_);
    const auto fresh = static_cast<GrammarState>(states_.size());
    const GrammarState known = state_index_.find_or_add(hash, fresh, [&](std::int32_t i) {
        const State& s = of(i);
        return s.end == end_ && s.leaves == leaves_ && s.count == found_.size() &&
               std::equal(found_.begin(), found_.end(), members_.begin() + s.first);
    });
    return known >= 0 ? known : add_state();
}

GrammarState Automaton::add_state() {
    State s{static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(found_.size()), end_,
            leaves_, end_ || leaves_};
    for (StackId stack : found_) s.open |= program_.at(nodes_[static_cast<std::size_t>(stack)].top.pc).open;
    members_.insert(members_.end(), found_.begin(), found_.end());
    states_.push_back(s);
    // A dead state stays dead.
    const bool is_dead = states_.size() == 1;
    steps_.resize(states_.size() * program_.classes(), is_dead ? dead : -1);
    return static_cast<GrammarState>(states_.size() - 1);
}

GrammarState Automaton::make_step(GrammarState state, std::uint8_t byte) {
    begin_state();
    const State from = of(state);
    for (std::uint32_t m = from.first; m < from.first + from.count; m++) {
        const Node node = nodes_[static_cast<std::size_t>(members_[m])];
        for (const ByteEdge& edge : program_.edges(program_.at(node.top.pc)))
            if (edge.bytes.first <= byte && byte <= edge.bytes.last) follow(edge.target, node.below);
    }
    const GrammarState made = finish_state();
    steps_[static_cast<std::size_t>(state) * program_.classes() + program_.class_of(byte)] = made;
    return made;
}

std::vector<std::vector<Automaton::Element>> Automaton::stacks(GrammarState state, std::size_t depth) const {
    std::vector<std::vector<Element>> all;
    const State& s = of(state);
    for (std::uint32_t m = s.first; m < s.first + s.count; m++) {
        std::vector<Element>& stack = all.emplace_back();
        StackId id = members_[m];
        for (; id != bottom && id != unknown && stack.size() < depth;
             id = nodes_[static_cast<std::size_t>(id)].below)
            stack.push_back(nodes_[static_cast<std::size_t>(id)].top);
    }
    return all;
}

GrammarState Automaton::piece(std::span<const Element> top, bool whole) {
    StackId stack = whole ? bottom : unknown;
    for (std::size_t i = top.size(); i-- > 0;) stack = push(top[i], stack);
    begin_state();
    found_.push_back(stack);
    return finish_state();
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
    struct Kept {
        GrammarState* where;
        std::vector<std::vector<Element>> stacks;
        bool end;
    };
    std::vector<Kept> kept;
    GrammarState begin = start_;
    std::vector<GrammarState*> all(live.begin(), live.end());
    all.push_back(&begin);
    for (GrammarState* where : all) kept.push_back({where, stacks(*where), may_end(*where)});
    reset();
    for (const Kept& k : kept) {
        begin_state();
        end_ = k.end;
        for (const std::vector<Element>& elements : k.stacks) {
            StackId stack = bottom;
            for (std::size_t i = elements.size(); i-- > 0;) stack = push(elements[i], stack);
            found_.push_back(stack);
        }
        *k.where = finish_state();
    }
    start_ = begin;
}

}  // namespace linnet
