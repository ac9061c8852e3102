// Numbers in a range, all of them, against whole thousandths.
#include <doctest/doctest.h>

#include <optional>

#include "generate/grammar/automaton.h"
#include "generate/grammar/json_text.h"
#include "generate/grammar/support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// Bounds in ten-thousandths, so that some lie between any numbers that are tried.
struct Bounds {
    std::optional<std::int64_t> low, high;
    bool low_exclusive = false, high_exclusive = false;
    bool whole = false;

    bool holds(std::int64_t thousandths) const {
        const std::int64_t x = thousandths * 10;
        return (!low || (low_exclusive ? x > *low : x >= *low)) &&
               (!high || (high_exclusive ? x < *high : x <= *high));
    }
};

std::string decimal(std::int64_t ten_thousandths) {
    const std::int64_t size = std::abs(ten_thousandths);
    std::string fraction = std::to_string(10'000 + size % 10'000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    return (ten_thousandths < 0 ? "-" : "") + std::to_string(size / 10'000) +
           (fraction.empty() ? "" : "." + fraction);
}

std::string named(const Bounds& r) {
    return (r.whole ? "whole from " : "from ") + (r.low ? decimal(*r.low) : "nothing") +
           (r.low_exclusive ? " (exclusive) to " : " to ") + (r.high ? decimal(*r.high) : "nothing") +
           (r.high_exclusive ? " (exclusive)" : "");
}

/// Nothing where the range has no number.
std::optional<Automaton> automaton_of(const Bounds& r) {
    static const FakeTokenizer bytes = byte_vocabulary();
    static const GrammarVocabulary vocabulary(bytes);
    NumberRange range{{}, {}, r.low_exclusive, r.high_exclusive};
    if (r.low) range.low = decimal(*r.low);
    if (r.high) range.high = decimal(*r.high);
    Grammar grammar;
    JsonText json(grammar);
    const std::optional<ExprId> made = r.whole ? json.integer(range) : json.number(range);
    if (!made) return std::nullopt;
    grammar.root = grammar.declare("root");
    grammar.define(grammar.root, *made);
    grammar.check("g");
    return Automaton(GrammarProgram(grammar, vocabulary, "g"));
}

/// Tries every number of at most three digits before the point and three behind it; how many are wrong, and
/// one of them.
class Trial {
  public:
    explicit Trial(const Bounds& range) : range_(range), automaton_(automaton_of(range)) {
        const GrammarState start = automaton_ ? automaton_->start() : Automaton::dead;
        for (const bool minus : {false, true}) {
            sign_ = minus ? -1 : 1;
            text_ = minus ? "-" : "";
            whole(minus ? next(start, '-') : start, 0, 0);
        }
    }
    std::size_t wrong = 0, right = 0;
    std::string example;

  private:
    GrammarState next(GrammarState state, char c) {
        return state == Automaton::dead ? state : automaton_->next(state, static_cast<std::uint8_t>(c));
    }
    void compare(GrammarState state, std::int64_t thousandths, bool has_point) {
        const bool ends = state != Automaton::dead && automaton_->may_end(state);
        const bool wanted = range_.holds(sign_ * thousandths) && !(range_.whole && has_point) &&
                            (sign_ > 0 || thousandths > 0);  // zero has no sign
        right += ends && wanted;
        if (ends == wanted) return;
        wrong++;
        example = text_;
    }
    void whole(GrammarState state, std::int64_t value, int digits) {
        for (char c = '0'; c <= '9'; c++) {
            if (digits > 0 && value == 0) break;  // a zero leads no others
            const GrammarState now = next(state, c);
            const std::int64_t more = value * 10 + (c - '0');
            text_ += c;
            compare(now, more * 1000, false);
            text_ += '.';
            fraction(next(now, '.'), more * 1000, 100);
            text_.pop_back();
            if (digits < 2) whole(now, more, digits + 1);
            text_.pop_back();
        }
    }
    void fraction(GrammarState state, std::int64_t value, std::int64_t worth) {
        if (state == Automaton::dead && range_.whole) return;
        for (char c = '0'; c <= '9'; c++) {
            const GrammarState now = next(state, c);
            const std::int64_t more = value + worth * (c - '0');
            text_ += c;
            compare(now, more, true);
            if (worth > 1) fraction(now, more, worth / 10);
            text_.pop_back();
        }
    }

    Bounds range_;
    std::optional<Automaton> automaton_;
    std::int64_t sign_ = 1;
    std::string text_;
};

}  // namespace

TEST_CASE("a range has every short decimal number between its bounds, and none outside") {
    std::vector<Bounds> ranges{
        {0, 9'900, false, false},               // 0 to 0.99
        {1'000, 9'000, false, false},           // 0.1 to 0.9
        {0, 999'900, false, false},             // 0 to 99.99
        {0, 10'000, true, true},                // between 0 and 1
        {-25'000, 20'000, false, true},         // -2.5 to 2
        {-5'000, -1'250, true, false},          // -0.5 to -0.125
        {15'000, std::nullopt, true, false},    // above 1.5
        {std::nullopt, -99'950, false, false},  // up to -9.995
        {std::nullopt, 0, false, true},         // below 0
        {0, 0, false, false},                   // 0
        {5, 15, false, false},                  // 0.0005 to 0.0015
        {1'234, 1'234, false, true},            // none
        {99'500, 100'500, false, false, true},  // 10
        {-4'000, 3'000, false, false, true},    // 0
    };
    Dice dice(7);
    for (std::size_t round = 0; round < rounds(6); round++) {
        const auto bound = [&] {
            static constexpr std::int64_t grains[] = {1, 10, 100, 1000, 10'000},
                                          sizes[] = {20, 2000, 200'000};
            const std::int64_t grain = grains[dice.below(5)], size = sizes[dice.below(3)];
            return (static_cast<std::int64_t>(dice.below(static_cast<std::size_t>(2 * size))) - size) *
                   grain % 10'000'000;
        };
        const std::int64_t a = bound(), b = bound();
        Bounds range{std::min(a, b), std::max(a, b), dice.one_in(2), dice.one_in(2), dice.one_in(4)};
        if (dice.one_in(6)) range.low.reset();
        if (range.low && dice.one_in(6)) range.high.reset();
        ranges.push_back(range);
    }
    for (const Bounds& range : ranges) {
        const Trial trial(range);
        CHECK_MESSAGE(trial.wrong == 0, named(range), ": ", trial.example);
    }
    CHECK(Trial(ranges[0]).right == 1 + 10 + 100 + 991);
}
