// Distinct words and how often each occurs: one hash table per thread, sorted runs on disk where they outgrow
// memory.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// Longer words are counted in parts of this many bytes, so that a text that is one run of letters stays
/// linear.
inline constexpr std::size_t longest_word = 4096;

/// An open-addressing table from word to count. Text lies in chunks that never move.
class WordTable {
  public:
    WordTable();
    /// 1 <= word.size() <= longest_word.
    void add(std::string_view word, std::uint64_t count);
    std::size_t size() const { return entries_; }
    std::size_t memory() const;         // bytes held
    void clear();                       // gives the memory back
    std::size_t longest_probe() const;  // the most slots that add() looks at for a word that is there
    /// Every word, in the order of first sight.
    void each(const std::function<void(std::string_view, std::uint64_t)>& visit) const;
    /// Every word in the order of its bytes; the table may only be cleared afterwards.
    void each_sorted(const std::function<void(std::string_view, std::uint64_t)>& visit);

    std::vector<std::uint32_t> ends;  // for who adds a text's words: scratch that stays warm

  private:
    struct Entry {
        std::uint64_t count;
        std::uint32_t chunk_offset;  // chunk * chunk_bytes + offset, in units of one byte, below 4 GiB
        std::uint32_t length;
    };
    static constexpr std::size_t chunk_bytes = std::size_t{1} << 20, block_entries = std::size_t{1} << 15;
    Entry& entry(std::size_t i) { return blocks_[i / block_entries][i % block_entries]; }
    const Entry& entry(std::size_t i) const { return blocks_[i / block_entries][i % block_entries]; }
    std::string_view text(const Entry& e) const {
        return {chunks_[e.chunk_offset / chunk_bytes].get() + e.chunk_offset % chunk_bytes, e.length};
    }
    void insert(std::string_view word, std::uint64_t count, std::uint32_t tag, std::size_t slot);
    void grow();

    std::vector<std::uint64_t> slots_;  // tag in the high half, entry + 1 in the low half; 0 is free
    std::vector<std::unique_ptr<Entry[]>> blocks_;
    std::vector<std::unique_ptr<char[]>> chunks_;
    std::size_t entries_ = 0, chunk_used_ = chunk_bytes;
};

/// Runs of (word, count), each sorted by bytes, in one nameless file of `folder`.
class WordRuns {
  public:
    explicit WordRuns(std::string folder) : folder_(std::move(folder)) {}
    ~WordRuns();
    WordRuns(const WordRuns&) = delete;

    /// Writes the table as one run and clears it. Safe to call from many threads.
    void spill(WordTable& table);
    bool empty() const { return runs_.empty(); }
    std::uint64_t bytes() const { return written_; }
    /// Every distinct word with its count over all runs, in the order of bytes; may be called again.
    void each(const std::function<void(std::string_view, std::uint64_t)>& visit);

  private:
    struct Run {
        std::uint64_t begin, end;
    };
    class Reader;
    class Writer;
    void open();
    void merge(std::size_t first, std::size_t last,
               const std::function<void(std::string_view, std::uint64_t)>&);
    void fold();

    std::string folder_;
    int fd_ = -1;
    std::uint64_t end_ = 0, written_ = 0;
    std::vector<Run> runs_;
    std::mutex mutex_;
};

/// Counts words from many threads within a budget.
class WordCounter {
  public:
    WordCounter(int threads, std::uint64_t memory, std::string scratch);
    /// The table of one thread; call settle(thread) now and then (it spills what has grown too large).
    WordTable& table(int thread) { return tables_[static_cast<std::size_t>(thread)]; }
    void settle(int thread);
    /// After the last word: joins the tables. Then each() may be called as often as needed.
    void finish();
    void each(const std::function<void(std::string_view, std::uint64_t)>& visit);
    void clear() { tables_.clear(); }
    std::uint64_t spilled_bytes() const { return runs_.bytes(); }

  private:
    std::vector<WordTable> tables_;
    std::uint64_t share_;  // bytes that a table may hold
    WordRuns runs_;
};

}  // namespace linnet
