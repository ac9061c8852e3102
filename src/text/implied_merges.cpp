#include <map>

#include "text/bpe.h"

namespace linnet {

MergeReader::MergeReader(const Vocabulary& vocabulary, std::size_t count, std::string_view continuing,
                         Fail fail)
    : vocabulary_(vocabulary), continuing_(continuing), fail_(std::move(fail)) {
    table_.reserve(count);
    waiting_.reserve(64);
}

void MergeReader::flush() {
    for (const Waiting& w : waiting_) {
        joined_.assign(w.left);
        joined_ += !continuing_.empty() && w.right.starts_with(continuing_)
                       ? w.right.substr(continuing_.size())
                       : w.right;
        const TokenId l = vocabulary_.find(w.left, w.left_hash), r = vocabulary_.find(w.right, w.right_hash);
        if (l < 0 || r < 0) fail_(count_, "two tokens of the vocabulary");
        const TokenId guess = last_ + 1;
        const bool guessed = vocabulary_.valid(guess) && vocabulary_.spelling(guess) == joined_;
        last_ = guessed ? guess : vocabulary_.find(joined_);
        if (last_ < 0) fail_(count_, "a merge whose joined spelling is a token");
        table_.add(l, r, static_cast<std::uint32_t>(count_++), last_);
    }
    waiting_.clear();
}

MergeTable ranked_merges(const Vocabulary& vocabulary, TokenId ranks) {
    TokenId byte_id[256];
    for (int b = 0; b < 256; b++)
        byte_id[b] = vocabulary.find(byte_alphabet::spell(static_cast<std::uint8_t>(b)));
    MergeTable merges;
    merges.reserve(static_cast<std::size_t>(ranks));
    Merger merger;
    std::string bytes;
    for (TokenId id = 0; id < ranks; id++) {
        if (vocabulary.type(id) != TokenType::normal) continue;
        bytes.clear();
        const std::string_view spelling = vocabulary.spelling(id);
        byte_alphabet::unspell(spelling, bytes);
        if (bytes.size() < 2) continue;
        std::vector<TokenId>& symbols = merger.symbols();
        symbols.clear();
        for (char c : bytes) symbols.push_back(byte_id[static_cast<std::uint8_t>(c)]);
        merger.apply(merges);
        if (symbols.size() == 2) {
            merges.add(symbols[0], symbols[1], static_cast<std::uint32_t>(id), id);
            continue;
        }
        // No lower ranks lead to it; parts of higher rank might, so every split counts.
        for (std::size_t i = 1; i < spelling.size(); i++) {
            if ((static_cast<std::uint8_t>(spelling[i]) & 0xC0) == 0x80) continue;
            const TokenId left = vocabulary.find(spelling.substr(0, i)),
                          right = vocabulary.find(spelling.substr(i));
            if (left >= 0 && right >= 0 && left < ranks && right < ranks)
                merges.add(left, right, static_cast<std::uint32_t>(id), id);
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
