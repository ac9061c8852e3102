#include "generate/grammar/char_set.h"

#include <algorithm>

#include "base/utf8.h"

namespace linnet {

CharSet CharSet::of(std::string_view text) {
    CharSet set;
    for (char32_t code : code_points(text)) set.add(code, code);
    return set;
}

void CharSet::add(char32_t first, char32_t last) {
    add_scalars(first, std::min<char32_t>(last, 0xD7FF));
    add_scalars(std::max<char32_t>(first, 0xE000), std::min(last, largest));
}

void CharSet::add_scalars(char32_t first, char32_t last) {
    if (first > last) return;
    auto ends_before = [&](const CharRange& r) { return r.last + 1 < first; };
    auto from = std::partition_point(ranges_.begin(), ranges_.end(), ends_before);
    auto to = from;
    for (; to != ranges_.end() && to->first <= last + 1; ++to) {
        first = std::min(first, to->first);
        last = std::max(last, to->last);
    }
    if (from == to) {
        ranges_.insert(from, {first, last});
    } else {
        *from = {first, last};
        ranges_.erase(from + 1, to);
    }
}

CharSet CharSet::inverted() const {
    CharSet set;
    char32_t next = 0;
    for (const CharRange& r : ranges_) {
        if (r.first > next) set.add(next, r.first - 1);
        next = r.last + 1;
    }
    if (next <= largest) set.add(next, largest);
    return set;
}

CharSet CharSet::both(const CharSet& other) const {
    CharSet set;
    for (std::size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
        const CharRange &a = ranges_[i], &b = other.ranges_[j];
        if (std::max(a.first, b.first) <= std::min(a.last, b.last))
            set.ranges_.push_back({std::max(a.first, b.first), std::min(a.last, b.last)});
        a.last < b.last ? i++ : j++;
    }
    return set;
}

bool CharSet::meets(char32_t first, char32_t last) const {
    auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                   [&](const CharRange& r) { return r.last < first; });
    return at != ranges_.end() && at->first <= last;
}

std::u32string code_points(std::string_view text) {
    std::u32string codes;
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
        const Char c = decode_utf8(p, end);
        codes += c.valid ? c.code : U'\uFFFD';
        p += c.size;
    }
    return codes;
}

std::string utf8_of(char32_t code) {
    std::string out;
    append_utf8(out, code);
    return out;
}

}  // namespace linnet
