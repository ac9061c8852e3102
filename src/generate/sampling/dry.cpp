#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "generate/sampling/chain.h"

namespace linnet {
namespace {

/// How many of the newest tokens stand behind the last breaker: no repetition that counts is longer.
std::size_t behind_breaker(std::span<const TokenId> window, const Tokenizer* tokenizer,
                           const std::vector<std::string>& breakers) {
    std::size_t longest = 0;
    for (const std::string& breaker : breakers) longest = std::max(longest, breaker.size());
    if (!tokenizer || longest == 0) return window.size();
    std::string text;                // of window[i] and what follows, as far as a breaker reaches
    std::vector<std::size_t> sizes;  // bytes of each token there, newest last
    for (std::size_t i = window.size(); i-- > 0;) {
        std::string piece;
        tokenizer->decode(window[i], false, piece);
        sizes.insert(sizes.begin(), piece.size());
        text = piece + text;
        std::size_t end = 0;  // of a breaker that begins in this token
        for (const std::string& breaker : breakers)
            if (std::size_t at = text.rfind(breaker, piece.empty() ? 0 : piece.size() - 1);
                !breaker.empty() && at != std::string::npos && at < piece.size())
                end = std::max(end, at + breaker.size());
        if (end > 0) {
            std::size_t token = i;  // in which it ends
            for (std::size_t sum = 0, k = 0; (sum += sizes[k]) < end; k++) token++;
            return window.size() - 1 - token;
        }
        while (text.size() - sizes.back() >= piece.size() + longest) {
            text.resize(text.size() - sizes.back());
            sizes.pop_back();
        }
    }
    return window.size();
}

/// z[j]: how many of the newest tokens are repeated j tokens earlier, for every j (Gusfield 1997,
/// "Algorithms on strings, trees, and sequences", section 1.4, on the tokens read backwards).
std::vector<std::size_t> repeats(std::span<const TokenId> window) {
    const std::size_t n = window.size();
    auto back = [&](std::size_t i) { return window[n - 1 - i]; };
    std::vector<std::size_t> z(n, 0);
    for (std::size_t j = 1, left = 0, right = 0; j < n; j++) {
        if (j < right) z[j] = std::min(right - j, z[j - left]);
        while (j + z[j] < n && back(z[j]) == back(j + z[j])) z[j]++;
        if (j + z[j] > right) left = j, right = j + z[j];
    }
    return z;
}

}  // namespace

void apply_dry(Draw& draw) {
    const SamplerOptions& o = *draw.options;
    std::size_t size = draw.history.size();
    if (o.dry_penalty_last_n > 0) size = std::min(size, static_cast<std::size_t>(o.dry_penalty_last_n));
    const std::span<const TokenId> window = draw.history.last(size);
    const auto allowed = static_cast<std::size_t>(o.dry_allowed_length);
    if (size <= allowed) return;
    const std::size_t most = behind_breaker(window, draw.tokenizer, o.dry_breakers);
    if (most < allowed) return;
    std::map<TokenId, std::size_t> longest;  // repetition that a token would lengthen
    const std::vector<std::size_t> z = repeats(window);
    for (std::size_t j = 1; j < size; j++)
        if (const std::size_t length = std::min(z[j], most); length >= allowed && length > 0) {
            std::size_t& held = longest[window[size - j]];
            held = std::max(held, length);
        }
    const double steepest = o.dry_base > 1.000001 ? 88.7 / std::log(o.dry_base) : HUGE_VAL;  // ln of a float
    draw.apply_temperature();
    draw.adjust(longest, [&](std::size_t length, float logit) {
        const double power = std::min(static_cast<double>(length - allowed), steepest);
        const auto minus = static_cast<float>(o.dry_multiplier * std::pow(o.dry_base, power));
        return Draw::bounded(logit - minus);
    });
}

}  // namespace linnet
