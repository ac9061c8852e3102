#include "text/inspect/verify.h"

#include <algorithm>

namespace linnet {
namespace {

/// Walks the tokens of one encoding with the byte at which each begins.
class Walk {
  public:
    Walk(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) : tokenizer_(tokenizer), ids_(ids) {}
    bool done() const { return at_ == ids_.size(); }
    TokenId id() const { return ids_[at_]; }
    std::size_t index() const { return at_; }
    std::size_t byte() const { return byte_; }
    void step() {
        piece_.clear();
        tokenizer_.decode(ids_[at_], at_ == 0, piece_);
        byte_ += piece_.size();
        at_++;
    }

  private:
    const Tokenizer& tokenizer_;
    const std::vector<TokenId>& ids_;
    std::size_t at_ = 0, byte_ = 0;
    std::string piece_;
};

/// Both decode to the text, so bytes align them: a difference lasts until both begin a token at the same
/// byte.
void compare_by_bytes(const Tokenizer& a, const Tokenizer& b, const std::vector<TokenId>& ia,
                      const std::vector<TokenId>& ib, Comparison& result) {
    Walk x(a, ia), y(b, ib);
    while (!x.done() || !y.done()) {
        if (!x.done() && !y.done() && x.byte() == y.byte() && x.id() == y.id()) {
            x.step();
            y.step();
            continue;
        }
        Difference d;
        d.begin = std::min(x.byte(), y.byte());
        do {
            const bool left = y.done() || (!x.done() && x.byte() <= y.byte());
            Walk& behind = left ? x : y;
            (left ? d.a : d.b).push_back(behind.id());
            behind.step();
        } while (x.byte() != y.byte() && !(x.done() && y.done()));
        // A token of no bytes on one side may leave the other side's list empty; that is a difference too.
        if (d.a.empty() && !x.done() && y.byte() == x.byte()) d.a.push_back(x.id()), x.step();
        while (y.byte() < x.byte() && !y.done()) d.b.push_back(y.id()), y.step();
        while (x.byte() < y.byte() && !x.done()) d.a.push_back(x.id()), x.step();
        d.end = x.byte();
        if (d.a == d.b) continue;
        if (result.differences++ == 0) result.first = std::move(d);
    }
}

}  // namespace

Comparison compare_tokenizers(const Tokenizer& a, const Tokenizer& b, std::string_view text, int threads) {
    EncodeOptions options;
    options.threads = threads;
    const std::vector<TokenId> ia = a.encode(text, options), ib = b.encode(text, options);
    Comparison result;
    result.tokens_a = ia.size();
    result.tokens_b = ib.size();
    if (ia == ib) return result;
    result.aligned = a.decode(ia) == text && b.decode(ib) == text;
    if (result.aligned) {
        compare_by_bytes(a, b, ia, ib, result);
        return result;
    }
    // Lossy tokenizers (WordPiece): compare position by position; `first` is in tokens.
    const std::size_t common = std::min(ia.size(), ib.size());
    for (std::size_t i = 0; i < common; i++)
        if (ia[i] != ib[i]) {
            if (result.differences++ == 0) {
                result.first.begin = i;
                result.first.end = i + 1;
                result.first.a = {ia[i]};
                result.first.b = {ib[i]};
            }
        }
    if (ia.size() != ib.size()) {
        if (result.differences == 0) result.first.begin = result.first.end = common;
        result.differences += std::max(ia.size(), ib.size()) - common;
    }
    return result;
}

}  // namespace linnet
