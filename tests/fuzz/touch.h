// Reads every byte of a span, so that one that points beyond its file is a fault of memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace linnet::fuzz {

inline void touch(std::span<const std::byte> bytes) {
    std::uint64_t sum = 0;
    for (std::byte byte : bytes) sum += static_cast<std::uint64_t>(byte);
    volatile std::uint64_t seen = sum;
    (void)seen;
}

}  // namespace linnet::fuzz
