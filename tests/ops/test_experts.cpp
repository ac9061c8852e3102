// Which experts a token goes to, and the order in which tokens stand before them: against the plain
// definitions, with equal scores.
#include "ops/experts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/rng.h"

using namespace linnet;

namespace {

using Integers = std::vector<std::int32_t>;

/// Scores of few different values, so that many are equal.
template <class Real>
std::vector<Real> scores_of(std::int64_t rows, std::int64_t experts) {
    const Rng rng(3, static_cast<std::uint64_t>(experts));
    std::vector<Real> scores;
    for (std::int64_t i = 0; i < rows * experts; i++)
        scores.push_back(static_cast<Real>(rng.below(5, static_cast<std::uint64_t>(i))) / 4);
    return scores;
}

template <class Real>
void run_in_parts(const Op& op, Call<Real> call, int parts) {
    for (int part = parts - 1; part >= 0; part--) {
        call.worker = {part, parts};
        op.forward(call);
    }
}

template <class Real>
Integers chosen(const std::vector<Real>& scores, std::int64_t experts, std::int64_t used, int parts) {
    Call<Real> call;
    call.rows = static_cast<std::int64_t>(scores.size()) / experts, call.width = used;
    Integers choice(static_cast<std::size_t>(call.rows * used), -1);
    call.in[0] = scores.data(), call.in_width[0] = experts;
    call.out = reinterpret_cast<Real*>(choice.data());
    run_in_parts(expert_choice_op, call, parts);
    return choice;
}

template <class Real>
Integers placed(const Integers& choice, std::int64_t experts, int parts) {
    const Attributes attributes{{"experts", static_cast<double>(experts)}};
    const std::vector<std::int64_t> in{1};
    Integers places(2 * choice.size(), -1);
    Call<Real> call;
    call.attributes = &attributes;
    call.rows = static_cast<std::int64_t>(choice.size()), call.width = 2;
    std::vector<Real> scratch(
        static_cast<std::size_t>(expert_places_op.scratch({in, {}, attributes}, call.rows)), Real(7));
    call.in[0] = reinterpret_cast<const Real*>(choice.data());
    call.out = reinterpret_cast<Real*>(places.data()), call.scratch = scratch.data();
    run_in_parts(expert_places_op, call, parts);
    return places;
}

}  // namespace

TEST_CASE_TEMPLATE("experts are chosen by rank, equal scores by number, whatever the number of parts", Real,
                   float, double) {
    constexpr std::int64_t rows = 37;
    for (const auto& [experts, used] :
         {std::pair<std::int64_t, std::int64_t>{16, 4}, {16, 16}, {5, 1}, {1, 1}}) {
        const std::vector<Real> scores = scores_of<Real>(rows, experts);
        Integers expected;
        for (std::int64_t r = 0; r < rows; r++) {
            Integers all(static_cast<std::size_t>(experts));
            std::iota(all.begin(), all.end(), 0);
            const Real* row = scores.data() + r * experts;
            std::stable_sort(all.begin(), all.end(),
                             [&](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
            expected.insert(expected.end(), all.begin(), all.begin() + used);
        }
        for (const int parts : {1, 3, 64}) CHECK(chosen(scores, experts, used, parts) == expected);
    }
}

TEST_CASE("scores that are no numbers choose experts that there are, each once") {
    std::vector<float> scores = scores_of<float>(9, 8);
    for (std::size_t i = 0; i < scores.size(); i += 1 + i % 4)
        scores[i] = std::numeric_limits<float>::quiet_NaN();
    const Integers choice = chosen(scores, 8, 3, 1);
    for (std::size_t r = 0; r < 9; r++) {
        const std::set<std::int32_t> own(choice.begin() + static_cast<std::ptrdiff_t>(3 * r),
                                         choice.begin() + static_cast<std::ptrdiff_t>(3 * r + 3));
        CHECK(own.size() == 3);
        CHECK(*own.begin() >= 0);
        CHECK(*own.rbegin() < 8);
    }
}

TEST_CASE_TEMPLATE("places are sorted by expert, and an expert's by token", Real, float, double) {
    constexpr std::int64_t experts = 16, used = 4;
    const Integers choice = chosen(scores_of<Real>(29, experts), experts, used, 1);
    Integers slots(choice.size());
    std::iota(slots.begin(), slots.end(), 0);
    std::stable_sort(slots.begin(), slots.end(), [&](std::int32_t a, std::int32_t b) {
        return choice[static_cast<std::size_t>(a)] < choice[static_cast<std::size_t>(b)];
    });
    Integers expected(2 * slots.size());
    for (std::size_t place = 0; place < slots.size(); place++) {
        expected[2 * place] = slots[place];
        expected[2 * static_cast<std::size_t>(slots[place]) + 1] = static_cast<std::int32_t>(place);
    }
    for (const int parts : {1, 5}) CHECK(placed<Real>(choice, experts, parts) == expected);
    CHECK(placed<Real>({}, experts, 1).empty());
}
