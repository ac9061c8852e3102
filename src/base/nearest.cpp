#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace linnet {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool begins_with(std::string_view text, std::string_view start) {
    return start.size() >= 2 && text.size() >= start.size() &&
           std::equal(start.begin(), start.end(), text.begin(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

/// No more edits than there are, from how often each letter occurs: an edit adds one at most, and takes one.
int least_edits(std::string_view a, std::string_view b) {
    std::array<int, 32> count{};  // by a letter's last bits, which its case does not change
    for (char c : a) count[c & 31]++;
    for (char c : b) count[c & 31]--;
    int more = 0, fewer = 0;
    for (int n : count) (n > 0 ? more : fewer) += std::abs(n);
    return std::max(more, fewer);
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    // Optimal string alignment: three rows of the table suffice. Names are short; hostile ones are cut.
    a = a.substr(0, 200);
    b = b.substr(0, 200);
    std::size_t width = b.size() + 1;
    std::vector<int> before(width), last(width), now(width);
    for (std::size_t j = 0; j < width; j++) last[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); i++) {
        now[0] = static_cast<int>(i);
        for (std::size_t j = 1; j < width; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (x != y)});
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, now);
    }
    return last[width - 1];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known) {
    const std::string* best = nullptr;
    int best_distance = 0;
    for (const std::string& candidate : known) {
        const bool begins = begins_with(candidate, name) || begins_with(name, candidate);
        const auto most = static_cast<int>(std::max<std::size_t>(candidate.size(), 3)) / 3;
        if (!begins && least_edits(name, candidate) > most) continue;
        int distance = edit_distance(name, candidate);
        // "temp" for "temperature": a beginning counts as close, closer the less is missing.
        if (distance > most && !begins) continue;
        if (!best || distance < best_distance) {
            best = &candidate;
            best_distance = distance;
        }
    }
    if (!best) return std::nullopt;
    return *best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known,
                         std::string_view otherwise) {
    const auto near = nearest(name, known);
    return near ? "did you mean " + *near + "?" : std::string(otherwise);
}

}  // namespace linnet
