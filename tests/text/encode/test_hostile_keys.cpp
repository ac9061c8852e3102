// Tables of what files hold: keys that collide under a hash without a secret are spread all the same.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>

#include "base/keyed_hash.h"
#include "text/encode/packed_pairs.h"
#include "text/encode/vocabulary.h"
#include "text/train/pairs.h"
#include "text/train/words.h"

using namespace linnet;

namespace {

/// Keys that all collide make a run of 2048 or 4096; a random multiplier leaves some of a few hundred now and
/// then.
constexpr std::size_t longest_allowed = 1000;
constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;

std::string bytes_of(std::uint64_t v) {
    std::string s(8, '\0');
    std::memcpy(s.data(), &v, 8);
    return s;
}

std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 m = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
}

}  // namespace

TEST_CASE("spellings made to collide under a multiplicative hash are found in few steps") {
    Vocabulary vocabulary;
    for (std::uint64_t i = 0; i < 4096; i++) {
        // The second block is the state after the first, so that the product, and with it the hash, is zero.
        const std::uint64_t after_first = folded((16 * golden) ^ i, golden);
        vocabulary.add(bytes_of(i) + bytes_of(after_first));
    }
    CHECK(vocabulary.longest_probe() < longest_allowed);
}

TEST_CASE("words made to collide in training are counted in few steps") {
    WordTable table;
    constexpr std::uint64_t k0 = golden, k1 = 0xD6E8FEB86659FD93u;
    for (std::uint64_t i = 0; i < 4096; i++) {
        const std::uint64_t after_first = folded(i ^ (16 * k1) ^ k0, k1);
        table.add(bytes_of(i) + bytes_of(after_first ^ k0), 1);
    }
    CHECK(table.longest_probe() < longest_allowed);
}

TEST_CASE("pairs made to collide under a fixed multiplier are found in few steps") {
    PackedPairs<32, 8> pairs;
    PairTable table;
    std::uint32_t count = 0;
    for (std::uint64_t key = 1; count < 2048; key++) {
        if ((key * golden) >> 49) continue;  // in the first of 2^15 buckets
        pairs.add(static_cast<std::uint32_t>(key >> 8), static_cast<std::uint32_t>(key & 255), count++);
    }
    CHECK(pairs.longest_probe() < longest_allowed);
    std::uint64_t inverse = golden;  // Newton's iteration, modulo 2^64
    for (int i = 0; i < 6; i++) inverse *= 2 - golden * inverse;
    for (std::uint64_t i = 1; i <= 4096; i++) table.at((i << 32 | i) * inverse);
    CHECK(table.longest_probe() < longest_allowed);
}

TEST_CASE("the hash of a process depends on a secret, in every part") {
    // What collides under one secret does not under another.
    const HashSecret known{1, 2, 3}, other{11, 22, 33};
    std::set<std::uint64_t> under_known, under_other;
    for (std::uint64_t i = 0; i < 1000; i++) {
        const std::string key = bytes_of(i) + bytes_of(known.b);
        under_known.insert(keyed_hash(key, known));
        under_other.insert(keyed_hash(key, other));
    }
    CHECK(under_known.size() == 1);
    CHECK(under_other.size() == 1000);
}
