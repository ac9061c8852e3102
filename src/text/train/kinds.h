// What differs between the kinds of vocabulary: how words are spelled, the first symbols, how ids are laid
// out.
#pragma once
#include <string>
#include <vector>

#include "text/train/merges.h"
#include "text/train/train.h"
#include "text/train/words.h"

namespace linnet {

/// One kind of vocabulary to train.
class TrainKind {
  public:
    virtual ~TrainKind() = default;
    /// Counts the words of a text. `first`: it begins a document. Called from many threads.
    virtual void count(std::string_view text, bool first, WordTable& table) const = 0;
    /// Sees every distinct word once before merging (to choose an alphabet).
    virtual void survey(std::string_view, std::uint64_t) {}
    /// After the survey: the first symbols of the merger, by id.
    virtual std::vector<std::string> alphabet() = 0;
    /// Ids beside the alphabet's and the merges'.
    virtual std::size_t reserved() const = 0;
    virtual MergeLimits limits() const { return {}; }
    /// A word as symbols of the alphabet; a word may fall into several strings.
    using Emit = std::function<void(std::span<const std::uint32_t>)>;
    virtual void spell(std::string_view word, std::vector<std::uint32_t>& scratch,
                       const Emit& emit) const = 0;
    virtual TrainedVocabulary assemble(const PairMerger& merger) const = 0;
};

/// Error(Exit::usage) for an unknown name.
std::unique_ptr<TrainKind> make_train_kind(const TrainOptions& options);

}  // namespace linnet
