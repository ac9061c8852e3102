#include "text/train/train.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/error.h"
#include "base/team.h"
#include "text/train/kinds.h"
#include "text/train/merges.h"
#include "text/train/words.h"

namespace linnet {

WordSplitter word_splitter(Split split) {
    return [split](std::string_view text, std::vector<std::uint32_t>& ends) {
        const ClassTable& table = ClassTable::get();
        const char *p = text.data(), *end = p + text.size();
        splitting::with_splitter(split, [&]<class S>() {
            while (p < end) {
                p = S::next(p, end, table);
                ends.push_back(static_cast<std::uint32_t>(p - text.data()));
            }
        });
    };
}
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18, longest_piece = std::size_t{1} << 30;

struct Part {
    std::string_view text;
    bool first;  // begins a document
};

bool is_ascii_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// A text without any place to cut is cut all the same: ends are 32 bits wide.
std::size_t part_end(std::string_view text) {
    if (text.size() <= 2 * piece_bytes) return text.size();
    std::size_t end = training_cut(text, piece_bytes);
    if (end <= longest_piece) return end;
    end = longest_piece;
    while (end > 1 && is_tail(text[end])) end--;
    return end;
}

std::vector<Part> cut(std::span<const std::string_view> documents, bool continues) {
    std::vector<Part> parts;
    for (std::string_view rest : documents) {
        bool first = !continues;
        continues = false;
        while (!rest.empty()) {
            std::size_t n = part_end(rest);
            parts.push_back({rest.substr(0, n), first});
            rest.remove_prefix(n);
            first = false;
        }
    }
    return parts;
}

std::string scratch_folder(const std::string& asked) {
    if (!asked.empty()) return asked;
    const char* folder = std::getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

}  // namespace

struct VocabularyTrainer::State {
    TrainOptions options;
    std::unique_ptr<TrainKind> kind;
    WordCounter counter;
    std::uint64_t bytes = 0, words = 0, distinct = 0;

    explicit State(TrainOptions asked)
        : options(std::move(asked)),
          kind(make_train_kind(options)),
          counter(std::max(options.threads, 1), options.memory, scratch_folder(options.scratch)) {}

    void progress(std::string_view phase, std::uint64_t done, std::uint64_t total) const {
        if (options.progress) options.progress(phase, done, total);
    }
    void fill(PairMerger& merger);
};

VocabularyTrainer::VocabularyTrainer(TrainOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
VocabularyTrainer::~VocabularyTrainer() = default;

std::uint64_t VocabularyTrainer::bytes() const {
    return state_->bytes;
}
std::uint64_t VocabularyTrainer::words() const {
    return state_->words;
}
std::uint64_t VocabularyTrainer::distinct_words() const {
    return state_->distinct;
}
std::uint64_t VocabularyTrainer::spilled_bytes() const {
    return state_->counter.spilled_bytes();
}

void VocabularyTrainer::add(std::span<const std::string_view> documents, bool continues) {
    State& s = *state_;
    std::vector<Part> parts = cut(documents, continues);
    std::atomic<std::size_t> next{0};
    int threads =
        static_cast<int>(std::min<std::size_t>(parts.size(), static_cast<std::size_t>(s.options.threads)));
    run_team(std::max(threads, 1), [&](Worker worker) {
        for (std::size_t i; (i = next.fetch_add(1)) < parts.size();) {
            s.kind->count(parts[i].text, parts[i].first, s.counter.table(worker.index));
            s.counter.settle(worker.index);
        }
    });
    for (std::string_view document : documents) s.bytes += document.size();
    s.progress("words", s.bytes, 0);
}

/// Counts are gathered, then spelled into the merger.
void VocabularyTrainer::State::fill(PairMerger& merger) {
    std::vector<std::uint32_t> scratch;
    std::size_t strings = 0, symbols = 0;
    counter.each([&](std::string_view word, std::uint64_t) {
        kind->spell(word, scratch, [&](std::span<const std::uint32_t> string) {
            if (string.size() < 2) return;
            strings++;
            symbols += string.size();
        });
    });
    merger.reserve(strings, symbols);
    counter.each([&](std::string_view word, std::uint64_t count) {
        kind->spell(word, scratch, [&](std::span<const std::uint32_t> string) { merger.add(string, count); });
    });
    counter.clear();
#ifdef __GLIBC__
    malloc_trim(0);  // the tables lay in the threads' arenas, where the merger cannot use their memory
#endif
}

TrainedVocabulary VocabularyTrainer::finish() {
    State& s = *state_;
    s.counter.finish();
    s.counter.each([&](std::string_view word, std::uint64_t count) {
        s.kind->survey(word, count);
        s.words += count;
        s.distinct++;
    });
    if (s.distinct == 0) fail_input(s.options.text, "", "some text", "none");
    std::vector<std::string> alphabet = s.kind->alphabet();
    std::size_t least = alphabet.size() + s.kind->reserved();
    if (s.options.vocab_size < 0 || static_cast<std::size_t>(s.options.vocab_size) < least)
        fail_input(s.options.text, "vocabulary size",
                   "at least " + std::to_string(least) + " (" + std::to_string(alphabet.size()) +
                       " characters or bytes, " + std::to_string(s.kind->reserved()) + " others)",
                   std::to_string(s.options.vocab_size));
    MergeLimits limits = s.kind->limits();
    limits.symbols = static_cast<std::size_t>(s.options.vocab_size) - s.kind->reserved();
    limits.min_frequency = std::max<std::uint64_t>(s.options.min_frequency, 1);
    limits.memory = s.options.memory;
    std::size_t wanted = limits.symbols - alphabet.size();
    PairMerger merger(std::move(alphabet), limits);
    s.fill(merger);
    s.progress("merges", 0, wanted);
    merger.run([&](std::size_t done) { s.progress("merges", done, wanted); });
    s.progress("merges", merger.merges().size(), wanted);
    return s.kind->assemble(merger);
}

std::size_t training_cut(std::string_view text, std::size_t from) {
    for (std::size_t at = std::max<std::size_t>(from, 1); at < text.size(); at++) {
        // memchr finds spaces faster than a loop, and in text most are behind letters.
        at = std::min(text.find(' ', at), text.size());
        if (at < text.size() && is_ascii_letter(text[at - 1])) return at;
    }
    return text.size();
}

}  // namespace linnet
