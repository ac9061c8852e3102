// The text of a run: documents held in memory, or files of tokens.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/batches.h"
#include "train/config.h"

namespace linnet {

/// What --data and the reading options say.
struct DataOptions {
    std::vector<std::string> inputs;  // files, folders, "-"; or one corpus (data/token_files.h)
    ReadOptions read;
    std::vector<std::string> fields;  // of JSON lines that hold examples; empty: the objective's own

    /// As a checkpoint keeps it, so that a resume needs no --data: paths are absolute.
    nlohmann::json to_json() const;
    static DataOptions from_json(const nlohmann::json& json);
};

class RunData {
  public:
    /// Reads the documents, or the corpus's index. Error naming the input where there is no text in it.
    explicit RunData(DataOptions options);

    std::string name() const;                              // of the input, for messages
    const std::string& sha256() const { return sha256_; }  // of the text, or of the corpus's index
    std::uint64_t bytes() const;                           // of text, both splits
    std::uint64_t documents() const;
    std::int64_t vocabulary() const { return vocabulary_; }  // of a corpus; 0: none yet
    /// "23 410 documents of the field text, 45.1 MB"
    std::string description() const;
    const DataOptions& options() const { return options_; }
    /// The corpus's own tokenizer file; empty where the data is text, or other programs' files without one.
    std::string own_tokenizer() const { return corpus_ ? corpus_->tokenizer() : ""; }
    /// Holds a corpus of ours against its checksums: a sample of them, or all.
    void check(bool whole) const;

    /// As the config says; a corpus brings its own unless the config names a file.
    TokenizerPtr tokenizer(const RunConfig& config, int threads) const;
    /// The tokens; the text is let go.
    TokenSource tokens(const Tokenizer& tokenizer, double fraction, int threads);

  private:
    bool jsonl() const;
    DataOptions options_;
    std::optional<Documents> documents_;
    std::optional<TokenFiles> corpus_;
    std::int64_t vocabulary_ = 0;
    std::uint64_t bytes_ = 0, count_ = 0;
    std::string sha256_;
};

}  // namespace linnet
