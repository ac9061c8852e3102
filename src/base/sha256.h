// SHA-256 (FIPS 180-4), for the checksums of checkpoints, corpus shards and provenance.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

/// Takes bytes in pieces; hex() ends it.
class Sha256 {
  public:
    /// `portable`: without the CPU's SHA instructions, for the test that holds the two against each other.
    explicit Sha256(bool portable = false);
    void update(const void* data, std::size_t size);
    void update(std::string_view text) { update(text.data(), text.size()); }
    /// The digest as 64 lower-case hexadecimal digits. Nothing may be added after it.
    std::string hex();

  private:
    using Blocks = void (*)(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks);
    Blocks blocks_;
    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, 64> pending_{};
    std::uint64_t length_ = 0;  // bytes seen
};

/// The digest of one text.
std::string sha256(std::string_view text);

}  // namespace linnet
