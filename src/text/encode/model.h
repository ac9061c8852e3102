// What stands in the middle of every tokenizer: it turns one word (a pre-token) into ids.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "text/split/splitter.h"
#include "text/tokenizer.h"

namespace linnet {

/// Ids on their way out: a small buffer keeps the hot loop free of a vector's bookkeeping. What no flush()
/// has followed is lost.
class IdSink {
  public:
    explicit IdSink(const BlockSink& out) : out_(out) {}
    IdSink(const IdSink&) = delete;
    void push(TokenId id) {
        if (count_ == capacity) flush();
        buffer_[count_++] = id;
    }
    void append(std::span<const TokenId> ids) {
        if (ids.size() > capacity - count_) flush();
        if (ids.size() > capacity) return out_(ids);
        std::copy(ids.begin(), ids.end(), buffer_ + count_);
        count_ += ids.size();
    }
    /// The same for up to N ids in an array of N: all are copied, as that needs no loop.
    template <std::size_t N>
    void append(const TokenId (&ids)[N], std::size_t count) {
        if (count_ > capacity - N) flush();
        std::memcpy(buffer_ + count_, ids, sizeof ids);
        count_ += count;
    }
    void flush() {
        if (count_ > 0) out_({buffer_, count_});
        count_ = 0;
    }

  private:
    static constexpr std::size_t capacity = 2048;
    const BlockSink& out_;
    std::size_t count_ = 0;
    TokenId buffer_[capacity];
};

/// Working memory of one thread for one model: caches and scratch.
class ModelScratch {
  public:
    virtual ~ModelScratch() = default;
};

/// Immutable; any number of threads, each with a scratch of its own (made by the same model).
class WordModel {
  public:
    virtual ~WordModel() = default;
    virtual std::unique_ptr<ModelScratch> scratch() const { return std::make_unique<ModelScratch>(); }
    /// Appends the ids of one word. Error(Exit::input) where the vocabulary cannot spell it.
    virtual void encode(std::string_view word, IdSink& out, ModelScratch& scratch) const = 0;
    /// Whether no token reaches across a border between a character and a U+2581 behind it.
    virtual bool cuts_before_marks() const { return false; }
    /// The same for all words of a text under a hand-written splitter.
    virtual void encode_words(std::string_view text, Split split, IdSink& out, ModelScratch& scratch) const;
};

}  // namespace linnet
