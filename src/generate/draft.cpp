#include "generate/draft.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/hash.h"
#include "base/signals.h"

namespace linnet {
namespace {

std::uint64_t hash_of(std::span<const TokenId> tokens) {
    return hash_bytes({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()}, tokens.size());
}

}  // namespace

void LookupDrafter::draft(const Continuation& continuation, std::size_t most, std::vector<TokenId>& out) {
    const std::span<const TokenId> text = continuation.text();
    const std::uint64_t forgotten = continuation.forgotten();
    if (forgotten - begun_ > text.size()) {  // not whenever some is forgotten: the rest may be long
        after_.clear();
        begun_ = seen_ = forgotten;
    }
    // All tokens but the newest have one behind them, so what ends there may be looked up later.
    for (seen_ = std::max(seen_, forgotten); seen_ < forgotten + text.size(); seen_++)
        for (std::size_t n = shortest; n <= longest && n <= seen_ - forgotten; n++)
            after_[hash_of(text.subspan(seen_ - forgotten - n, n))] = seen_;
    for (std::size_t n = std::min(longest, text.size()); n >= shortest; n--) {
        const std::span<const TokenId> newest = text.last(n);
        auto found = after_.find(hash_of(newest));
        if (found == after_.end() || found->second < forgotten + n) continue;
        const auto at = static_cast<std::size_t>(found->second - forgotten);
        if (!std::equal(newest.begin(), newest.end(), text.begin() + static_cast<std::ptrdiff_t>(at - n)))
            continue;  // two hashes alike, or first tokens, which are kept where others are forgotten
        // Where the text ends it may go on repeating itself.
        for (std::size_t i = 0; i < most; i++)
            out.push_back(at + i < text.size() ? text[at + i] : out[out.size() - (text.size() - at)]);
        return;
    }
}

/// Moves `begun_` to where the tokens that are to be held begin, and gives how many they are: all of the
/// text, until the context is full; then half of what it has room for, and those that follow, until it is
/// full again.
std::size_t ModelDrafter::advance_begin(const Continuation& text) {
    const auto context = static_cast<std::uint64_t>(sequence_.context());
    const std::uint64_t end = text.forgotten() + text.text().size();
    begun_ = std::max(begun_, text.forgotten());
    if (end - begun_ > context) begun_ = end - std::max<std::uint64_t>(1, context / 2);
    return static_cast<std::size_t>(end - begun_);
}

void ModelDrafter::draft(const Continuation& continuation, std::size_t most, std::vector<TokenId>& out) {
    constexpr std::size_t few = 8;  // that many tokens are written, more are read
    const std::span<const TokenId> text =
        std::span<const TokenId>(continuation.text()).last(advance_begin(continuation));
    const std::size_t unread = continuation.text().size() - text.size();
    const auto context = static_cast<std::size_t>(sequence_.context());
    if (text.size() >= context || most == 0) return;
    most = std::min(most, context - text.size());
    auto same = static_cast<std::size_t>(
        std::mismatch(held_.begin(), held_.end(), text.begin(), text.end()).first - held_.begin());
    same = std::min(same, text.size() - 1);
    held_.resize(static_cast<std::size_t>(sequence_.rewind(static_cast<std::int64_t>(same))));
    const auto unknown = [&](TokenId id) { return id >= vocabulary_; };
    if (std::any_of(text.begin() + static_cast<std::ptrdiff_t>(held_.size()), text.end(), unknown)) return;
    // The same settings, state and random numbers as the large model's: where the two agree, so do their
    // draws.
    const Tokenizer& tokenizer = continuation.tokenizer();
    Sampler sampler(continuation.options().sampler, &tokenizer);
    sampler.set_state(continuation.sampler().state());
    std::optional<GrammarCursor> cursor = continuation.cursor();
    if (cursor && vocabulary_ != tokenizer.size()) return;  // its masks are of the large model's tokens
    std::vector<TokenId> all = continuation.text();
    std::string bytes;
    for (std::size_t i = 0; i < most; i++) {
        const std::span<const TokenId> rest = std::span<const TokenId>(all).subspan(unread + held_.size());
        std::span<const float> logits;
        try {
            logits = sequence_.append(rest, rest.size() > few ? Phase::read : Phase::write);
        } catch (const Stopped&) {  // the text ends with the run that this was for
            return;
        }
        held_.insert(held_.end(), rest.begin(), rest.end());
        const std::optional<TokenId> id =
            sampler.pick(logits, all, continuation.picks() + i, cursor ? &cursor->mask(false) : nullptr);
        if (!id || *id >= tokenizer.size()) return;
        all.push_back(*id);
        out.push_back(*id);
        if (!cursor) continue;
        bytes.clear();
        tokenizer.decode(*id, false, bytes);
        if (!cursor->advance(bytes) || cursor->must_end()) return;
    }
}

void require_same_vocabulary(const Model& draft, const Model& model) {
    const Tokenizer &a = draft.tokenizer(), &b = model.tokenizer();
    const std::string article = model.path() == "built-in model" ? "the " : "";
    const std::string hint = "a draft model needs the vocabulary of " + article + model.path();
    if (std::abs(a.size() - b.size()) > most_padding)
        fail_input(draft.path(), "vocabulary", std::to_string(b.size()) + " tokens", std::to_string(a.size()),
                   hint);
    for (TokenId id = 0; id < std::min(a.size(), b.size()); id++)
        if (a.piece(id) != b.piece(id))
            fail_input(draft.path(), "token " + std::to_string(id), quoted(b.piece(id)), quoted(a.piece(id)),
                       hint);
}

}  // namespace linnet
