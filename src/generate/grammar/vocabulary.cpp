#include "generate/grammar/vocabulary.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/utf8.h"

namespace linnet {

TokenTree::TokenTree(std::vector<std::pair<std::string, TokenId>> spellings) {
    std::sort(spellings.begin(), spellings.end());
    std::vector<std::uint32_t> path;  // nodes from the root to the newest
    auto close = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back())
            nodes_[path.back()].skip = static_cast<std::uint32_t>(nodes_.size());
    };
    std::string_view last;
    for (const auto& [bytes, id] : spellings) {
        const auto same = static_cast<std::size_t>(
            std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).first - last.begin());
        close(same);
        for (std::size_t i = same; i < bytes.size(); i++) {
            path.push_back(static_cast<std::uint32_t>(nodes_.size()));
            nodes_.push_back({static_cast<std::uint8_t>(bytes[i]), static_cast<std::uint16_t>(i + 1), 0,
                              static_cast<std::uint32_t>(tokens_.size())});
        }
        tokens_.push_back(id);
        begins_.push_back(bytes_.size());
        bytes_ += bytes;
        last = bytes;
    }
    close(0);
    begins_.push_back(bytes_.size());
    nodes_.push_back({0, 0, 0, static_cast<std::uint32_t>(tokens_.size())});
}

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer) : size_(tokenizer.size()) {
    std::vector<std::pair<std::string, TokenId>> short_ones, long_ones;
    for (TokenId id = 0; id < size_; id++) {
        if (tokenizer.is_end(id)) ends_.push_back(id);
        if (tokenizer.is_end(id) || tokenizer.is_control(id)) continue;
        std::string bytes;
        tokenizer.decode(id, false, bytes);
        if (bytes.empty() || bytes.size() > UINT16_MAX) continue;
        (bytes.size() <= longest_short ? short_ones : long_ones).emplace_back(std::move(bytes), id);
    }
    find_spellable(short_ones);
    tokens_ = TokenTree(std::move(short_ones));
    long_tokens_ = TokenTree(std::move(long_ones));
}

namespace {

/// The number of a row of continuation bytes, six bits each.
std::size_t row_of(std::string_view bytes) {
    std::size_t row = 0;
    for (char c : bytes) row = row << 6 | (static_cast<std::uint8_t>(c) & 0x3F);
    return row;
}

/// Bytes of the character that begins with this one; 0: none does.
std::size_t length_of(std::uint8_t lead) {
    return lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

}  // namespace

/// A character is spellable where a token has its first bytes (or all), and tokens spell the rest.
void GrammarVocabulary::find_spellable(const std::vector<std::pair<std::string, TokenId>>& spellings) {
    std::set<std::string_view> starts;
    for (std::size_t n = 0; n < 3; n++) continuation_[n].assign(std::size_t{64} << 6 * n, false);
    for (const auto& [bytes, id] : spellings) {
        if (bytes.size() <= 3 && std::all_of(bytes.begin(), bytes.end(), is_tail))
            continuation_[bytes.size() - 1][row_of(bytes)] = true;
        const std::size_t length = length_of(static_cast<std::uint8_t>(bytes[0]));
        if (bytes.size() <= length && std::all_of(bytes.begin() + 1, bytes.end(), is_tail))
            starts.insert(bytes);
    }
    auto& [one, two, three] = continuation_;
    for (std::size_t i = 0; i < two.size(); i++)
        if (one[i >> 6] && one[i & 63]) two[i] = true;
    for (std::size_t i = 0; i < three.size(); i++)
        if ((one[i >> 12] && two[i & 4095]) || (two[i >> 6] && one[i & 63])) three[i] = true;
    for (std::string_view start : starts) {
        const std::size_t length = length_of(static_cast<std::uint8_t>(start[0])),
                          rest = length - start.size();
        const auto lead = static_cast<std::uint8_t>(start[0]);
        const char32_t head = length == 1 ? lead : lead & (0xFFu >> (length + 1));
        const char32_t known =
            head << 6 * (start.size() - 1) | static_cast<char32_t>(row_of(start.substr(1)));
        const char32_t smallest = length == 1 ? 0 : length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
        for (std::size_t i = 0; i < std::size_t{1} << 6 * rest;) {
            std::size_t run = i;  // as many in a row as tokens spell
            while (run < std::size_t{1} << 6 * rest && (rest == 0 || continuation_[rest - 1][run])) run++;
            const char32_t first = known << 6 * rest | static_cast<char32_t>(i);
            if (run > i)
                spellable_.add(std::max(first, smallest), first + static_cast<char32_t>(run - i - 1));
            i = std::max(run, i + 1);
        }
    }
}

bool GrammarVocabulary::spells(std::span<const ByteRange> continuation) const {
    const std::vector<bool>& known = continuation_[continuation.size() - 1];
    std::function<bool(std::size_t, std::size_t)> any = [&](std::size_t i, std::size_t row) {
        if (i == continuation.size()) return bool(known[row]);
        for (int byte = continuation[i].first; byte <= continuation[i].last; byte++)
            if (any(i + 1, row << 6 | static_cast<std::size_t>(byte & 0x3F))) return true;
        return false;
    };
    return any(0, 0);
}

}  // namespace linnet
