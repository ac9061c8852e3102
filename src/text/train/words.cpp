#include "text/train/words.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/keyed_hash.h"
#include "base/system.h"

namespace linnet {

WordTable::WordTable() : slots_(1024) {}

void WordTable::add(std::string_view word, std::uint64_t count) {
    std::uint64_t hash = keyed_hash(word);
    auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t mask = slots_.size() - 1, slot = hash & mask;
    for (;; slot = (slot + 1) & mask) {
        std::uint64_t s = slots_[slot];
        if (s == 0) break;
        if (s >> 32 != tag) continue;
        Entry& e = entry((s & 0xFFFFFFFFu) - 1);
        if (e.length == word.size() && std::memcmp(text(e).data(), word.data(), word.size()) == 0) {
            e.count += count;
            return;
        }
    }
    insert(word, count, tag, slot);
}

void WordTable::insert(std::string_view word, std::uint64_t count, std::uint32_t tag, std::size_t slot) {
    if (chunk_used_ + word.size() > chunk_bytes) {
        chunks_.emplace_back(new char[chunk_bytes]);
        chunk_used_ = 0;
    }
    if (entries_ % block_entries == 0) blocks_.emplace_back(new Entry[block_entries]);
    std::size_t offset = (chunks_.size() - 1) * chunk_bytes + chunk_used_;
    std::memcpy(chunks_.back().get() + chunk_used_, word.data(), word.size());
    chunk_used_ += word.size();
    entry(entries_) = {count, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(word.size())};
    entries_++;
    slots_[slot] = std::uint64_t{tag} << 32 | entries_;
    if (entries_ * 4 > slots_.size() * 3) grow();
}

void WordTable::grow() {
    std::vector<std::uint64_t> larger(slots_.size() * 2);
    std::size_t mask = larger.size() - 1;
    for (std::uint64_t s : slots_) {
        if (s == 0) continue;
        std::size_t slot = keyed_hash(text(entry((s & 0xFFFFFFFFu) - 1))) & mask;
        while (larger[slot] != 0) slot = (slot + 1) & mask;
        larger[slot] = s;
    }
    slots_.swap(larger);
}

std::size_t WordTable::longest_probe() const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t longest = 0;
    for (std::size_t i = 0; i <= mask; i++)
        if (slots_[i] != 0)
            longest =
                std::max(longest, ((i - keyed_hash(text(entry((slots_[i] & 0xFFFFFFFFu) - 1)))) & mask) + 1);
    return longest;
}

std::size_t WordTable::memory() const {
    return slots_.size() * sizeof(std::uint64_t) + blocks_.size() * block_entries * sizeof(Entry) +
           chunks_.size() * chunk_bytes;
}

void WordTable::clear() {
    slots_ = std::vector<std::uint64_t>(1024);
    blocks_.clear();
    chunks_.clear();
    entries_ = 0;
    chunk_used_ = chunk_bytes;
}

void WordTable::each(const std::function<void(std::string_view, std::uint64_t)>& visit) const {
    for (std::size_t i = 0; i < entries_; i++) visit(text(entry(i)), entry(i).count);
}

void WordTable::each_sorted(const std::function<void(std::string_view, std::uint64_t)>& visit) {
    slots_ = std::vector<std::uint64_t>();  // its memory pays for the order
    std::vector<std::uint32_t> order(entries_);
    for (std::size_t i = 0; i < entries_; i++) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return text(entry(a)) < text(entry(b)); });
    for (std::uint32_t i : order) visit(text(entry(i)), entry(i).count);
}

// A run is a sequence of records: length (varint), bytes, count (varint).

class WordRuns::Writer {
  public:
    Writer(WordRuns& runs) : runs_(runs), begin_(runs.end_) { buffer_.reserve(limit + longest_word + 32); }
    void add(std::string_view word, std::uint64_t count) {
        varint(word.size());
        buffer_.append(word);
        varint(count);
        if (buffer_.size() >= limit) flush();
    }
    Run finish() {
        flush();
        return {begin_, runs_.end_};
    }

  private:
    static constexpr std::size_t limit = std::size_t{1} << 18;
    void varint(std::uint64_t v) {
        for (; v >= 0x80; v >>= 7) buffer_ += static_cast<char>(v | 0x80);
        buffer_ += static_cast<char>(v);
    }
    void flush() {
        for (std::size_t done = 0; done < buffer_.size();) {
            ssize_t n = ::pwrite(runs_.fd_, buffer_.data() + done, buffer_.size() - done,
                                 static_cast<off_t>(runs_.end_));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0)
                fail_errno(runs_.folder_, "writing word counts (they did not fit --mem)",
                           n < 0 ? errno : EIO);
            done += static_cast<std::size_t>(n);
            runs_.end_ += static_cast<std::uint64_t>(n);
            runs_.written_ += static_cast<std::uint64_t>(n);
        }
        buffer_.clear();
    }
    WordRuns& runs_;
    std::uint64_t begin_;
    std::string buffer_;
};

class WordRuns::Reader {
  public:
    Reader(const WordRuns& runs, Run run) : runs_(&runs), at_(run.begin), end_(run.end) { next(); }
    bool done() const { return done_; }
    std::string_view word() const { return word_; }
    std::uint64_t count() const { return count_; }
    void next() {
        if (used_ == buffer_.size() && at_ == end_) {
            done_ = true;
            return;
        }
        std::size_t length = varint();
        word_.clear();
        while (word_.size() < length) {
            if (used_ == buffer_.size()) fill();
            std::size_t n = std::min(length - word_.size(), buffer_.size() - used_);
            word_.append(buffer_, used_, n);
            used_ += n;
        }
        count_ = varint();
    }

  private:
    std::uint64_t varint() {
        std::uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (used_ == buffer_.size()) fill();
            auto byte = static_cast<unsigned char>(buffer_[used_++]);
            v |= std::uint64_t{byte & 0x7Fu} << shift;
            if (byte < 0x80) break;
        }
        return v;
    }
    void fill() {
        buffer_.resize(std::min<std::uint64_t>(end_ - at_, std::size_t{1} << 16));
        ssize_t n = 0;
        do n = ::pread(runs_->fd_, buffer_.data(), buffer_.size(), static_cast<off_t>(at_));
        while (n < 0 && errno == EINTR);
        if (n <= 0) fail_errno(runs_->folder_, "reading word counts back", n < 0 ? errno : EIO);
        buffer_.resize(static_cast<std::size_t>(n));
        at_ += static_cast<std::uint64_t>(n);
        used_ = 0;
    }
    const WordRuns* runs_;
    std::uint64_t at_, end_, count_ = 0;
    std::string buffer_, word_;
    std::size_t used_ = 0;
    bool done_ = false;
};

WordRuns::~WordRuns() {
    if (fd_ >= 0) ::close(fd_);
}

void WordRuns::open() {
    if (fd_ >= 0) return;
    std::string path;
    fd_ = uninterrupted([&] {
        path = folder_ + "/linnet-words-XXXXXX";
        return ::mkostemp(path.data(), O_CLOEXEC);
    });
    if (fd_ < 0) fail_errno(folder_, "making a file for word counts", errno);
    ::unlink(path.c_str());  // nameless: nothing is left behind, whatever ends the program
}

void WordRuns::spill(WordTable& table) {
    std::lock_guard lock(mutex_);
    open();
    Writer writer(*this);
    table.each_sorted([&](std::string_view word, std::uint64_t count) { writer.add(word, count); });
    table.clear();
    runs_.push_back(writer.finish());
    if (runs_.size() >= 64) fold();  // bounds the readers' buffers: 64 × 64 KiB
}

/// Joins all runs into one. The file keeps the old ones' bytes until they are dropped from its front.
void WordRuns::fold() {
    Writer writer(*this);
    std::uint64_t old_end = end_;
    merge(0, runs_.size(), [&](std::string_view word, std::uint64_t count) { writer.add(word, count); });
    runs_.assign(1, writer.finish());
#ifdef FALLOC_FL_PUNCH_HOLE
    (void)!::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(old_end));
#else
    (void)old_end;
#endif
}

void WordRuns::merge(std::size_t first, std::size_t last,
                     const std::function<void(std::string_view, std::uint64_t)>& visit) {
    std::vector<Reader> readers;
    for (std::size_t i = first; i < last; i++) readers.emplace_back(*this, runs_[i]);
    auto later = [&](std::size_t a, std::size_t b) { return readers[a].word() > readers[b].word(); };
    std::vector<std::size_t> heap;
    for (std::size_t i = 0; i < readers.size(); i++)
        if (!readers[i].done()) heap.push_back(i);
    std::make_heap(heap.begin(), heap.end(), later);
    std::string word;
    std::uint64_t count = 0;
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), later);
        Reader& reader = readers[heap.back()];
        if (reader.word() != word) {
            if (count > 0) visit(word, count);
            word = reader.word();
            count = 0;
        }
        count += reader.count();
        reader.next();
        if (reader.done())
            heap.pop_back();
        else
            std::push_heap(heap.begin(), heap.end(), later);
    }
    if (count > 0) visit(word, count);
}

void WordRuns::each(const std::function<void(std::string_view, std::uint64_t)>& visit) {
    merge(0, runs_.size(), visit);
}

constexpr std::uint64_t most_in_table = std::uint64_t{3} << 30;  // bytes: offsets are 32 bits

WordCounter::WordCounter(int threads, std::uint64_t memory, std::string scratch)
    : tables_(static_cast<std::size_t>(threads)),
      // Half of the budget is for tables: growing one holds old and new slots, and sorting an order.
      share_(std::clamp<std::uint64_t>(memory / 4 / static_cast<std::uint64_t>(threads),
                                       std::uint64_t{3} << 20, most_in_table)),
      runs_(std::move(scratch)) {}

void WordCounter::settle(int thread) {
    if (table(thread).memory() > share_) runs_.spill(table(thread));
}

void WordCounter::finish() {
    std::uint64_t all = 0;
    for (const WordTable& table : tables_) all += table.memory();
    if (!runs_.empty() || all > most_in_table) {
        for (WordTable& table : tables_)
            if (table.size() > 0) runs_.spill(table);
        tables_.clear();
        return;
    }
    while (tables_.size() > 1) {
        tables_.back().each([&](std::string_view word, std::uint64_t count) { tables_[0].add(word, count); });
        tables_.pop_back();
    }
}

void WordCounter::each(const std::function<void(std::string_view, std::uint64_t)>& visit) {
    if (!tables_.empty())
        tables_[0].each(visit);
    else
        runs_.each(visit);
}

}  // namespace linnet
