#include "data/corpus_builder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "data/corpus_progress.h"
#include "formats/gguf.h"

namespace linnet {
namespace {

constexpr std::size_t batch_bytes = std::size_t{1} << 20;
constexpr std::uint64_t split_seed = 0x73706C6974;  // "split"

struct Batch {
    std::uint64_t index = 0;
    std::string text;
    std::vector<DocumentPart> parts;
    std::uint64_t input_hash = 0;  // of this batch and all before it
    std::uint64_t bytes_read = 0;
    bool skip = false;  // an earlier run has written it

    struct Run {  // parts of one split, one behind the other
        int split;
        std::vector<ShardWriter::Part> parts;
    };
    std::string tokens;  // of all runs
    std::vector<Run> runs;
    std::exception_ptr error;  // of the reader or the encoder, after what is in the batch
    bool end = false;          // no batch follows
};

/// Batches from the reader to the encoders and on to the writer, so many at a time that memory stays bounded.
class BatchQueue {
  public:
    explicit BatchQueue(std::size_t room) : room_(room) {}

    /// The reader's side; false: the writer has given up.
    bool put(std::unique_ptr<Batch> batch) {
        std::unique_lock lock(mutex_);
        space_.wait(lock, [&] { return in_flight_ < room_ || stopped_; });
        if (stopped_) return false;
        in_flight_++;
        if (batch->skip || batch->parts.empty()) {
            done_.emplace(batch->index, std::move(batch));
            written_.notify_one();
        } else {
            waiting_.push_back(std::move(batch));
            work_.notify_one();
        }
        return true;
    }
    /// The encoders' side; null: no more.
    std::unique_ptr<Batch> take() {
        std::unique_lock lock(mutex_);
        work_.wait(lock, [&] { return !waiting_.empty() || stopped_; });
        if (stopped_) return nullptr;
        auto batch = std::move(waiting_.front());
        waiting_.pop_front();
        return batch;
    }
    void give(std::unique_ptr<Batch> batch) {
        std::lock_guard lock(mutex_);
        done_.emplace(batch->index, std::move(batch));
        written_.notify_one();
    }
    /// The writer's side: the batch of this index.
    std::unique_ptr<Batch> next(std::uint64_t index) {
        std::unique_lock lock(mutex_);
        written_.wait(lock, [&] { return done_.contains(index); });
        auto node = done_.extract(index);
        in_flight_--;
        space_.notify_one();
        return std::move(node.mapped());
    }
    void stop() {
        std::lock_guard lock(mutex_);
        stopped_ = true;
        space_.notify_all();
        work_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable space_, work_, written_;
    std::deque<std::unique_ptr<Batch>> waiting_;
    std::map<std::uint64_t, std::unique_ptr<Batch>> done_;
    std::size_t room_, in_flight_ = 0;
    bool stopped_ = false;
};

class Builder {
  public:
    Builder(const Tokenizer& tokenizer, const CorpusOptions& options)
        : tokenizer_(tokenizer),
          options_(options),
          format_(shard_format(tokenizer.size())),
          reader_(make_reader()),
          queue_(static_cast<std::size_t>(options.threads) * 2 + 2) {}
    CorpusResult run();

  private:
    DocumentReader make_reader() {
        files_ = expand_inputs(options_.inputs);
        ReadOptions read = options_.read;
        read.cut = [this](std::string_view text, std::size_t from) { return tokenizer_.cut(text, from); };
        return {files_, std::move(read)};
    }
    std::vector<std::pair<std::string, std::string>> settings() const;
    void prepare_folder();
    void remove_old() const;
    void read_all();
    void encode_all();
    void encode(Batch& batch) const;
    void write(const Batch& batch);
    void write_all();
    void checkpoint();
    void keep_what_is_good();
    CorpusResult finish();

    const Tokenizer& tokenizer_;
    const CorpusOptions& options_;
    const ShardFormat& format_;
    std::vector<std::string> files_;
    DocumentReader reader_;
    BatchQueue queue_;
    CorpusProgress progress_;
    std::unique_ptr<ShardWriter> writers_[2];
    CorpusOptions::Progress shown_;
    bool stopped_ = false;
    bool whole_ = true;  // the writers stand between two batches
};

/// All that the output depends on beside the documents' bytes (those are hashed as they are read again).
std::vector<std::pair<std::string, std::string>> Builder::settings() const {
    const ReadOptions& read = options_.read;
    char fraction[32];
    std::snprintf(fraction, sizeof fraction, "%.17g", options_.validation_fraction);
    return {{"tokenizer_sha256", tokenizer_hash(tokenizer_)},
            {"format", read.format},
            {"field", read.field},
            {"separator", read.separator},
            {"invalid", read.invalid},
            {"skip_bad", read.skip_bad ? "true" : "false"},
            {"validation_fraction", fraction},
            {"shard_tokens", std::to_string(options_.shard_tokens)},
            {"end_tokens", options_.end_tokens ? "true" : "false"}};
}

void Builder::remove_old() const {
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder)) {
        std::string name = entry.path().filename().string();
        bool shard = (name.starts_with("train_") || name.starts_with("val_")) &&
                     (name.ends_with(".bin") || name.ends_with(".part"));
        if (shard || name == "index.json" || name == "progress.json") std::filesystem::remove(entry.path());
    }
}

/// Decides between a new run and an old one's continuation.
void Builder::prepare_folder() {
    const std::string& folder = options_.folder;
    make_directories(folder);
    remove_uncommitted(folder);
    if (options_.overwrite) remove_old();
    CorpusProgress old;
    bool unfinished = read_corpus_progress(folder, old);
    if (!options_.resume && (unfinished || std::filesystem::exists(folder + "/index.json")))
        fail(Exit::usage, folder, "", "a new or empty folder",
             unfinished ? "one with an unfinished corpus" : "one with a corpus",
             unfinished ? "--resume goes on with it, --overwrite begins again" : "--overwrite replaces it");
    progress_.settings = settings();
    if (unfinished) {
        for (std::size_t i = 0; i < progress_.settings.size(); i++) {
            const std::string &key = progress_.settings[i].first, &value = progress_.settings[i].second;
            auto before = std::find_if(old.settings.begin(), old.settings.end(),
                                       [&](const auto& s) { return s.first == key; });
            std::string had = before == old.settings.end() ? "nothing" : before->second;
            if (had != value)
                fail(Exit::diverged, folder + "/progress.json", key, had, value,
                     "the run to resume had another setting; --overwrite begins again");
        }
        progress_ = std::move(old);
        for (const SplitState& split : progress_.splits) {
            auto count = [&](const CorpusShard& shard) {
                shown_.documents += shard.documents;
                shown_.bytes += shard.bytes;
                shown_.tokens += shard.tokens;
            };
            for (const CorpusShard& shard : split.finished) count(shard);
            count(split.open);
        }
    } else {
        write_corpus_progress(folder, progress_);
    }
    static constexpr const char* names[2] = {"train", "validation"};
    for (int i = 0; i < 2; i++)
        writers_[i] = std::make_unique<ShardWriter>(folder, names[i], format_, options_.shard_tokens,
                                                    progress_.splits[i]);
}

/// The hash of all input up to and with this batch. Most documents are short, and their own hash covers them.
std::uint64_t hash_of(const Batch& batch, std::uint64_t before) {
    std::uint64_t hash = before + batch.parts.size();
    for (const DocumentPart& part : batch.parts) {
        std::string_view text = std::string_view(batch.text).substr(part.begin, part.end - part.begin);
        bool covered = part.first && text.size() <= hashed_bytes;
        hash = covered ? hash_bytes({}, hash ^ part.hash) + text.size() : hash_bytes(text, hash);
    }
    return hash;
}

/// The reader's thread. Batches are cut by bytes and parts alone, so that their numbers mean the same in
/// every run.
void Builder::read_all() {
    std::uint64_t index = 0, hash = 0;
    for (bool more = true; more; index++) {
        auto batch = std::make_unique<Batch>();
        batch->index = index;
        batch->text.reserve(batch_bytes + batch_bytes / 8);
        try {
            DocumentPart part;
            while (batch->text.size() < batch_bytes && batch->parts.size() < 65536 &&
                   (more = reader_.next(batch->text, part)))
                batch->parts.push_back(part);
        } catch (...) {
            batch->error = std::current_exception();
            more = false;
        }
        batch->end = !more;
        hash = hash_of(*batch, hash);
        batch->input_hash = hash;
        batch->bytes_read = reader_.bytes_read();
        batch->skip = index < progress_.batches;
        if (!queue_.put(std::move(batch))) return;
    }
}

void Builder::encode_all() {
    while (auto batch = queue_.take()) {
        try {
            encode(*batch);
        } catch (...) {
            batch->error = std::current_exception();
            batch->end = true;
        }
        queue_.give(std::move(batch));
    }
}

void Builder::encode(Batch& batch) const {
    std::vector<TokenId> ids;
    batch.tokens.reserve(batch.text.size() / 2);
    // A document is in the validation split where its hash, as a fraction of 2^64, is below the fraction
    // asked for.
    const double limit = options_.validation_fraction * 0x1p64;
    for (const DocumentPart& part : batch.parts) {
        std::string_view text = std::string_view(batch.text).substr(part.begin, part.end - part.begin);
        ids.clear();
        if (part.first && tokenizer_.add_bos() && tokenizer_.bos()) ids.push_back(*tokenizer_.bos());
        EncodeOptions encode;
        encode.continues = !part.first;
        if (!text.empty()) tokenizer_.encode(text, ids, encode);
        if (part.last && options_.end_tokens) ids.push_back(*tokenizer_.eos());
        std::size_t begin = batch.tokens.size();
        batch.tokens.resize(begin + ids.size() * static_cast<std::size_t>(format_.token_bytes));
        format_.store(ids, batch.tokens.data() + begin);
        bool validation = static_cast<double>(hash_bytes({}, part.hash ^ split_seed)) < limit;
        const int split = validation ? 1 : 0;
        if (batch.runs.empty() || batch.runs.back().split != split) batch.runs.push_back({split, {}});
        batch.runs.back().parts.push_back(
            {batch.tokens.size() - begin, part.first ? std::uint64_t{1} : 0, text.size()});
    }
    batch.text = std::string();
}

void Builder::write(const Batch& batch) {
    std::string_view tokens = batch.tokens;
    for (const Batch::Run& run : batch.runs) {
        std::size_t bytes = 0;
        for (const ShardWriter::Part& part : run.parts) {
            bytes += part.token_bytes;
            shown_.documents += part.documents;
            shown_.bytes += part.bytes;
        }
        writers_[run.split]->write(tokens.substr(0, bytes), run.parts);
        tokens.remove_prefix(bytes);
    }
    shown_.tokens += batch.tokens.size() / static_cast<std::size_t>(format_.token_bytes);
}

void Builder::checkpoint() {
    for (int i = 0; i < 2; i++) {
        writers_[i]->sync();
        progress_.splits[i] = writers_[i]->state();
    }
    write_corpus_progress(options_.folder, progress_);
}

void Builder::write_all() {
    using Clock = std::chrono::steady_clock;
    auto last = Clock::now();
    const std::uint64_t resume_at = progress_.batches, resume_hash = progress_.input_hash;
    for (std::uint64_t index = 0;; index++) {
        std::unique_ptr<Batch> batch = queue_.next(index);
        std::size_t shards = writers_[0]->state().finished.size() + writers_[1]->state().finished.size();
        bool changed = batch->index + 1 == resume_at && batch->input_hash != resume_hash;
        if (changed || (batch->end && !batch->error && batch->index + 1 < resume_at))
            fail(Exit::diverged, options_.folder, "resume", "the text of the first run", "another",
                 "the input has changed; --overwrite begins again");
        if (batch->error) std::rethrow_exception(batch->error);
        if (!batch->skip) {
            whole_ = false;
            write(*batch);
            progress_.batches = index + 1;
            progress_.input_hash = batch->input_hash;
            whole_ = true;
        }
        shown_.bytes_read = batch->bytes_read;
        shown_.bytes_total = reader_.bytes_total();
        shown_.skipping = batch->skip;
        if (batch->end) return;
        stopped_ = options_.progress && options_.progress(shown_);
        bool closed = writers_[0]->state().finished.size() + writers_[1]->state().finished.size() != shards;
        bool due = std::chrono::duration<double>(Clock::now() - last).count() >= options_.checkpoint_seconds;
        if (!batch->skip && (closed || due || stopped_)) {
            checkpoint();
            last = Clock::now();
        }
        if (stopped_) return;
    }
}

CorpusResult Builder::finish() {
    CorpusResult result;
    CorpusIndex& index = result.index;
    index.vocab_size = tokenizer_.size();
    index.tokenizer = options_.tokenizer_name;
    index.tokenizer_sha256 = progress_.settings[0].second;
    index.validation_fraction = options_.validation_fraction;
    index.skipped = reader_.skipped();
    result.first_skipped = reader_.first_skipped();
    result.stopped = stopped_;
    if (!stopped_)
        for (auto& writer : writers_) writer->finish();
    for (auto& writer : writers_) {
        for (const CorpusShard& shard : writer->state().finished) index.shards.push_back(shard);
        if (stopped_) index.shards.push_back(writer->state().open);
    }
    for (const CorpusShard& shard : index.shards) {
        index.documents += shard.documents;
        index.tokens += shard.tokens;
        index.bytes += shard.bytes;
    }
    if (stopped_) return result;
    if (index.documents == 0) {
        remove_corpus_progress(options_.folder);
        fail_input(files_.size() == 1 ? files_[0] : std::to_string(files_.size()) + " files", "",
                   "at least one document", "none",
                   index.skipped > 0 ? "all were bad: " + result.first_skipped : "");
    }
    write_file(options_.folder + "/index.json", corpus_index_json(index));
    remove_corpus_progress(options_.folder);
    return result;
}

/// After an error: whoever mends the input or frees the disk goes on from here; a run that wrote nothing
/// leaves nothing.
void Builder::keep_what_is_good() {
    try {
        if (progress_.batches == 0)
            remove_old();
        else if (whole_)
            checkpoint();
    } catch (const std::exception&) {  // the first error is the one to tell; the last checkpoint stands
    }
}

CorpusResult Builder::run() {
    if (options_.end_tokens && !tokenizer_.eos())
        fail_input(options_.tokenizer_name, "", "a tokenizer with an end-of-text token", "none",
                   "--no-end-tokens leaves documents unmarked");
    if (options_.resume && !options_.overwrite && std::filesystem::exists(options_.folder + "/index.json")) {
        CorpusResult result;
        result.index = read_corpus_index(options_.folder);
        result.was_done = true;
        remove_corpus_progress(options_.folder);
        return result;
    }
    prepare_folder();
    std::vector<std::thread> team;
    std::exception_ptr error;
    try {
        team.emplace_back([this] { read_all(); });
        for (int i = 0; i < options_.threads; i++) team.emplace_back([this] { encode_all(); });
        write_all();
    } catch (...) {
        error = std::current_exception();
    }
    queue_.stop();
    for (std::thread& thread : team) thread.join();
    if (error) {
        keep_what_is_good();
        std::rethrow_exception(error);
    }
    return finish();
}

}  // namespace

std::string tokenizer_hash(const Tokenizer& tokenizer) {
    GgufWriter keys;
    tokenizer.write(keys);
    return sha256(keys.metadata());
}

CorpusResult build_corpus(const Tokenizer& tokenizer, const CorpusOptions& options) {
    return Builder(tokenizer, options).run();
}

}  // namespace linnet
