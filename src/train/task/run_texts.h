// All texts of a run: one (RunData), or several that have weights and are evaluated each by itself. Examples
// may be among them.
#pragma once
#include <string>
#include <vector>

#include "train/task/run_data.h"

namespace linnet {

/// What RunData says, of all together.
class RunTexts {
  public:
    /// Without weights all inputs are one text, as RunData reads them; with weights each is its own.
    explicit RunTexts(DataOptions options);

    std::string name() const;
    std::string sha256() const;
    std::uint64_t bytes() const;
    std::int64_t vocabulary() const;
    std::vector<std::string> descriptions() const;  // a line each
    const DataOptions& options() const { return options_; }
    /// Of the corpora among them; empty where there are none.
    std::string own_tokenizer() const;
    void check(bool whole) const;

    /// The first that is examples; null: all are texts.
    const RunData* examples() const;
    /// Where some are conversations: the place of the first, for an error; else empty.
    std::string first_chat() const;

    /// Made from all training texts together, or the corpora's own, which must be the same one.
    /// Error(Exit::input) where some are conversations, which a model that begins from nothing cannot learn.
    TokenizerPtr tokenizer(const RunConfig& config, int threads) const;
    /// The tokens of each: of texts a stream, of examples what RunData::packed makes of them with the seed of
    /// their place; so of documents in memory, too, where `pack_documents` and all are one text. The texts
    /// are let go.
    std::vector<TokenSource> tokens(const Tokenizer& tokenizer, const ChatTemplate* form, bool pack_documents,
                                    double fraction, std::uint64_t seed, std::int64_t T, int threads);
    /// What should be known of the tokens, once they are made: RunData::notes of each text.
    std::vector<std::string> notes() const;

  private:
    DataOptions options_;
    std::vector<RunData> parts_;
};

}  // namespace linnet
