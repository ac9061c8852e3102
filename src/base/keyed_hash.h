// Hashes for tables whose keys come from files: keyed with a secret that each process draws anew, so that
// nobody can choose keys that collide. What is printed or kept must not depend on them (hash.h has the hash
// that is the same everywhere).
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace linnet {

struct HashSecret {
    std::uint64_t a, b;  // for bytes
    std::uint64_t odd;   // for numbers
};
/// Drawn from the operating system's random numbers at start.
extern const HashSecret hash_secret;

/// Eight bytes at a time, each a multiplication of two words that both depend on the secret, folded to 64
/// bits (the step of Wang Yi's wyhash).
inline std::uint64_t keyed_hash(std::string_view bytes, const HashSecret& secret = hash_secret) {
    const char* p = bytes.data();
    std::size_t n = bytes.size();
    std::uint64_t h = secret.a ^ n;
    auto mix = [&](std::uint64_t v) {
        const unsigned __int128 m = static_cast<unsigned __int128>(v ^ secret.b) * (h ^ secret.odd);
        h = secret.a ^ static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
    };
    std::uint64_t v = 0;
    for (; n >= 8; p += 8, n -= 8) {
        std::memcpy(&v, p, 8);
        mix(v);
    }
    v = 0;
    if (n) std::memcpy(&v, p, n);
    mix(v);
    return h;
}

/// Of a number, in the upper bits above all (Dietzfelbinger's multiplication by a secret odd number: two keys
/// share their upper k bits with a probability of at most 2/2^k).
inline std::uint64_t keyed_hash(std::uint64_t number, const HashSecret& secret = hash_secret) {
    return number * secret.odd;
}

/// For std::unordered_map and the like.
struct KeyedHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const { return keyed_hash(bytes); }
    std::size_t operator()(std::uint32_t number) const { return keyed_hash(std::uint64_t{number}) >> 32; }
};

}  // namespace linnet
