#include "generate/stream.h"

#include <algorithm>
#include <utility>

namespace linnet {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
    std::erase(stops_, std::string());
}

std::string StopFilter::push(std::string_view bytes) {
    if (stopped_) return {};
    std::string text = held_ + std::string(bytes);
    std::size_t first = std::string::npos;
    for (const std::string& stop : stops_) first = std::min(first, text.find(stop));
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

/// The lead byte's length, and the range of its second byte (table 3-7 of the standard: overlong forms,
/// surrogates and values past U+10FFFF are told by the second byte). Length 0: no lead byte.
struct Lead {
    int length;
    unsigned char low, high;
};

Lead lead(unsigned char c) {
    if (c < 0x80) return {1, 0, 0};
    if (c >= 0xC2 && c <= 0xDF) return {2, 0x80, 0xBF};
    if (c == 0xE0) return {3, 0xA0, 0xBF};
    if (c == 0xED) return {3, 0x80, 0x9F};
    if (c >= 0xE1 && c <= 0xEF) return {3, 0x80, 0xBF};
    if (c == 0xF0) return {4, 0x90, 0xBF};
    if (c >= 0xF1 && c <= 0xF3) return {4, 0x80, 0xBF};
    if (c == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
    std::string in = held_ + std::string(bytes), out;
    held_.clear();
    for (std::size_t i = 0; i < in.size();) {
        Lead l = lead(static_cast<unsigned char>(in[i]));
        if (l.length == 0) {
            out += replacement;
            i++;
            continue;
        }
        std::size_t n = 1;  // bytes that fit so far
        while (n < static_cast<std::size_t>(l.length) && i + n < in.size()) {
            unsigned char c = static_cast<unsigned char>(in[i + n]);
            if (c < (n == 1 ? l.low : 0x80) || c > (n == 1 ? l.high : 0xBF)) break;
            n++;
        }
        if (n == static_cast<std::size_t>(l.length)) {
            out.append(in, i, n);
        } else if (i + n == in.size()) {
            held_ = in.substr(i);
        } else {
            out += replacement;
        }
        i += n;
    }
    return out;
}

std::string Utf8Stream::finish() {
    bool cut = !held_.empty();
    held_.clear();
    return cut ? std::string(replacement) : std::string();
}

}  // namespace linnet
