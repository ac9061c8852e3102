// A text cut into its parts, put together of them, or with some replaced; the names in a table.
#pragma once
#include <algorithm>
#include <string>
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

/// The text with every `from`, which is not empty, as `to`.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

/// "a, b, c".
template <class Texts>
std::string joined(const Texts& parts, std::string_view between = ", ") {
    std::string text;
    std::string_view before;
    for (std::string_view part : parts) {
        text.append(before).append(part);
        before = between;
    }
    return text;
}

/// What the rows of a table are called.
template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
    std::vector<std::string> names;
    for (const auto& row : rows) names.emplace_back(row.name);
    return names;
}

}  // namespace linnet
