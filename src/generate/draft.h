// Guesses of how a text goes on, for a model to verify several at a time: speculative decoding (Leviathan et
// al. 2023, "Fast inference from transformers via speculative decoding"). Every token is still picked from
// the model's own logits with its own random number; a guess that equals the pick saves a run, any other
// costs its row. So the text is the same, bit for bit, whatever is guessed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "generate/continuation.h"
#include "model/engine/engine.h"

namespace linnet {

class Drafter {
  public:
    virtual ~Drafter() = default;
    /// Appends up to `most` tokens that may follow text.text(). Asked about one text only, as it grows.
    virtual void draft(const Continuation& text, std::size_t most, std::vector<TokenId>& out) = 0;
};
/// Makes one for each text.
using MakeDrafter = std::function<std::unique_ptr<Drafter>()>;

/// Looks the newest tokens up in the text itself and guesses what followed them there (Saxena 2023, "Prompt
/// lookup decoding"): quotations, names, code.
class LookupDrafter : public Drafter {
  public:
    void draft(const Continuation& text, std::size_t most, std::vector<TokenId>& out) override;

  private:
    static constexpr std::size_t longest = 4, shortest = 2;  // tokens that must be equal
    // Places in the text count what was forgotten of it.
    std::unordered_map<std::uint64_t, std::uint64_t> after_;  // where the text went on, the last time
    std::uint64_t begun_ = 0, seen_ = 0;                      // what it knows: places from, to
};

/// Drafts of a smaller model with the same vocabulary. Its sequence is one of `engine`'s, which must outlive
/// it. Of a text longer than its context it reads the newest part.
class ModelDrafter : public Drafter {
  public:
    explicit ModelDrafter(Engine& engine)
        : sequence_(engine.start()), vocabulary_(engine.model().tokenizer().size()) {}
    void draft(const Continuation& text, std::size_t most, std::vector<TokenId>& out) override;

  private:
    std::size_t advance_begin(const Continuation& text);
    Sequence sequence_;
    TokenId vocabulary_;
    std::vector<TokenId> held_;
    std::uint64_t begun_ = 0;  // where these begin in the text, what was forgotten of it counted
};

/// Vocabularies are padded for fast products, and those of one family by different numbers of tokens.
inline constexpr TokenId most_padding = 128;
/// Error(Exit::input), naming both models, where the two do not spell every id alike. One of them may have up
/// to most_padding more.
void require_same_vocabulary(const Model& draft, const Model& model);

}  // namespace linnet
