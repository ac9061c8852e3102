// A text cut into its parts.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

namespace linnet {

/// What stands between the marks; empty parts are left out.
inline std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(mark, begin), text.size());
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

}  // namespace linnet
