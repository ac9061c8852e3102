// Byte pair encoding, byte-level (GPT-2 and the like) or over characters (SentencePiece's, with byte
// fallback).
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/encode/merges.h"
#include "text/encode/model.h"
#include "text/encode/vocabulary.h"

namespace linnet {

struct BpeOptions {
    bool byte_level = true;      // symbols are bytes (spelled in byte_alphabet), else characters
    bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
    bool byte_fallback = false;  // characters: an unknown one becomes its bytes' tokens <0x00> … <0xFF>
    bool fuse_unknown = false;   // characters: neighbouring unknown ones become one unknown token
    TokenId unknown = -1;
    std::string continuing_prefix,
        end_suffix;  // of symbols: "##" before all but a word's first, "</w>" after its last
};

/// Merges as a file lists them, by spelling and in order of rank, resolved against the vocabulary. The
/// spellings must last until take(): they are looked up a few at a time.
class MergeReader {
  public:
    /// `fail(index, expected)` must throw. `continuing`: the prefix of the right part that the joined token
    /// lacks.
    using Fail = std::function<void(std::size_t index, const char* expected)>;
    MergeReader(const Vocabulary& vocabulary, std::size_t expected, std::string_view continuing, Fail fail)
        : vocabulary_(vocabulary), continuing_(continuing), fail_(std::move(fail)) {
        table_.reserve(expected);
    }
    void add(std::string_view left, std::string_view right);
    MergeTable take();

  private:
    void resolve();
    void add(std::string_view left, std::string_view right, TokenId left_id, TokenId right_id);
    const Vocabulary& vocabulary_;
    std::string_view waiting_[Vocabulary::most_at_once];  // left, right, left, …
    std::size_t waiting_count_ = 0;
    std::string continuing_, joined_;
    Fail fail_;
    MergeTable table_;
    std::uint32_t next_ = 0;  // the index and rank of the next merge
    TokenId last_ = -1;       // what the last merge made
};

/// Where a word may be cut because no token has these bytes side by side: a border is safe when no token
/// could cover it, judged by the token's first two, last two and any three neighbouring bytes. Exact in the
/// direction that matters: a safe border is never covered, so the merges on its two sides do not touch.
class SafeBorders {
  public:
    SafeBorders();
    void add_token(std::string_view bytes);
    /// Whether w may be cut before w[i], 0 < i < w.size().
    bool safe(std::string_view w, std::size_t i) const {
        const std::uint32_t b = byte(w[i - 1]), c = byte(w[i]), pair = b << 8 | c;
        const bool left = start_[pair] || (i >= 2 && triple(byte(w[i - 2]), b, c));
        if (!left) return true;
        return !(end_[pair] || (i + 1 < w.size() && triple(b, c, byte(w[i + 1]))));
    }

  private:
    static std::uint32_t byte(char c) { return static_cast<std::uint8_t>(c); }
    static std::size_t slot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        return (a << 16 | b << 8 | c) * 0x9E3779B1u >> 13;  // 2^19 bits
    }
    bool triple(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
        std::size_t s = slot(a, b, c);
        return triples_[s >> 6] >> (s & 63) & 1;
    }
    std::vector<std::uint8_t> start_, end_;
    std::vector<std::uint64_t> triples_;
};

class BpeModel final : public WordModel {
  public:
    /// Takes the merges as they are; `vocabulary` must outlive the model.
    BpeModel(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options,
             std::vector<char32_t> extra_characters = {});

    std::unique_ptr<ModelScratch> scratch() const override;
    void encode(std::string_view word, IdSink& out, ModelScratch& scratch) const override;
    void encode_words(std::string_view text, Split split, IdSink& out, ModelScratch& scratch) const override;
    bool cuts_before_marks() const override { return cuts_before_marks_; }

    const MergeTable& merges() const { return merges_; }
    const BpeOptions& options() const { return options_; }

  private:
    struct Scratch;
    template <class Splitter>
    void run(std::string_view text, IdSink& out, Scratch& scratch) const;
    void encode_word(const char* word, std::size_t size, const char* limit, IdSink& out,
                     Scratch& scratch) const;
    template <class F>
    void each_piece(const char* word, std::size_t size, F&& f) const;
    void encode_piece(const char* piece, std::size_t size, const char* limit, std::vector<TokenId>& ids,
                      Scratch& scratch) const;
    void merge_piece(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const;
    void merge_characters(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const;
    void finish(std::vector<TokenId>& out, Scratch& scratch) const;
    void put_unknown(std::string_view character, std::vector<TokenId>& out) const;
    TokenId symbol_of(char32_t code) const;
    TokenId affixed(std::string_view character, bool first, bool last) const;

    const Vocabulary& vocabulary_;
    MergeTable merges_;
    BpeOptions options_;
    std::array<TokenId, 256> byte_symbol_;  // byte-level: the byte's token; else its <0x..> token; -1: none
    PackedPairs<11, 21> character_symbol_;  // (0, code) -> symbol; a symbol >= size() is no token by itself
    std::vector<char32_t> extra_;           // the characters of symbols >= size()
    SafeBorders borders_;
    bool has_affixes_ = false, may_cut_ = true, cuts_before_marks_ = true;
};

/// The merges that a vocabulary ordered by rank or score implies (.tiktoken, SentencePiece): any two symbols
/// whose joined spelling is a token merge into it, at that token's rank (`rank[id]`; no_merge: the token
/// never arises). A character that is part of a token without being one itself is a symbol from
/// vocabulary.size() upwards.
struct ImpliedMerges {
    MergeTable merges;
    std::vector<char32_t> extra;  // the character of symbol vocabulary.size() + i
};
ImpliedMerges implied_merges(const Vocabulary& vocabulary, const std::vector<std::uint32_t>& rank);

/// The same for a byte-level vocabulary whose rank is the id (.tiktoken), one merge per token: each, given as
/// bytes (none: no such rank; every single byte is there), is encoded by the merges of those before it. If
/// two symbols are left, that pair is the only one from which the token can ever arise: when its rank has its
/// turn, all lower ranks are exhausted, and inside the token's bytes they have done exactly what they do to
/// those bytes alone. (Every split of every token, as above, makes five times as many merges and takes 0.4 s
/// for 200 000 tokens.)
MergeTable ranked_merges(std::span<const std::string_view> ranks);

}  // namespace linnet
