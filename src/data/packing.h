// Texts of any lengths laid into batches without padding: each is a segment of its own, and none sees
// another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/documents.h"
#include "ops/batch.h"
#include "text/tokenizer.h"

namespace linnet {

/// A text to learn from: its ids, and which of them count (the first never does: nothing stands before it).
struct PackedText {
    std::vector<TokenId> ids;
    std::vector<char> scored;  // of each id
};

/// The texts of both splits, packed once into bins of at most T rows (best fit, longest first), in an order
/// of its own in every epoch. Reading is safe from many threads.
class PackedTexts {
  public:
    /// `texts` of more than T rows: cut into pieces where `cut` (each a segment of its own), else their ends
    /// are lost. Those without a scored id are left out. Error(Exit::input) naming `name` where none is left
    /// to train on.
    PackedTexts(const std::vector<PackedText> (&texts)[2], bool cut, const Tokenizer& tokenizer,
                std::uint64_t seed, std::int64_t T, const std::string& name);

    std::uint64_t size(DataSplit split) const { return at(split).scored; }  // ids that count
    std::uint64_t bytes(DataSplit split) const { return at(split).bytes; }  // of the text they spell
    std::uint64_t bins(DataSplit split) const { return at(split).bins.size(); }
    std::uint64_t shortened() const { return shortened_; }  // texts that lost their ends,
    std::uint64_t left_out() const { return left_out_; }    // or all that counted in them

    /// The bin that is the index-th to train on: epochs follow each other, each in its own order.
    std::uint64_t train_bin(std::uint64_t index) const;
    /// Ids that count in a bin.
    std::int64_t targets(DataSplit split, std::uint64_t bin) const;
    /// Adds a bin's texts to a batch, each as a sequence.
    void add(DataSplit split, std::uint64_t bin, Batch& batch) const;
    /// The beginning of a held-out text, up to what is to be learned of it; empty where there is none.
    std::string held_out_beginning(const Tokenizer& tokenizer) const;

  private:
    struct Piece {
        std::size_t begin, length;  // in ids; length - 1 rows
    };
    struct Split {
        std::vector<std::int32_t> ids;
        std::vector<char> counts;
        std::vector<std::vector<Piece>> bins;
        std::uint64_t scored = 0, bytes = 0;
    };
    const Split& at(DataSplit split) const { return splits_[static_cast<int>(split)]; }
    void take(Split& split, const PackedText& text, bool cut, std::vector<Piece>& pieces);
    void pack(Split& split, std::vector<Piece> pieces) const;

    Split splits_[2];
    std::uint64_t seed_, shortened_ = 0, left_out_ = 0;
    std::size_t T_;
};

}  // namespace linnet
