// Where training takes its tokens from: a text held in memory, or files of tokens mapped read-only; or texts
// that are packed (packing.h).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/documents.h"
#include "data/token_files.h"
#include "ops/batch.h"
#include "text/tokenizer.h"

namespace linnet {

class PackedTexts;

/// Two streams of token ids, one per split; or packed texts. Reading is safe from many threads.
class TokenSource {
  public:
    /// Texts in memory, which are encoded at once. `mark`: each is a document, and gets the vocabulary's
    /// begin and end tokens where it has them.
    static TokenSource from_documents(const TextSplit& split, bool mark, const Tokenizer& tokenizer,
                                      int threads, std::string name = "text");
    /// Files of tokens, with their own split; a corpus made with a vocabulary of another size is refused. Of
    /// files without any for validation, the last `fraction` is held out.
    static TokenSource open_files(const TokenFiles& files, const Tokenizer& tokenizer, double fraction);
    /// Texts that do not see each other: `name` is theirs.
    static TokenSource from_packed(PackedTexts texts, std::string name);

    std::uint64_t size(DataSplit split) const;   // tokens; of packed texts those that count
    std::uint64_t bytes(DataSplit split) const;  // of the text they spell (for bits per byte)
    const std::string& name() const { return name_; }
    /// Else in files that are mapped.
    bool in_memory() const;
    /// Null: streams.
    const PackedTexts* packed() const { return packed_.get(); }

    /// inputs[i] = token begin + i, targets[i] = token begin + i + 1. Both spans [T]; begin + T <
    /// size(split). Error(Exit::input) for an id outside the vocabulary (a damaged shard). Of packed texts a
    /// std::logic_error.
    void window(DataSplit split, std::uint64_t begin, std::span<std::int32_t> inputs,
                std::span<std::int32_t> targets) const;

  private:
    struct Stream;
    static void hold_out(Stream& train, Stream& validation, double fraction);
    static std::uint64_t spelled_bytes(const Stream& stream, const Tokenizer& tokenizer);
    std::string name_;
    TokenId vocab_size_ = 0;
    std::shared_ptr<const Stream> streams_[2];
    std::shared_ptr<const PackedTexts> packed_;  // in their place
};

/// Windows of T tokens out of a source: random ones to train on, disjoint ones in order to validate. Of
/// packed texts a bin of at most T rows stands for a window.
class WindowSampler {
  public:
    /// Error(Exit::input) where the training split of a stream has fewer than T + 1 tokens.
    WindowSampler(TokenSource source, std::uint64_t seed, std::int64_t T);

    /// The window of sequence b of micro-batch m of step s is index (s * accumulate + m) * batch + b: it
    /// depends on (seed, index) alone, so resuming needs no state. An epoch's windows are disjoint, begin at
    /// an offset of its own and come in an order of its own: every window of an epoch is seen once before
    /// any of the next. (Drawn with replacement, as nanoGPT does, a fifth of the text is still unseen after
    /// an epoch and a half.) Not of packed texts, whose bins have an order of their own in every epoch.
    void train_window(std::uint64_t index, std::span<std::int32_t> inputs,
                      std::span<std::int32_t> targets) const;

    /// Of each epoch's: those of the first are [0, epoch_windows()).
    std::uint64_t epoch_windows() const;
    /// Rows that reading all of the training split once takes.
    std::uint64_t epoch_rows() const;
    /// Rows with a loss in the training windows [begin, end).
    std::int64_t targets(std::uint64_t begin, std::uint64_t end) const;

    /// Disjoint windows of the validation split; 0 where it is shorter than T + 1 tokens.
    std::uint64_t validation_windows() const;
    void validation_window(std::uint64_t i, std::span<std::int32_t> inputs,
                           std::span<std::int32_t> targets) const;

    /// Adds training window `index`, or held-out one, to a batch: one sequence, or those of a bin.
    void add(DataSplit split, std::uint64_t index, Batch& batch) const;

    const TokenSource& source() const { return source_; }

  private:
    TokenSource source_;
    std::uint64_t seed_;
    Rng rng_;
    std::uint64_t T_;
};

}  // namespace linnet
