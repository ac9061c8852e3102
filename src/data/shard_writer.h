// Writes one split of a corpus as shards of equal length; a shard has its final name only when it is whole.
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "base/stream_file.h"
#include "data/corpus_index.h"
#include "data/layouts.h"

namespace linnet {

/// Where a writer stands: the shards that are finished, and how much of the next one is on disk.
struct SplitState {
    std::vector<CorpusShard> finished;
    CorpusShard open;  // its tokens, documents and bytes so far; no name, no hash
};

class ShardWriter {
  public:
    /// Goes on from `state`: the open shard's file is cut to its tokens, what lies behind is written again.
    /// A layout with one file per split has it whatever `shard_tokens` is. Error(Exit::diverged) where the
    /// files have less than the state says.
    ShardWriter(std::string folder, std::string split, const CorpusLayout& layout, int token_bytes,
                std::uint64_t shard_tokens, SplitState state);
    ShardWriter(const ShardWriter&) = delete;

    /// What a stretch of tokens stands for.
    struct Part {
        std::size_t token_bytes;
        std::uint64_t documents, bytes;  // documents that begin here; bytes of text
    };
    /// `tokens`: little-endian, token_bytes each, the parts' one behind the other. A part's documents
    /// and bytes are booked on the shard that takes its first token.
    void write(std::string_view tokens, std::span<const Part> parts);
    /// Begins to bring all to the disk: when the function that is returned returns, state() as it is now is
    /// true after a crash. Any thread may call it; it throws what went wrong.
    std::function<void()> sync();
    /// Takes the last `tokens` of the open shard away and returns them; forget_text() tells of their text.
    std::string take_tail(std::uint64_t tokens);
    void forget_text(std::uint64_t bytes) { state_.open.bytes -= bytes; }
    /// Finishes the open shard, if it has tokens.
    void finish();
    const SplitState& state() const { return state_; }

  private:
    std::string path(std::size_t index, std::string_view suffix) const;
    std::string header(std::uint64_t tokens) const;
    void require_state() const;
    void open();
    std::uint64_t bytes_of(const CorpusShard& shard) const;  // of its file
    void note_starts(std::span<const Part> parts);
    std::string rehash(const std::string& part);
    void close_shard();

    std::string folder_, split_;
    const CorpusLayout* layout_;
    int token_bytes_;
    std::uint64_t shard_tokens_;
    SplitState state_;
    std::unique_ptr<AppendFile> file_;
    std::unique_ptr<AppendFile> starts_;  // of the documents, for an index
    std::shared_future<void> closing_;    // of the last shard that became full
    // Of the open file, as if it were full; none where an earlier run has begun it.
    std::optional<Sha256> hash_;
};

}  // namespace linnet
