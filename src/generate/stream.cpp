#include "generate/stream.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace linnet {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
    std::erase(stops_, std::string());
}

std::string StopFilter::push(std::string_view bytes) {
    if (stopped_) return {};
    std::string text = held_ + std::string(bytes);
    // Of several the one that is whole first, as if the bytes came one by one; of those the longest.
    std::size_t first = std::string::npos, end = std::string::npos;
    for (const std::string& stop : stops_)
        if (const std::size_t at = text.find(stop); at != std::string::npos)
            if (const std::size_t ends = at + stop.size(); ends < end || (ends == end && at < first))
                first = at, end = ends;
    if (first != std::string::npos) {
        stopped_ = true;
        held_.clear();
        return text.substr(0, first);
    }
    // The longest tail that begins a stop string stays; no stop string is whole, so it is shorter than one.
    std::size_t keep = 0;
    for (const std::string& stop : stops_)
        for (std::size_t n = std::min(stop.size() - 1, text.size()); n > keep; n--)
            if (std::string_view(text).ends_with(std::string_view(stop).substr(0, n))) keep = n;
    held_ = text.substr(text.size() - keep);
    text.resize(text.size() - keep);
    return text;
}

std::string StopFilter::finish() {
    return std::exchange(held_, {});
}

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Whether the n bytes at p are the beginning of a longer character: one of the two extreme ways to go on
/// makes a character of every such beginning.
bool begins_character(const char* p, std::size_t n) {
    for (char rest : {'\x80', '\xBF'}) {
        char whole[4] = {rest, rest, rest, rest};
        std::copy_n(p, n, whole);
        const Char c = decode_utf8(whole, whole + sizeof whole);
        if (c.valid && c.size > n) return true;
    }
    return false;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
    const std::string in = held_ + std::string(bytes);
    std::string out;
    held_.clear();
    for (std::size_t i = 0; i < in.size();) {
        const Char c = decode_utf8(in.data() + i, in.data() + in.size());
        std::size_t n = c.valid ? c.size : 0;
        if (n > 0) {
            out.append(in, i, n);
        } else {
            while (n < 3 && i + n < in.size() && begins_character(in.data() + i, n + 1)) n++;
            if (n > 0 && i + n == in.size())
                held_ = in.substr(i);
            else
                out += replacement;
        }
        i += std::max<std::size_t>(n, 1);
    }
    return out;
}

std::string Utf8Stream::finish() {
    bool cut = !held_.empty();
    held_.clear();
    return cut ? std::string(replacement) : std::string();
}

}  // namespace linnet
