// The pushdown automaton of a program: which bytes may come after which.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "generate/grammar/program.h"

namespace linnet {

/// What a text has come to, all its ways of reading at once: a set of stacks. 0 is the empty set: no text of
/// the grammar begins so.
using GrammarState = std::int32_t;

/// States, stacks and steps are made as they are asked for, and made once: equal ones share a number. Numbers
/// hold until shrink().
class Automaton {
  public:
    /// An element of a stack: where a part of the program returns to, and for a loop, how many rounds are
    /// done when it does.
    struct Element {
        std::int32_t pc = 0, rounds = 0;
        bool operator==(const Element&) const = default;
    };
    static constexpr GrammarState dead = 0;
    /// More ways of reading at a time than this are forgotten, the last found first.
    static constexpr std::size_t most_stacks = 512;

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
    bool may_end(GrammarState state) const { return of(state).end; }
    bool must_end(GrammarState state) const { return of(state).count == 0; }  // of one that is not dead
    /// A token may end here: tokens lead on from it to an end of the text.
    bool open(GrammarState state) const { return of(state).open; }
    /// What stands below a known piece of stack may be reached: any text may follow (piece()).
    bool leaves(GrammarState state) const { return of(state).leaves; }

    /// The stacks of a state, from the top, `depth` elements of each at most.
    std::vector<std::vector<Element>> stacks(GrammarState state, std::size_t depth = SIZE_MAX) const;
    /// The state of one stack of which only the top is known. `whole`: there is nothing below it.
    GrammarState piece(std::span<const Element> top, bool whole);
    /// The same element for all numbers of rounds among which a text of `bytes` bytes cannot tell.
    Element folded(Element element, std::size_t bytes) const;

    /// Whether readings were ever forgotten: then some texts of the grammar may be refused.
    bool forgot() const { return forgot_; }
    /// How much was made; at some size, shrink() is due.
    std::size_t size() const { return nodes_.size() + steps_.size() / 8 + members_.size(); }
    /// Forgets everything but these states, whose numbers it changes.
    void shrink(std::span<GrammarState* const> live);

  private:
    using StackId = std::int32_t;
    static constexpr StackId bottom = 0, unknown = 1;
    struct Node {
        Element top;
        StackId below = bottom;
    };
    struct State {
        std::uint32_t first = 0, count = 0;  // members_
        bool end = false, leaves = false, open = false;
    };
    struct Place {  // of a program, with a stack, of which the top `fresh` elements were pushed since a byte
        std::int32_t pc;
        StackId below;
        std::int32_t fresh;
        bool operator==(const Place&) const = default;
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

    const State& of(GrammarState state) const { return states_[static_cast<std::size_t>(state)]; }
    StackId push(Element element, StackId below);
    GrammarState make_step(GrammarState state, std::uint8_t byte);
    void begin_state();
    void follow(std::int32_t pc, StackId below);
    void go(Place place);
    void enter_loop(std::int32_t pc, StackId below, std::int32_t rounds, std::int32_t fresh);
    void pop(const Place& place);
    GrammarState finish_state();
    GrammarState add_state();
    void reset();

    GrammarProgram program_;
    std::vector<Node> nodes_;
    std::vector<StackId> members_;
    std::vector<State> states_;
    std::vector<GrammarState> steps_;  // [states, classes of bytes]; -1: not made yet
    Index node_index_, state_index_;
    GrammarState start_ = dead;
    // The state that is being made.
    std::vector<StackId> found_;
    bool end_ = false, leaves_ = false, forgot_ = false;
    std::vector<Place> places_;  // all that were seen; from todo_ on they wait
    std::size_t todo_ = 0;
    Index place_index_;
};

}  // namespace linnet
