#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace linnet {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4,
// section 4.2.2).
constexpr std::uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::uint8_t* p) {
    return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

struct Words {
    std::uint32_t a, b, c, d, e, f, g, h;

    /// One round, without moving the eight words: callers pass them rotated.
    static void round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d, std::uint32_t e,
                      std::uint32_t f, std::uint32_t g, std::uint32_t& h, std::uint32_t input) {
        std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        h += s1 + (g ^ (e & (f ^ g))) + input;
        d += h;
        h += s0 + ((a & b) | (c & (a | b)));
    }
};

}  // namespace

void Sha256::block(const std::uint8_t* data, std::size_t blocks) {
    auto s = state_;
    for (; blocks > 0; blocks--, data += 64) {
        Words v{s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]};
        std::uint32_t w[16];  // the schedule's last 16 words, in a ring
        for (int i = 0; i < 64; i += 8) {
            std::uint32_t input[8];
            for (int j = 0; j < 8; j++) {
                std::uint32_t& now = w[(i + j) & 15];
                if (i < 16) {
                    now = big_endian(data + 4 * (i + j));
                } else {
                    std::uint32_t x = w[(i + j + 1) & 15], y = w[(i + j + 14) & 15];
                    now += (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) +
                           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10) + w[(i + j + 9) & 15];
                }
                input[j] = now + constants[i + j];
            }
            Words::round(v.a, v.b, v.c, v.d, v.e, v.f, v.g, v.h, input[0]);
            Words::round(v.h, v.a, v.b, v.c, v.d, v.e, v.f, v.g, input[1]);
            Words::round(v.g, v.h, v.a, v.b, v.c, v.d, v.e, v.f, input[2]);
            Words::round(v.f, v.g, v.h, v.a, v.b, v.c, v.d, v.e, input[3]);
            Words::round(v.e, v.f, v.g, v.h, v.a, v.b, v.c, v.d, input[4]);
            Words::round(v.d, v.e, v.f, v.g, v.h, v.a, v.b, v.c, input[5]);
            Words::round(v.c, v.d, v.e, v.f, v.g, v.h, v.a, v.b, input[6]);
            Words::round(v.b, v.c, v.d, v.e, v.f, v.g, v.h, v.a, input[7]);
        }
        const std::uint32_t out[8] = {v.a, v.b, v.c, v.d, v.e, v.f, v.g, v.h};
        for (int i = 0; i < 8; i++) s[i] += out[i];
    }
    state_ = s;
}

void Sha256::update(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    std::size_t held = length_ % 64;
    length_ += size;
    if (held > 0) {
        std::size_t taken = std::min(size, 64 - held);
        std::memcpy(pending_.data() + held, bytes, taken);
        bytes += taken;
        size -= taken;
        if (held + taken < 64) return;
        block(pending_.data(), 1);
    }
    block(bytes, size / 64);
    if (size % 64) std::memcpy(pending_.data(), bytes + size / 64 * 64, size % 64);
}

std::string Sha256::hex() {
    std::uint64_t bits = length_ * 8;
    std::uint8_t tail[72] = {0x80};  // one bit, zeros up to 56 mod 64, then the length in bits
    std::size_t zeros = (119 - length_ % 64) % 64 + 1;
    for (int i = 0; i < 8; i++) tail[zeros + i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    update(tail, zeros + 8);
    std::string text;
    for (std::uint32_t word : state_)
        for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
    return text;
}

std::string sha256(std::string_view text) {
    Sha256 hash;
    hash.update(text);
    return hash.hex();
}

}  // namespace linnet
