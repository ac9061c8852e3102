// What the fuzzer gives, taken apart: choices, and the bytes of one file or of several.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace linnet::fuzz {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    /// The next byte as a number below `count`; 0 behind the last.
    std::size_t choice(std::size_t count) {
        if (rest_.empty()) return 0;
        const auto byte = static_cast<std::uint8_t>(rest_[0]);
        rest_.remove_prefix(1);
        return byte % count;
    }
    /// The bytes up to the next mark, or the end. A mark moves with what a mutation inserts before it, and is
    /// seen in a seed.
    std::string_view part() {
        const std::string_view found = rest_.substr(0, rest_.find(mark));
        rest_.remove_prefix(std::min(found.size() + mark.size(), rest_.size()));
        return found;
    }
    std::string_view rest() const { return rest_; }

  private:
    static constexpr std::string_view mark = "\n====\n";
    std::string_view rest_;
};

}  // namespace linnet::fuzz
