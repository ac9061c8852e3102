// A tokenizer put together from parts: added tokens, normalizer, pre-tokenizer, model, post-processing,
// decoder. Every kind and every file format ends up here; the loaders only fill in `Parts`.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "text/encode/added_tokens.h"
#include "text/encode/model.h"
#include "text/encode/vocabulary.h"
#include "text/split/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/unicode/normalizer.h"

namespace linnet {

/// Tokens with a role; the names are those of the GGUF keys (tokenizer.ggml.NAME_token_id).
struct SpecialIds {
    std::optional<TokenId> bos, eos, unknown, separator, padding, cls, mask, eot, eom;
};

/// How a token's spelling becomes text.
struct Decoder {
    enum class Kind {
        bytes,   // byte_alphabet
        marks,   // a mark (U+2581) is a space, <0x..> a byte; the first space of a text goes
        pieces,  // WordPiece: continuation pieces join, others follow a space
        suffix,  // an end-of-word suffix is a space
        plain,   // as spelled
    };
    Kind kind = Kind::bytes;
    bool strip_first = false;  // of the first token, one leading space
    bool cleanup = false;      // pieces: no space before . ? ! , and English contractions
    std::string marker;        // pieces: "##" (or "" with word_mark); suffix: "</w>"; marks: U+2581
    bool word_mark = false;    // pieces: words begin with U+2581 and continuations are bare (GGUF's way)
};

struct Parts {
    std::string kind;  // what Tokenizer::kind() answers
    std::unique_ptr<Vocabulary> vocabulary = std::make_unique<Vocabulary>();
    std::unique_ptr<WordModel> model;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::vector<AddedToken> added;
    std::vector<TokenId> prefix, suffix;  // around a text where add_special is asked for
    Decoder decoder;
    SpecialIds special;
    std::vector<TokenId> ends;  // generation stops at these, beside eos and eot
    std::string ggml_pre;       // tokenizer.ggml.pre, where a name fits
    bool scores = false;        // the vocabulary's scores mean something
};

/// Finds the mask token ("[MASK]", "<mask>") of a vocabulary whose words begin with the space before them,
/// and has it take that space along, as RoBERTa's does: "the [MASK]" is then what "the cat" is with its
/// second word masked.
void settle_mask(Parts& parts);

class Pipeline final : public Tokenizer {
  public:
    explicit Pipeline(Parts parts);
    ~Pipeline() override;

    std::string_view kind() const override { return parts_.kind; }
    TokenId size() const override { return parts_.vocabulary->size(); }
    using Tokenizer::decode;
    using Tokenizer::encode;
    void encode(std::string_view text, std::vector<TokenId>& out,
                const EncodeOptions& options) const override;
    void encode_blocks(std::string_view text, const EncodeOptions& options,
                       const BlockSink& sink) const override;
    std::size_t cut(std::string_view text, std::size_t from) const override;
    std::vector<std::string> words(std::string_view text) const override;
    void decode(TokenId id, bool first, std::string& out) const override;
    std::string_view piece(TokenId id) const override;
    bool is_control(TokenId id) const override;
    std::optional<TokenId> bos() const override { return parts_.special.bos; }
    std::optional<TokenId> eos() const override { return parts_.special.eos; }
    bool add_bos() const override;
    bool is_end(TokenId id) const override;
    void write(GgufWriter& out) const override;

    const Parts& parts() const { return parts_; }

  private:
    struct Scratch;
    class Lease;
    class Blocks;
    /// Of a stretch of plain text: it begins the document; it begins and ends what is normalized as one text.
    struct Place {
        bool first, opens, closes;
    };
    bool may_cut() const;
    void encode_plain(std::string_view text, Place place, const EncodeOptions& options, IdSink& out,
                      Scratch& scratch) const;
    void build_decoded() const;

    Parts parts_;
    AddedTokens added_;
    /// Some added tokens are matched behind the normalizer. Where there is none, they are matched in the text
    /// that the other ones leave (`second_pass_`).
    bool late_added_ = false, second_pass_ = false;
    std::size_t longest_added_ = 0;  // bytes
    std::optional<Split>
        direct_;  // the whole pre-tokenizer is one hand-written splitter and nothing normalizes
    mutable std::mutex pool_mutex_;
    mutable std::vector<std::unique_ptr<Scratch>> pool_;
    mutable std::size_t made_ = 0;  // that are in the pool or in use
    mutable std::once_flag decoded_once_;
    mutable std::string decoded_;
    mutable std::vector<std::uint32_t> decoded_begin_;
};

}  // namespace linnet
