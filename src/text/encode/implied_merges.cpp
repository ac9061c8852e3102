#include <map>
#include <span>
#include <unordered_map>

#include "base/keyed_hash.h"
#include "text/encode/bpe.h"

namespace linnet {

MergeTable ranked_merges(std::span<const std::string_view> ranks) {
    MergeTable merges;
    merges.reserve(ranks.size());
    TokenId byte_id[256] = {};
    for (std::size_t id = 0; id < ranks.size(); id++)
        if (ranks[id].size() == 1)
            byte_id[static_cast<std::uint8_t>(ranks[id][0])] = static_cast<TokenId>(id);
    std::unordered_map<std::string_view, TokenId, KeyedHash> id_of;  // filled where it is needed
    Merger merger;
    std::vector<TokenId>& symbols = merger.symbols();
    for (std::size_t id = 0; id < ranks.size(); id++) {
        const std::string_view token = ranks[id];
        if (token.size() < 2) continue;
        symbols.clear();
        for (char c : token) symbols.push_back(byte_id[static_cast<std::uint8_t>(c)]);
        merger.apply(merges);
        const auto rank = static_cast<std::uint32_t>(id);
        if (symbols.size() == 2) {
            merges.add(symbols[0], symbols[1], rank, static_cast<TokenId>(id));
            continue;
        }
        // No lower ranks lead to it; parts of higher rank might, so every split counts.
        refuse_long(token);
        if (id_of.empty())
            for (std::size_t i = 0; i < ranks.size(); i++) id_of.emplace(ranks[i], static_cast<TokenId>(i));
        for (std::size_t i = 1; i < token.size(); i++) {
            const auto left = id_of.find(token.substr(0, i)), right = id_of.find(token.substr(i));
            if (left != id_of.end() && right != id_of.end())
                merges.add(left->second, right->second, rank, static_cast<TokenId>(id));
        }
    }
    return merges;
}

ImpliedMerges implied_merges(const Vocabulary& vocabulary, const std::vector<std::uint32_t>& rank) {
    ImpliedMerges result;
    std::map<std::string_view, TokenId> extra;
    auto symbol = [&](std::string_view part, bool one_character) {
        TokenId id = vocabulary.find(part);
        if (id >= 0 && (rank[static_cast<std::size_t>(id)] != no_merge)) return id;
        if (!one_character) return TokenId{-1};
        auto [it, fresh] =
            extra.try_emplace(part, vocabulary.size() + static_cast<TokenId>(result.extra.size()));
        if (fresh) result.extra.push_back(decode_utf8(part.data(), part.data() + part.size()).code);
        return it->second;
    };
    result.merges.reserve(static_cast<std::size_t>(vocabulary.size()) * 2);
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        const std::uint32_t own = rank[static_cast<std::size_t>(id)];
        const std::string_view t = vocabulary.spelling(id);
        if (own == no_merge || vocabulary.find(t) != id) continue;
        refuse_long(t);
        const char *begin = t.data(), *end = begin + t.size();
        const char* first_end = t.empty() ? end : begin + decode_utf8(begin, end).size;
        for (const char* p = first_end; p < end; p += decode_utf8(p, end).size) {
            const TokenId left = symbol({begin, static_cast<std::size_t>(p - begin)}, p == first_end);
            if (left < 0) continue;
            const TokenId right =
                symbol({p, static_cast<std::size_t>(end - p)}, p + decode_utf8(p, end).size == end);
            if (right >= 0) result.merges.add(left, right, own, id);
        }
    }
    return result;
}

}  // namespace linnet
