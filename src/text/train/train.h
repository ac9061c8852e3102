// Training a vocabulary: words are counted as text is added, then pairs of tokens are merged, most frequent
// first.
//
// Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units" (ACL 2016),
// section 3.2; byte-level as in Radford et al. 2019, section 2.2. Reading order: words (counting, spilled to
// disk where memory is short), merges, kinds (what differs between the kinds of vocabulary), train.
//
// The result depends on the text and the options alone: not on `threads`, `memory`, or how text was cut into
// calls.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/split/splitter.h"
#include "text/tokenizer.h"

namespace linnet {

/// Cuts a text into words (pre-tokens), none of which a token may span: appends the end of every word to
/// `ends`, ascending, the last one text.size(). Called from many threads at once. It must cut between an
/// ASCII letter and a space (0x20) after it, and the words before that cut must not depend on what follows:
/// long documents are shared out among threads there.
using WordSplitter = std::function<void(std::string_view text, std::vector<std::uint32_t>& ends)>;

/// A hand-written splitter (not Split::whole) as the trainer takes it.
WordSplitter word_splitter(Split split);

struct TrainOptions {
    /// "bpe": bytes, merged inside words of `splitter`, merges and ties by the rule of Hugging Face's
    /// BpeTrainer. "spm": characters with "▁" for a space and bytes for what is rare, as SentencePiece's BPE.
    /// "wordpiece": characters, "##" inside a word, words as BERT cuts them.
    std::string kind = "bpe";
    std::string text = "text";  // what messages call it
    TokenId vocab_size = 32000;
    std::uint64_t min_frequency = 2;  // a pair seen less often is not merged
    std::vector<std::string>
        special;  // control tokens; empty: the kind's own (<|endoftext|>; <unk> <s> </s>; [PAD] …)
    WordSplitter splitter;               // "bpe" only; empty: GPT-2's
    bool lowercase = false;              // "wordpiece" only: as BERT's uncased vocabularies
    double character_coverage = 0.9995;  // "spm", "wordpiece": characters kept, by frequency
    std::uint64_t memory = std::uint64_t{2}
                           << 30;  // bytes that counting and merging may hold; the rest goes to disk
    std::string scratch;           // folder for what does not fit; empty: TMPDIR, else /tmp
    int threads = 1;
    /// Called now and then with the phase ("words", "merges"), work done and in all (0: unknown). May throw
    /// to stop.
    std::function<void(std::string_view phase, std::uint64_t done, std::uint64_t total)> progress;
};

/// A vocabulary as training leaves it. Ids are positions in `tokens`.
struct TrainedVocabulary {
    enum class Piece : std::uint8_t { normal, control, unknown, byte };
    std::string kind;
    std::vector<std::string>
        tokens;  // "bpe": raw bytes; "spm": UTF-8 with ▁, bytes as <0xNN>; "wordpiece": UTF-8 with ##
    std::vector<Piece> pieces;  // as many as tokens
    std::vector<std::pair<TokenId, TokenId>>
        merges;  // by rank; the joined bytes (without the right part's ##) are a token
};

/// Text goes in by add(), in any cut that keeps documents whole (or cut where no word spans the cut);
/// finish() merges.
class VocabularyTrainer {
  public:
    explicit VocabularyTrainer(TrainOptions options);
    ~VocabularyTrainer();

    /// Counts the words of these documents (any bytes; "spm" and "wordpiece" read UTF-8, and count an invalid
    /// byte as U+FFFD). Uses options.threads threads, also inside one long document.
    /// `continues`: the first of them goes on where the last call's last one was parted, at a training_cut().
    void add(std::span<const std::string_view> documents, bool continues = false);
    void add(std::string_view document) { add(std::span(&document, 1)); }

    /// Error(Exit::input) where no word was counted or vocab_size is below what the kind needs; once only.
    TrainedVocabulary finish();

    std::uint64_t bytes() const;           // of text added
    std::uint64_t words() const;           // counted, with repeats
    std::uint64_t distinct_words() const;  // known after finish()
    std::uint64_t spilled_bytes() const;   // written to disk while counting

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The first place at or after `from` where a document may be parted for training (between an ASCII letter
/// and a space), or its size where there is none.
std::size_t training_cut(std::string_view text, std::size_t from);

}  // namespace linnet
