#include <map>

#include "text/bpe.h"

namespace linnet {

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
