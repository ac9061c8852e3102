// Tensors and parameters chosen by their names.
#pragma once
#include <string_view>

namespace linnet {

/// Whether `text` is `pattern`, in which each * stands for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = pattern.npos, from = 0;  // the last *, and where its text ends so far
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++, from = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            p++, t++;
        } else if (star != pattern.npos) {
            p = star + 1, t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') p++;
    return p == pattern.size();
}

}  // namespace linnet
