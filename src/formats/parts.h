// How the files of one that was split are named.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

/// "-00002-of-00003.gguf" of part 1 (counted from 0) of 3.
inline std::string part_ending(std::uint64_t number, std::uint64_t count, std::string_view suffix) {
    auto five = [](std::uint64_t n) {
        const std::string digits = std::to_string(n);
        return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    };
    return "-" + five(number + 1) + "-of-" + five(count) + std::string(suffix);
}

}  // namespace linnet
