// The text of a run: documents held in memory, or files of tokens.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/examples.h"
#include "train/task/config.h"

namespace linnet {

/// The most that an input may weigh.
inline constexpr double most_weight = 1e9;

/// What --data and the reading options say.
struct DataOptions {
    std::vector<std::string> inputs;  // files, folders, "-"; or one corpus (data/token_files.h)
    std::vector<std::string> names;   // as they were given before a resume, for logs; empty: as inputs
    std::vector<double> weights;      // of each input, positive; empty: all are one text
    ReadOptions read;
    std::vector<std::string> fields;  // of JSON lines that hold examples; empty: the objective's own
    bool resize = false;              // pictures of another size are made as large as the model's

    const std::vector<std::string>& called() const { return names.empty() ? inputs : names; }
    /// As a checkpoint keeps it, so that a resume needs no --data: paths are absolute, names as given.
    nlohmann::json to_json() const;
    static DataOptions from_json(const nlohmann::json& json);
};

class RunData {
  public:
    /// Reads the documents or examples, or the corpus's index. Error naming the input where there is no text
    /// in it.
    explicit RunData(DataOptions options);

    std::string name() const;                                // of the input, for messages
    const std::string& sha256() const { return sha256_; }    // of the text, or of the corpus's index
    std::uint64_t bytes() const;                             // of text, both splits
    std::int64_t vocabulary() const { return vocabulary_; }  // of a corpus; 0: none yet
    /// "23 410 documents of the field text, 45.1 MB"
    std::string description() const;
    const DataOptions& options() const { return options_; }
    /// The corpus's own tokenizer file; empty where the data is text, or other programs' files without one.
    std::string own_tokenizer() const { return corpus_ ? corpus_->tokenizer() : ""; }
    bool is_corpus() const { return corpus_.has_value(); }
    /// What a vocabulary of this kind is made from. Not of a corpus.
    std::string vocabulary_text(const TokenizerConfig& config, double fraction) const;
    /// Holds a corpus of ours against its checksums: a sample of them, or all.
    void check(bool whole) const;

    /// As the config says; a corpus brings its own unless the config names a file. Not of conversations.
    TokenizerPtr tokenizer(const RunConfig& config, int threads) const;
    /// The tokens; the text is let go.
    TokenSource tokens(const Tokenizer& tokenizer, double fraction, int threads);

    /// Examples, of which answers are learned.
    bool has_examples() const { return examples_.has_value(); }
    /// Several texts in memory, which may be packed without seeing each other.
    bool is_packable() const { return has_examples() || (documents_ && count_ > 1); }
    /// Where examples are conversations: the place of the first, for an error; else empty.
    std::string first_chat() const;
    /// Examples or documents, packed into bins of T rows; the text is let go. `form` is for conversations.
    /// What should be known of them is in notes() then.
    PackedTexts packed(const Tokenizer& tokenizer, const ChatTemplate* form, double fraction,
                       std::uint64_t seed, std::int64_t T, int threads);
    /// A line each: of examples that were too long, and of ends that cannot be learned.
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    bool jsonl() const;
    void note_examples(const PackedTexts& packed, bool has_end, std::int64_t T);
    DataOptions options_;
    std::optional<Documents> documents_;
    std::optional<Examples> examples_;
    std::optional<TokenFiles> corpus_;
    std::int64_t vocabulary_ = 0;
    std::uint64_t bytes_ = 0, count_ = 0;
    std::string sha256_;
    std::vector<std::string> notes_;
};

/// A vocabulary of the config's kind, made from `text`, with what its objective asks for (special_tokens).
TokenizerPtr make_vocabulary(const RunConfig& run, std::string_view text, int threads, bool answers = false);

}  // namespace linnet
