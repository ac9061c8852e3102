#include <map>
#include <span>
#include <unordered_map>

#include "text/encode/bpe.h"

namespace linnet {

MergeReader::MergeReader(const Vocabulary& vocabulary, std::size_t first, std::size_t count,
                         std::string_view continuing, Fail fail)
    : vocabulary_(vocabulary), continuing_(continuing), fail_(std::move(fail)), next_(first) {
    table_.reserve(count);
    waiting_.reserve(64);
}

void MergeReader::flush() {
    for (Waiting& w : waiting_) {
        joined_.assign(w.left);
        joined_ += !continuing_.empty() && w.right.starts_with(continuing_)
                       ? w.right.substr(continuing_.size())
                       : w.right;
        w.left_id = vocabulary_.find(w.left, w.left_hash);
        w.right_id = vocabulary_.find(w.right, w.right_hash);
        if (w.left_id < 0 || w.right_id < 0) fail_(next_, "two tokens of the vocabulary");
        const TokenId guess = last_ + 1;
        // Control and unused tokens may repeat a spelling: there find() says which.
        const bool guessed = vocabulary_.valid(guess) && vocabulary_.type(guess) == TokenType::normal &&
                             vocabulary_.spelling(guess) == joined_;
        w.joined_id = last_ = guessed ? guess : vocabulary_.find(joined_);
        if (last_ < 0) fail_(next_, "a merge whose joined spelling is a token");
        table_.prefetch(w.left_id, w.right_id);
        next_++;
    }
    std::uint32_t rank = static_cast<std::uint32_t>(next_ - waiting_.size());
    for (const Waiting& w : waiting_) table_.add(w.left_id, w.right_id, rank++, w.joined_id);
    waiting_.clear();
}

namespace {

/// ranked_merges(), 16 tokens at a time: while one waits for the table the others go on, which saves 7 %.
/// They are merged by the ranks below all of theirs; one that is then left in two symbols has its pair, as
/// the ranks between would have had their turn only now; another (few) is merged anew, alone. (Sharing blocks
/// of tokens among threads gains nothing: each must fetch what another has entered.)
class RankedMerges {
  public:
    RankedMerges(RankFeed& feed, std::size_t expected) : feed_(feed) {
        merges_.reserve(expected);
        RankFeed::Ranks ranks = feed.more_than(0);
        for (std::size_t id = 0; id < ranks.size(); id++)
            if (ranks[id].size() == 1)
                byte_id_[static_cast<std::uint8_t>(ranks[id][0])] = static_cast<TokenId>(id);
        for (std::size_t id = 0;; id++) {
            if (id == ranks.size()) ranks = feed.more_than(id);
            if (id >= ranks.size()) break;
            if (ranks[id].size() < 2) continue;
            group_[count_++] = {static_cast<TokenId>(id), ranks[id], -1, -1};
            if (count_ == std::size(group_)) merge_group();
        }
        merge_group();
    }
    MergeTable take() { return std::move(merges_); }

  private:
    static constexpr std::size_t most = 16;
    struct Token {
        TokenId id;
        std::string_view bytes;
        TokenId left, right;  // -1: not found yet
    };

    void merge_group() {
        std::size_t active[std::size(decltype(group_){})], left = 0;
        for (std::size_t i = 0; i < count_; i++) {
            if (group_[i].bytes.size() > most) continue;
            copy_symbols(group_[i], rows_[i].start(group_[i].bytes.size()));
            rows_[i].begin(merges_);
            active[left++] = i;
        }
        while (left > 0) {
            std::size_t joined = 0;
            for (std::size_t i = 0; i < left; i++) {
                const std::size_t a = active[i];
                if (rows_[a].join(merges_)) {
                    active[joined++] = a;
                } else {
                    rows_[a].is_pair(group_[a].left, group_[a].right);
                }
            }
            left = joined;
            for (std::size_t i = 0; i < left; i++) rows_[active[i]].renew(merges_);
        }
        for (const Token& token : std::span(group_, count_))
            if (token.left >= 0)
                merges_.add(token.left, token.right, static_cast<std::uint32_t>(token.id), token.id);
            else
                merge_alone(token);
        count_ = 0;
    }

    void merge_alone(const Token& token) {
        std::vector<TokenId>& symbols = merger_.symbols();
        symbols.resize(token.bytes.size());
        copy_symbols(token, symbols.data());
        merger_.apply(merges_);
        const auto rank = static_cast<std::uint32_t>(token.id);
        if (symbols.size() == 2) {
            merges_.add(symbols[0], symbols[1], rank, token.id);
            return;
        }
        // No lower ranks lead to it; parts of higher rank might, so every split counts.
        if (id_.empty()) {
            const RankFeed::Ranks ranks = feed_.all();
            for (std::size_t id = 0; id < ranks.size(); id++) id_.emplace(ranks[id], id);
        }
        for (std::size_t i = 1; i < token.bytes.size(); i++) {
            const auto left = id_.find(token.bytes.substr(0, i)), right = id_.find(token.bytes.substr(i));
            if (left != id_.end() && right != id_.end())
                merges_.add(static_cast<TokenId>(left->second), static_cast<TokenId>(right->second), rank,
                            token.id);
        }
    }

    void copy_symbols(const Token& token, TokenId* out) const {
        for (char c : token.bytes) *out++ = byte_id_[static_cast<std::uint8_t>(c)];
    }

    RankFeed& feed_;
    std::unordered_map<std::string_view, std::size_t> id_;  // filled where it is needed
    TokenId byte_id_[256] = {};
    MergeTable merges_;
    Merger merger_;
    Token group_[16];
    ShortRow<most> rows_[16];
    std::size_t count_ = 0;
};

}  // namespace

MergeTable ranked_merges(RankFeed& ranks, std::size_t expected) {
    return RankedMerges(ranks, expected).take();
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
