#include "generate/grammar/constraint.h"

#include <algorithm>

#include "base/hash.h"

namespace linnet {
namespace {

using Element = Automaton::Element;

/// Elements of a stack that are looked at before all that leave are tried one by one, however many.
constexpr std::size_t deepest = 8;
/// Tops of one state that are looked at before no more elements are.
constexpr std::size_t many_tops = 256;
/// A top that lets more tokens leave than this share of a vocabulary is looked at with what is below.
constexpr std::size_t leaving_share = 128, leaving_least = 192;
constexpr std::size_t most_top_bytes = std::size_t{128} << 20, most_masks = 64, most_made = 2'000'000;

}  // namespace

std::size_t TokenConstraint::KeyHash::operator()(const Key& key) const {
    return hash_bytes({reinterpret_cast<const char*>(key.top.data()), key.top.size() * sizeof(Element)},
                      key.whole + 2 * key.last);
}

TokenConstraint::TokenConstraint(const Grammar& grammar, const Tokenizer& tokenizer,
                                 std::shared_ptr<const GrammarVocabulary> vocabulary, std::string_view file)
    : tokenizer_(tokenizer),
      vocabulary_(std::move(vocabulary)),
      automaton_(GrammarProgram(grammar, *vocabulary_, file)) {}

/// Follows every token from the top of a stack. What reaches below it with bytes left is for the whole stack
/// to decide; what ends just there is allowed, as what is below can be fulfilled.
TokenConstraint::Top TokenConstraint::make_top(const Key& key) {
    const TokenTree& tree = vocabulary_->tokens();
    const std::vector<TokenTree::Node>& nodes = tree.nodes();
    const std::size_t most =
        std::max(leaving_least, static_cast<std::size_t>(vocabulary_->size()) / leaving_share);
    const bool may_go_deeper = !key.last;
    Top made;
    struct Step {
        GrammarState state;
        bool left;  // what is below may have been reached before the newest byte
    };
    std::vector<Step> path(GrammarVocabulary::longest_short + 1);
    path[0] = {automaton_.piece(key.top, key.whole), false};
    auto leave = [&](std::uint32_t from, std::uint32_t to) {
        for (; from < to; from++) made.leaving.push_back(from);
    };
    for (std::size_t i = 0; i + 1 < nodes.size();) {
        const TokenTree::Node& node = nodes[i];
        const Step& from = path[node.depth - 1u];
        const bool left = from.left || automaton_.leaves(from.state);
        const GrammarState state = automaton_.next(from.state, node.byte);
        if (state == Automaton::dead) {
            if (left) leave(node.token, nodes[node.skip].token);
            i = node.skip;
        } else {
            path[node.depth] = {state, left};
            const std::uint32_t end = nodes[i + 1].token;
            if (automaton_.open(state))
                made.few.insert(made.few.end(), tree.tokens().begin() + node.token,
                                tree.tokens().begin() + end);
            else if (left)
                leave(node.token, end);
            i++;
        }
        if (made.leaving.size() > most && may_go_deeper) return {true, {}, {}, {}};
    }
    if (made.few.size() > static_cast<std::size_t>(vocabulary_->size()) / 64) {
        made.words.assign((static_cast<std::size_t>(vocabulary_->size()) + 63) / 64, 0);
        for (TokenId id : made.few)
            made.words[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << id % 64;
        made.few = {};
    }
    return made;
}

const TokenConstraint::Top& TokenConstraint::top_of(const Key& key) {
    auto found = tops_.find(key);
    if (found == tops_.end()) {
        Top made = make_top(key);
        top_bytes_ += made.bytes();
        found = tops_.emplace(key, std::move(made)).first;
    }
    return found->second;
}

void TokenConstraint::allow_below(Key& key, Automaton::StackSet stacks, Allowed& allowed) {
    auto allow = [&](bool whole) {
        key.whole = whole;
        key.last = whole || key.top.size() >= deepest || allowed.tops++ >= many_tops;
        const Top& top = top_of(key);
        for (std::size_t i = 0; i < top.words.size(); i++) allowed.mask.words()[i] |= top.words[i];
        for (TokenId id : top.few) allowed.mask.set(static_cast<std::size_t>(id));
        allowed.leaving.insert(allowed.leaving.end(), top.leaving.begin(), top.leaving.end());
        return top.deeper;
    };
    // By number: sets are made on the way.
    for (std::size_t i = 0; i < automaton_.edges(stacks).size(); i++) {
        const Automaton::Edge edge = automaton_.edges(stacks)[i];
        key.top.push_back(automaton_.folded(edge.top, GrammarVocabulary::longest_short));
        if (automaton_.has_bottom(edge.below)) allow(true);
        if (!automaton_.edges(edge.below).empty() && allow(false)) allow_below(key, edge.below, allowed);
        key.top.pop_back();
    }
}

void TokenConstraint::add_long_tokens(GrammarState start, TokenMask& mask) {
    const TokenTree& tree = vocabulary_->long_tokens();
    const std::vector<TokenTree::Node>& nodes = tree.nodes();
    std::vector<GrammarState> path{start};
    for (std::size_t i = 0; i + 1 < nodes.size();) {
        const TokenTree::Node& node = nodes[i];
        path.resize(node.depth);
        const GrammarState state = automaton_.next(path.back(), node.byte);
        path.push_back(state);
        if (automaton_.open(state))
            for (std::uint32_t t = node.token; t < nodes[i + 1].token; t++)
                mask.set(static_cast<std::size_t>(tree.tokens()[t]));
        i = state == Automaton::dead ? node.skip : i + 1;
    }
}

void TokenConstraint::make_mask(GrammarState state, bool ends, TokenMask& mask) {
    mask.clear(static_cast<std::size_t>(vocabulary_->size()));
    std::vector<std::uint32_t> leaving;
    Key key{{}, false, false};
    Allowed allowed{mask, leaving};
    allow_below(key, automaton_.stacks(state), allowed);
    std::sort(leaving.begin(), leaving.end());
    leaving.erase(std::unique(leaving.begin(), leaving.end()), leaving.end());
    const TokenTree& tree = vocabulary_->tokens();
    for (std::uint32_t token : leaving) {
        const auto id = static_cast<std::size_t>(tree.tokens()[token]);
        if (!mask.has(id) && automaton_.open(automaton_.next(state, tree.spelling(token)))) mask.set(id);
    }
    add_long_tokens(state, mask);
    if (ends && automaton_.may_end(state))
        for (TokenId id : vocabulary_->ends()) mask.set(static_cast<std::size_t>(id));
    mask.finish();
}

/// Token by token, as they are spelled where nothing stands before them.
void TokenConstraint::make_first_mask(GrammarState state, bool ends, TokenMask& mask) {
    mask.clear(static_cast<std::size_t>(vocabulary_->size()));
    std::string bytes;
    for (TokenId id = 0; id < vocabulary_->size(); id++) {
        if (tokenizer_.is_end(id) ? !ends || !automaton_.may_end(state) : tokenizer_.is_control(id)) continue;
        bytes.clear();
        tokenizer_.decode(id, true, bytes);
        if (tokenizer_.is_end(id) || (!bytes.empty() && automaton_.open(automaton_.next(state, bytes))))
            mask.set(static_cast<std::size_t>(id));
    }
    mask.finish();
}

const TokenMask& TokenConstraint::mask(GrammarState state, bool ends, bool first) {
    const auto key = (std::int64_t{state} * 2 + ends) * 2 + first;
    if (auto found = masks_.find(key); found != masks_.end()) return found->second;
    if (masks_.size() >= most_masks) masks_.clear();
    TokenMask& made = masks_[key];
    first ? make_first_mask(state, ends, made) : make_mask(state, ends, made);
    return made;
}

void TokenConstraint::make_room() {
    if (top_bytes_ > most_top_bytes) tops_.clear(), top_bytes_ = 0;
    if (automaton_.size() < most_made) return;
    automaton_.shrink(cursors_);
    masks_.clear();
}

GrammarCursor::GrammarCursor(std::shared_ptr<TokenConstraint> constraint, bool ends)
    : constraint_(std::move(constraint)), state_(constraint_->automaton_.start()), ends_(ends) {
    constraint_->hold(&state_);
}

GrammarCursor::GrammarCursor(const GrammarCursor& other)
    : constraint_(other.constraint_), state_(other.state_), ends_(other.ends_) {
    constraint_->hold(&state_);
}

GrammarCursor::~GrammarCursor() {
    constraint_->release(&state_);
}

const TokenMask& GrammarCursor::mask(bool first) {
    constraint_->make_room();
    return constraint_->mask(state_, ends_, first);
}

bool GrammarCursor::advance(std::string_view bytes) {
    const GrammarState to = constraint_->automaton_.next(state_, bytes);
    if (!constraint_->automaton_.open(to)) return false;  // masks handed out stay as they are
    state_ = to;
    constraint_->make_room();
    return true;
}

bool GrammarCursor::may_end() const {
    return constraint_->automaton_.may_end(state_);
}

bool GrammarCursor::must_end() const {
    return constraint_->automaton_.must_end(state_);
}

}  // namespace linnet
