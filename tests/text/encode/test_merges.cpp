#include <doctest/doctest.h>

#include "base/error.h"
#include "base/rng.h"
#include "text/encode/merges.h"

using namespace linnet;

namespace {

/// The definition, word for word.
std::vector<TokenId> slow(const MergeTable& table, std::vector<TokenId> s) {
    while (true) {
        std::uint32_t lowest = no_merge;
        std::size_t best = 0;
        for (std::size_t i = 0; i + 1 < s.size(); i++)
            if (std::uint32_t rank = table.rank(s[i], s[i + 1]); rank < lowest) {
                lowest = rank;
                best = i;
            }
        if (lowest == no_merge) return s;
        s[best] = table.joined(s[best], s[best + 1], lowest);
        s.erase(s.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
}

}  // namespace

TEST_CASE("merging equals its definition, for short and long rows, trained ranks and arbitrary ones") {
    Rng rng(3, 1);
    std::uint64_t counter = 0;
    for (int round = 0; round < 400; round++) {
        const bool arbitrary = round % 2;  // scores may rank a merge below those that lead to it, and tie
        MergeTable table;
        const TokenId letters = 2 + static_cast<TokenId>(rng.below(3, counter++));
        TokenId next = letters;
        for (int m = 0; m < 40; m++) {
            const TokenId l = static_cast<TokenId>(rng.below(static_cast<std::uint64_t>(next), counter++));
            const TokenId r = static_cast<TokenId>(rng.below(static_cast<std::uint64_t>(next), counter++));
            const std::uint32_t rank = arbitrary ? static_cast<std::uint32_t>(rng.below(12, counter++))
                                                 : static_cast<std::uint32_t>(m);
            if (table.add(l, r, rank, next)) next++;
        }
        for (std::size_t n : {1u, 2u, 5u, 16u, 17u, 30u, 48u, 49u, 120u, 300u}) {
            Merger merger;
            for (std::size_t i = 0; i < n; i++)
                merger.symbols().push_back(
                    static_cast<TokenId>(rng.below(static_cast<std::uint64_t>(letters), counter++)));
            const std::vector<TokenId> row = merger.symbols(), expected = slow(table, row);
            merger.apply(table);
            CAPTURE(n);
            REQUIRE(merger.symbols() == expected);
            for (std::size_t window :
                 {4u, 17u, 64u}) {  // far smaller than real ones: many borders are crossed
                Merger windows(window);
                windows.symbols() = row;
                windows.apply(table);
                CAPTURE(window);
                REQUIRE(windows.symbols() == expected);
            }
        }
    }
}

TEST_CASE("ten times as many equal symbols take ten times as many steps") {
    MergeTable powers, neighbours;  // a, aa, aaaa, …; and one in which each merge adds one symbol
    for (TokenId k = 0; k < 12; k++) powers.add(k, k, static_cast<std::uint32_t>(k), k + 1);
    for (TokenId k = 0; k < 12; k++) neighbours.add(k, 0, static_cast<std::uint32_t>(12 - k), k + 1);
    for (const MergeTable* table : {&powers, &neighbours}) {
        auto steps = [&](std::size_t n) {
            Merger merger;
            merger.symbols().assign(n, 0);
            merger.apply(*table);
            return merger.steps();
        };
        const std::size_t few = steps(100'000), many = steps(1'000'000);
        CHECK(few > 100'000);
        CHECK(many < 12 * few);
        CHECK(many < 8'000'000);
    }
}

TEST_CASE("a token longer than a window, and a merge across its end, come out as in one piece") {
    // b, then 122 a that are one token, then x and y's, of which nine are one token and join the a's.
    MergeTable table;
    std::uint32_t rank = 0;
    TokenId tail = 2, head = 0;
    for (TokenId k = 2; k <= 9; k++, tail = 1000 + k - 1) table.add(tail, 3, rank++, 1000 + k);
    for (TokenId k = 2; k <= 122; k++, head = 100 + k - 1) table.add(head, 1, rank++, 100 + k);
    table.add(head, tail, rank++, 5000);
    std::vector<TokenId> row(1, 0);
    row.insert(row.end(), 121, 1);
    row.push_back(2);
    row.insert(row.end(), 200, 3);
    const std::vector<TokenId> expected = slow(table, row);
    CHECK(expected[0] == 5000);
    for (std::size_t window : {16u, 64u, 100u, 4096u}) {
        Merger merger(window);
        merger.symbols() = row;
        merger.apply(table);
        CHECK(merger.symbols() == expected);
    }
}

TEST_CASE("a merge table finds what was added and nothing else") {
    MergeTable table;
    for (TokenId i = 0; i < 5000; i++)
        CHECK(table.add(i, i * 7 % 5000, static_cast<std::uint32_t>(i), i + 1));
    CHECK_FALSE(table.add(3, 21, 9, 9));
    CHECK(table.size() == 5000);
    for (TokenId i = 0; i < 5000; i++) {
        const std::uint32_t rank = table.rank(i, i * 7 % 5000);
        CHECK(rank == static_cast<std::uint32_t>(i));
        CHECK(table.joined(i, i * 7 % 5000, rank) == i + 1);
        if ((i * 7 + 1) % 5000 != i * 7 % 5000) CHECK(table.rank(i, (i * 7 + 1) % 5000) == no_merge);
    }
}

TEST_CASE("several tokens may share a rank, and numbers have their limits") {
    MergeTable table;
    CHECK(table.add(300, 301, 7, 400));
    CHECK(table.add(302, 303, 7, 401));
    CHECK(table.add(304, 305, 7, 400));
    CHECK(table.add(306, 307, 7, 402));
    CHECK(table.joined(300, 301, 7) == 400);
    CHECK(table.joined(302, 303, 7) == 401);
    CHECK(table.joined(304, 305, 7) == 400);
    CHECK(table.joined(306, 307, 7) == 402);
    std::vector<TokenId> joined;
    table.each([&](TokenId, TokenId, std::uint32_t rank, TokenId id) {
        CHECK(rank == 7);
        joined.push_back(id);
    });
    std::sort(joined.begin(), joined.end());
    CHECK(joined == std::vector<TokenId>{400, 400, 401, 402});

    const TokenId last = MergeTable::most_symbols - 1;
    CHECK(table.add(last, last, no_merge - 1, 500));
    CHECK(table.rank(last, last) == no_merge - 1);
    CHECK(table.joined(last, last, no_merge - 1) == 500);
    for (TokenId symbol : {0, 300, last}) {
        CHECK(table.rank(-1, symbol) == no_merge);
        CHECK(table.rank(symbol, -1) == no_merge);
    }
    CHECK_THROWS_AS(table.add(1, 2, no_merge, 3), Error);
    CHECK_THROWS_AS(table.add(1, last + 1, 1, 3), Error);
}
