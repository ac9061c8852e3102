// What a grammar allows of a vocabulary: after every token, which ones may come next.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "generate/grammar/automaton.h"
#include "generate/grammar/vocabulary.h"
#include "generate/sampling/mask.h"

namespace linnet {

/// One grammar for one vocabulary, shared by all texts that it binds. Not for several threads at a time.
///
/// A token is allowed where the grammar can still be fulfilled by tokens after it, so no text comes to a dead
/// end. What most tokens may do depends on the top of a stack alone (Dong et al. 2024, "XGrammar", section
/// 3.1): the vocabulary is searched once for each top that occurs, and only tokens that leave it are tried on
/// the whole state, every time.
class TokenConstraint {
  public:
    /// The tokenizer must outlive it. Error(Exit::input) naming `file` where the vocabulary can spell no text
    /// of the grammar.
    TokenConstraint(const Grammar& grammar, const Tokenizer& tokenizer,
                    std::shared_ptr<const GrammarVocabulary> vocabulary, std::string_view file);
    TokenConstraint(const TokenConstraint&) = delete;
    /// See Automaton::forgot().
    bool forgot() const { return automaton_.forgot(); }

  private:
    friend class GrammarCursor;
    struct Key {
        std::vector<Automaton::Element> top;
        bool whole;  // the stack has no more
        bool last;   // no element more is looked at
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    /// Which tokens may come next where a stack has this top.
    struct Top {
        bool deeper = false;                 // too many tokens leave it: look at one element more
        std::vector<std::uint64_t> words;    // a bit for each token that is allowed whatever is below …
        std::vector<TokenId> few;            // … or where there are few, those alone
        std::vector<std::uint32_t> leaving;  // tokens (of the tree) that what is below decides on
        std::size_t bytes() const { return words.size() * 8 + few.size() * 4 + leaving.size() * 4 + 200; }
    };
    /// `first`: nothing stands before the token.
    const TokenMask& mask(GrammarState state, bool ends, bool first);
    void make_mask(GrammarState state, bool ends, TokenMask& mask);
    /// What the stacks of a set allow, each below the elements of `key`.
    struct Allowed {
        TokenMask& mask;
        std::vector<std::uint32_t>& leaving;
        std::size_t tops = 0;  // that were looked at
    };
    void allow_below(Key& key, Automaton::StackSet stacks, Allowed& allowed);
    const Top& top_of(const Key& key);
    Top make_top(const Key& key);
    void add_long_tokens(GrammarState state, TokenMask& mask);
    void make_first_mask(GrammarState state, bool ends, TokenMask& mask);
    void make_room();
    void hold(GrammarState* cursor) { cursors_.push_back(cursor); }
    void release(GrammarState* cursor) { std::erase(cursors_, cursor); }

    const Tokenizer& tokenizer_;
    std::shared_ptr<const GrammarVocabulary> vocabulary_;  // of the tokenizer
    Automaton automaton_;
    std::unordered_map<Key, Top, KeyHash> tops_;
    std::size_t top_bytes_ = 0;
    std::unordered_map<std::int64_t, TokenMask> masks_;
    std::vector<GrammarState*> cursors_;
};

/// Where one text is in its grammar.
class GrammarCursor {
  public:
    /// `ends`: end tokens are allowed where the text may end.
    GrammarCursor(std::shared_ptr<TokenConstraint> constraint, bool ends);
    GrammarCursor(const GrammarCursor& other);
    GrammarCursor& operator=(const GrammarCursor&) = delete;
    ~GrammarCursor();

    /// The tokens that may come next, until the next call of any cursor of the constraint. `first`: nothing
    /// stands before the text (SentencePiece drops a leading space there).
    const TokenMask& mask(bool first);
    /// Goes on by what a token adds to the text; false, and nothing is changed, where the grammar forbids it.
    bool advance(std::string_view bytes);
    bool may_end() const;
    bool must_end() const;  // no token but an end token is allowed

  private:
    std::shared_ptr<TokenConstraint> constraint_;
    GrammarState state_;
    bool ends_;
};

}  // namespace linnet
