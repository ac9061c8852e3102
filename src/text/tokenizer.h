// What every tokenizer offers, whatever its kind: text in, token ids out, and back.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

class Gguf;
class GgufWriter;

using TokenId = std::int32_t;
/// Takes ids as they come, in stretches.
using BlockSink = std::function<void(std::span<const TokenId>)>;

/// Stretches of a text that is read with parse_special, and yet spell no special token: a person's words
/// between a chat template's.
struct PlainStretches {
    struct Range {
        std::size_t begin, end;
    };
    std::vector<Range> ranges;  // in order, apart
    /// Tokens that are matched everywhere (user-defined ones), and are special in these stretches.
    std::vector<TokenId> withheld;

    bool touch(std::size_t begin, std::size_t end) const;  // some byte of [begin, end) is in a stretch
};

struct EncodeOptions {
    bool add_special =
        false;  // begin / end tokens, as the vocabulary asks (BOS for LLaMA, [CLS] … [SEP] for BERT)
    bool parse_special =
        false;        // text that spells a control token becomes that token; otherwise it is plain text
    int threads = 1;  // for one long text; documents are better spread by the caller
    bool continues = false;                 // the text goes on where cut() parted a document
    const PlainStretches* plain = nullptr;  // of the text; must outlive the call
};

/// Immutable after loading; every member may be called from many threads at once.
class Tokenizer {
  public:
    virtual ~Tokenizer() = default;

    virtual std::string_view kind() const = 0;  // "bpe" "spm" "unigram" "wordpiece" "rwkv" "char" "byte"
    virtual TokenId size() const = 0;           // ids are [0, size)
    /// Appends the ids of `text` (any bytes) to `out`. Error(Exit::input) where the vocabulary cannot spell
    /// it (a character vocabulary without that character).
    virtual void encode(std::string_view text, std::vector<TokenId>& out,
                        const EncodeOptions& = {}) const = 0;
    /// The ids of a text of any length in order, by `options.threads` threads. Where the text may be cut for
    /// size, memory does not grow with it beyond its longest word. (This one collects them all.)
    virtual void encode_blocks(std::string_view text, const EncodeOptions& options,
                               const BlockSink& sink) const {
        std::vector<TokenId> ids;
        encode(text, ids, options);
        sink(ids);
    }
    /// The first place at or after `from` where a document may be parted, its size where there is none: the
    /// ids of the first part and those of the second (with `continues`) are the document's, whatever follows
    /// the place.
    virtual std::size_t cut(std::string_view text, std::size_t from) const {
        (void)from;
        return text.size();
    }
    /// What the pre-tokenizer makes of a text (after normalization), for people.
    virtual std::vector<std::string> words(std::string_view text) const { return {std::string(text)}; }
    /// The bytes that one token adds to a text (a control token: nothing). `first`: nothing stands before it
    /// (SentencePiece drops its leading space there).
    virtual void decode(TokenId id, bool first, std::string& out) const = 0;
    /// The token as the vocabulary spells it, for people ("Ġthe", "▁the", "<|endoftext|>").
    virtual std::string_view piece(TokenId id) const = 0;
    virtual bool is_control(TokenId id) const = 0;

    virtual std::optional<TokenId> bos() const = 0;  // put before a text where add_bos()
    virtual std::optional<TokenId> eos() const = 0;
    virtual bool add_bos() const = 0;
    /// Generation ends at this token (end of text, end of turn).
    virtual bool is_end(TokenId id) const = 0;

    /// Writes the tokenizer.ggml.* keys.
    virtual void write(GgufWriter& out) const = 0;

    std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const {
        std::vector<TokenId> ids;
        encode(text, ids, options);
        return ids;
    }
    std::string decode(std::span<const TokenId> ids) const {
        std::string text;
        for (std::size_t i = 0; i < ids.size(); i++) decode(ids[i], i == 0, text);
        return text;
    }
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// The vocabulary inside a GGUF (its tokenizer.ggml.* keys). Errors name the file and the key.
TokenizerPtr tokenizer_from_gguf(const Gguf& file);

/// The bytes of a GGUF file of the vocabulary alone, without tensors.
std::string tokenizer_to_gguf(const Tokenizer& tokenizer);

/// Any tokenizer file, told by its content: GGUF, tokenizer.json, .tiktoken, SentencePiece .model.
TokenizerPtr load_tokenizer(const std::string& path);
/// The file of that kind in `folder`, for what lies there without a vocabulary of its own: tokenizer.gguf,
/// tokenizer.json or tokenizer.model; empty where there is none.
std::string tokenizer_in(const std::string& folder);

}  // namespace linnet
