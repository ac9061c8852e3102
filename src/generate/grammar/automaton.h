// The pushdown automaton of a program: which bytes may come after which.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "generate/grammar/program.h"

namespace linnet {

/// What a text has come to, all its ways of reading at once: a set of stacks. 0 is the empty set: no text of
/// the grammar begins so.
using GrammarState = std::int32_t;

/// Sets of stacks share what they have in common: a set is, for each element that is on top of some of them,
/// the set of what lies below it. So the readings of a text may multiply without end, and what is kept of
/// them grows with the text at most (a graph-structured stack, Tomita 1987, made canonical, so that equal
/// sets are one). Sets, states and steps are made as they are asked for, and made once. Numbers hold until
/// shrink().
class Automaton {
  public:
    /// An element of a stack: where a part of the program returns to, and for a loop, how many rounds are
    /// done when it does.
    struct Element {
        std::int32_t pc = 0, rounds = 0;
        bool operator==(const Element&) const = default;
        bool operator<(const Element& other) const {
            return pc != other.pc ? pc < other.pc : rounds < other.rounds;
        }
    };
    using StackSet = std::int32_t;
    struct Edge {
        Element top;
        StackSet below;
        bool operator==(const Edge&) const = default;
    };
    static constexpr GrammarState dead = 0;

    explicit Automaton(GrammarProgram program);

    GrammarState start() const { return start_; }
    GrammarState next(GrammarState state, std::uint8_t byte) {
        const std::int32_t known =
            steps_[static_cast<std::size_t>(state) * program_.classes() + program_.class_of(byte)];
        return known >= 0 ? known : make_step(state, byte);
    }
    GrammarState next(GrammarState state, std::string_view bytes) {
        for (std::size_t i = 0; i < bytes.size() && state != dead; i++)
            state = next(state, static_cast<std::uint8_t>(bytes[i]));
        return state;
    }
    bool may_end(GrammarState state) const { return set_of(state).bottom; }
    bool must_end(GrammarState state) const { return set_of(state).count == 0; }  // of one that is not dead
    /// A token may end here: tokens lead on from it to an end of the text.
    bool open(GrammarState state) const { return states_[static_cast<std::size_t>(state)].open; }
    /// What stands below a known piece of stack may be reached: any text may follow (piece()).
    bool leaves(GrammarState state) const { return set_of(state).unknown; }

    /// The stacks of a state, and of what lies below an element: by their tops, ascending.
    StackSet stacks(GrammarState state) const { return states_[static_cast<std::size_t>(state)].stacks; }
    std::span<const Edge> edges(StackSet set) const {
        const Set& s = sets_[static_cast<std::size_t>(set)];
        return std::span(edges_).subspan(s.first, s.count);
    }
    /// The empty stack is one of the set.
    bool has_bottom(StackSet set) const { return sets_[static_cast<std::size_t>(set)].bottom; }
    /// The state of one stack of which only the top is known. `whole`: there is nothing below it.
    GrammarState piece(std::span<const Element> top, bool whole);
    /// The same element for all numbers of rounds among which a text of `bytes` bytes cannot tell.
    Element folded(Element element, std::size_t bytes) const;

    /// Whether readings were ever forgotten, as there was too much of them: then some texts of the grammar
    /// may be refused.
    bool forgot() const { return forgot_; }
    /// How much was made; at some size, shrink() is due.
    std::size_t size() const { return edges_.size() + steps_.size() / 8 + united_.size(); }
    /// Forgets everything but these states, whose numbers it changes.
    void shrink(std::span<GrammarState* const> live);

  private:
    static constexpr StackSet none = 0;
    struct Set {
        std::uint32_t first = 0, count = 0;  // edges_, by their tops, ascending
        bool bottom = false;                 // the empty stack is one of them
        bool unknown = false;                // and so is one of which no more is known
    };
    struct State {
        StackSet stacks;  // each with an instruction that waits for a byte on top
        bool open = false;
    };
    /// A place of a program that was come to since a byte, with the stacks that are below it there, of each
    /// of which the top `fresh` elements were pushed since.
    struct Place {
        std::int32_t pc, fresh;
        StackSet below;
        bool waiting;
    };
    /// Numbers of equal things: a set of 64-bit hashes whose collisions `same` settles.
    class Index {
      public:
        void clear() { slots_.clear(), used_ = 0; }
        /// The number of what has this hash and is the same, or -1 and it is `fresh` from now on.
        std::int32_t find_or_add(std::uint64_t hash, std::int32_t fresh, auto&& same);

      private:
        struct Slot {
            std::uint64_t hash = 0;
            std::int32_t number = -1;
        };
        std::vector<Slot> slots_;
        std::size_t used_ = 0;
    };

    const Set& set_of(GrammarState state) const { return sets_[static_cast<std::size_t>(stacks(state))]; }
    StackSet make_set(std::span<const Edge> edges, bool bottom, bool unknown);
    StackSet push(Element element, StackSet below) {
        const Edge edge{element, below};
        return make_set({&edge, 1}, false, false);
    }
    StackSet unite(StackSet a, StackSet b, int depth = 0);
    GrammarState make_step(GrammarState state, std::uint8_t byte);
    void begin_state();
    void go(std::int32_t pc, StackSet below, std::int32_t fresh);
    void follow_all();
    void follow(Place place);
    void rounds_done(std::span<const Edge> stacks, std::int32_t fresh);
    void pop(StackSet stacks, std::int32_t fresh);
    GrammarState finish_state();
    GrammarState state_of(StackSet stacks);
    void reset();

    GrammarProgram program_;
    std::vector<Edge> edges_;
    std::vector<Set> sets_;
    std::vector<State> states_;
    std::vector<GrammarState> state_of_set_;  // -1: none
    std::vector<GrammarState> steps_;         // [states, classes of bytes]; -1: not made yet
    Index set_index_;
    std::unordered_map<std::uint64_t, StackSet> united_;  // of two sets
    GrammarState start_ = dead;
    bool forgot_ = false;
    // The state that is being made.
    bool end_ = false, leaves_ = false;
    std::vector<Place> places_;
    std::vector<std::int32_t> todo_;  // places that wait
    Index place_index_;
};

}  // namespace linnet
