// Sets of characters.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

struct CharRange {
    char32_t first, last;  // inclusive
    bool operator==(const CharRange&) const = default;
};

/// Unicode scalar values (no surrogates) as ranges, in order, that do not touch.
class CharSet {
  public:
    static constexpr char32_t largest = 0x10FFFF;

    CharSet() = default;
    CharSet(std::initializer_list<CharRange> ranges) {
        for (const CharRange& r : ranges) add(r.first, r.last);
    }
    static CharSet all() { return {{0, largest}}; }
    /// Every character of a text in UTF-8.
    static CharSet of(std::string_view text);

    void add(char32_t first, char32_t last);
    void add(const CharSet& other) {
        for (const CharRange& r : other.ranges_) add(r.first, r.last);
    }
    CharSet inverted() const;
    CharSet both(const CharSet& other) const;
    CharSet without(const CharSet& other) const { return both(other.inverted()); }
    bool contains(char32_t code) const { return meets(code, code); }
    bool meets(char32_t first, char32_t last) const;  // has one of these
    bool empty() const { return ranges_.empty(); }
    const std::vector<CharRange>& ranges() const { return ranges_; }
    bool operator==(const CharSet&) const = default;

  private:
    void add_scalars(char32_t first, char32_t last);
    std::vector<CharRange> ranges_;
};

/// A text in UTF-8 as code points; bytes that are no UTF-8 are U+FFFD.
std::u32string code_points(std::string_view text);
/// The UTF-8 of a scalar value.
std::string utf8_of(char32_t code);

}  // namespace linnet
