#include "data/corpus_builder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>

#include "base/aside.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/ordered.h"
#include "base/sha256.h"
#include "base/signals.h"
#include "base/team.h"
#include "data/corpus_folder.h"
#include "data/corpus_progress.h"
#include "data/document_marks.h"
#include "data/documents.h"
#include "data/layouts.h"
#include "text/naming.h"

namespace linnet {
namespace {

constexpr std::size_t batch_bytes = std::size_t{1} << 18;

struct Batch {
    std::string text;
    std::vector<DocumentPart> parts;
    std::uint64_t index = 0;
    std::uint64_t input_hash = 0;  // of this batch and all before it
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_before = 0;  // of the document that its first part goes on with
    bool skip = false;               // an earlier run has written it
    bool end = false;                // no batch follows

    struct Run {  // parts of one split, one behind the other
        int split;
        std::vector<ShardWriter::Part> parts;
    };
    // Of all runs, the first token_bytes of it; it is not made shorter, so as to fill it with zeros but once.
    std::string tokens;
    std::size_t token_bytes = 0;
    std::vector<Run> runs;
    char* add_tokens(std::size_t bytes) {
        if (tokens.size() < token_bytes + bytes)
            tokens.resize(std::max(2 * tokens.size(), token_bytes + bytes));
        token_bytes += bytes;
        return tokens.data() + token_bytes - bytes;
    }

    void clear() {
        if (text.capacity() > 8 * batch_bytes) *this = Batch();
        text.clear();
        parts.clear();
        token_bytes = 0;
        runs.clear();
    }
};

class Builder {
  public:
    Builder(const Tokenizer& tokenizer, const CorpusOptions& options)
        : tokenizer_(tokenizer),
          options_(options),
          layout_(*find_layout(options.layout)),
          token_bytes_(layout_.token_bytes(tokenizer.size())),
          tokenizer_file_(tokenizer_to_gguf(tokenizer)),
          reader_(make_reader()) {}
    CorpusResult run();

  private:
    DocumentReader make_reader() {
        ReadOptions read = options_.read;
        read.except = options_.folder;
        files_ = expand_inputs(options_.inputs, read.except);
        read.cut = [this](std::string_view text, std::size_t from) { return tokenizer_.cut(text, from); };
        return {files_, std::move(read)};
    }
    std::vector<std::pair<std::string, std::string>> settings() const;
    void prepare_folder();
    void check_counts() const;
    bool read(Batch& batch);
    std::string place(std::uint64_t document) const;
    void encode(Batch& batch) const;
    bool write(const Batch& batch);
    void append(const Batch& batch);
    void checkpoint();
    void settle();
    void keep_what_is_good();
    void cut_one_text();
    void close_files();
    CorpusResult finish();

    const Tokenizer& tokenizer_;
    const CorpusOptions& options_;
    std::optional<CorpusFolder> folder_;
    const CorpusLayout& layout_;
    const int token_bytes_;
    const std::string tokenizer_file_;  // what tokenizer.gguf will hold
    std::vector<std::string> files_;
    DocumentReader reader_;
    std::uint64_t batches_read_ = 0, hash_read_ = 0;
    std::uint64_t document_bytes_ = 0;  // of the last document that has begun
    std::uint64_t first_hash_ = 0;      // of the first document
    bool read_whole_ = false;
    CorpusProgress progress_;
    std::uint64_t resume_at_ = 0, resume_hash_ = 0;
    Clock::time_point last_checkpoint_;
    std::unique_ptr<ShardWriter> writers_[2];
    std::future<void> checkpoint_;           // one at a time
    CorpusOptions::Progress shown_, again_;  // again_: of what an earlier run has written
    bool stopped_ = false;
    bool whole_ = true;  // the writers stand between two batches
};

/// All that the output depends on beside the documents' bytes (those are hashed as they are read again).
std::vector<std::pair<std::string, std::string>> Builder::settings() const {
    const ReadOptions& read = options_.read;
    char fraction[32];
    std::snprintf(fraction, sizeof fraction, "%.17g", options_.validation_fraction);
    return {{"tokenizer_sha256", sha256(tokenizer_file_)},
            {"batch_bytes", std::to_string(batch_bytes)},
            {"format", read.format},
            {"field", read.field},
            {"separator", read.separator},
            {"invalid", read.invalid},
            {"skip_bad", read.skip_bad ? "true" : "false"},
            {"validation_fraction", fraction},
            {"shard_tokens", std::to_string(options_.shard_tokens)},
            {"end_tokens", options_.end_tokens ? "true" : "false"},
            {"layout", options_.layout}};
}

/// Decides between a new run and an old one's continuation.
void Builder::prepare_folder() {
    const std::string& folder = folder_->path();
    CorpusProgress old;
    const bool unfinished = read_corpus_progress(folder, old);
    const std::string there = folder + "/" + corpus_tokenizer;
    if (!unfinished && name_taken(there) && read_file(there) != tokenizer_file_)
        fail(Exit::usage, there, "", "no file, or the corpus's tokenizer", "another",
             "--overwrite replaces it");
    progress_.settings = settings();
    if (unfinished) {
        for (std::size_t i = 0; i < progress_.settings.size(); i++) {
            const std::string &key = progress_.settings[i].first, &value = progress_.settings[i].second;
            auto before = std::find_if(old.settings.begin(), old.settings.end(),
                                       [&](const auto& s) { return s.first == key; });
            std::string had = before == old.settings.end() ? "nothing" : before->second;
            if (had != value)
                fail(Exit::diverged, folder + "/" + corpus_progress_name, key, had, value,
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
        if (progress_.batches == 0) check_counts();
    } else {
        progress_.replaces = folder_->beside();
        write_corpus_progress(folder, progress_);
    }
    for (int i = 0; i < 2; i++)
        writers_[i] = std::make_unique<ShardWriter>(folder, split_names[i], layout_, token_bytes_,
                                                    options_.shard_tokens, progress_.splits[i]);
}

/// What progress.json says of the text that was written is what that text has, read again.
void Builder::check_counts() const {
    auto told = [](const CorpusOptions::Progress& p) {
        return std::to_string(p.documents) + " documents of " + std::to_string(p.bytes) + " bytes";
    };
    const bool tokens_of_nothing = progress_.batches == 0 && shown_.tokens > 0;
    if (shown_.documents != again_.documents || shown_.bytes != again_.bytes || tokens_of_nothing)
        fail(Exit::diverged, folder_->path() + "/" + corpus_progress_name, "", told(again_),
             tokens_of_nothing ? std::to_string(shown_.tokens) + " tokens" : told(shown_),
             "--overwrite begins again");
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

/// Batches are cut by bytes and parts alone, so that their numbers mean the same in every run.
bool Builder::read(Batch& batch) {
    if (read_whole_) return false;
    batch.clear();
    batch.bytes_before = document_bytes_;
    DocumentPart part;
    while (!read_whole_ && batch.text.size() < batch_bytes && batch.parts.size() < 65536) {
        read_whole_ = !reader_.next(batch.text, part);
        if (read_whole_) break;
        batch.parts.push_back(part);
        if (part.first) document_bytes_ = 0;
        document_bytes_ += part.end - part.begin;
    }
    if (batches_read_ == 0 && !batch.parts.empty()) first_hash_ = batch.parts[0].hash;
    hash_read_ = hash_of(batch, hash_read_);
    batch.index = batches_read_++;
    batch.input_hash = hash_read_;
    batch.bytes_read = reader_.bytes_read();
    batch.skip = batch.index < resume_at_;
    batch.end = read_whole_;
    return true;
}

/// Of a text that cannot be encoded. (The reader knows no file of a document, nor its line.)
std::string Builder::place(std::uint64_t document) const {
    const std::vector<std::string>& inputs = options_.inputs;
    const bool only = files_.size() == 1 && options_.read.separator.empty() &&
                      !reads_as_jsonl(files_[0], options_.read.format);
    return inputs_name(input_name(inputs[0]), inputs.size()) +
           (only ? "" : ": document " + std::to_string(document));
}

void Builder::encode(Batch& batch) const {
    if (batch.skip) return;
    const BlockSink store = [&](std::span<const TokenId> ids) {
        store_tokens(ids, token_bytes_,
                     batch.add_tokens(ids.size() * static_cast<std::size_t>(token_bytes_)));
    };
    const DocumentMarks marks(tokenizer_);
    std::uint64_t before = batch.bytes_before;
    for (const DocumentPart& part : batch.parts) {
        if (part.first) before = 0;
        std::string_view text = std::string_view(batch.text).substr(part.begin, part.end - part.begin);
        const std::size_t begin = batch.token_bytes;
        if (part.first && marks.begin) store({&*marks.begin, 1});
        EncodeOptions encode;
        encode.continues = !part.first;
        if (!text.empty())
            naming([&] { return place(part.number); },
                   [&] { behind(before, [&] { tokenizer_.encode_blocks(text, encode, store); }); });
        before += text.size();
        if (part.last && options_.end_tokens) store({&*marks.end, 1});
        const bool stays = layout_.cuts_one_text && part.hash == first_hash_;  // it may be the only one
        const int split = !stays && held_out(part.hash, options_.validation_fraction) ? 1 : 0;
        if (batch.runs.empty() || batch.runs.back().split != split) batch.runs.push_back({split, {}});
        batch.runs.back().parts.push_back(
            {batch.token_bytes - begin, part.first ? std::uint64_t{1} : 0, text.size()});
    }
}

void Builder::append(const Batch& batch) {
    std::string_view tokens = std::string_view(batch.tokens).substr(0, batch.token_bytes);
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
    shown_.tokens += batch.token_bytes / static_cast<std::size_t>(token_bytes_);
}

/// Begins to note where all stands, beside the work.
void Builder::checkpoint() {
    settle();
    std::function<void()> on_disk[2];
    for (int i = 0; i < 2; i++) {
        on_disk[i] = writers_[i]->sync();
        progress_.splits[i] = writers_[i]->state();
    }
    auto note = [this, on_disk = std::to_array(on_disk), progress = progress_] {
        for (const auto& wait : on_disk) wait();
        write_corpus_progress(folder_->path(), progress);
    };
    checkpoint_ = aside(std::move(note));
}

/// Waits for the last checkpoint.
void Builder::settle() {
    if (checkpoint_.valid()) checkpoint_.get();
}

/// False where no more is to be written.
bool Builder::write(const Batch& batch) {
    const std::size_t shards = writers_[0]->state().finished.size() + writers_[1]->state().finished.size();
    const bool changed = batch.index + 1 == resume_at_ && batch.input_hash != resume_hash_;
    if (changed || (batch.end && batch.index + 1 < resume_at_))
        fail(Exit::diverged, options_.folder, "resume", "the text of the first run", "another",
             "the input has changed; --overwrite begins again");
    if (batch.skip) {
        for (const DocumentPart& part : batch.parts) {
            again_.documents += part.first ? 1 : 0;
            again_.bytes += part.end - part.begin;
        }
        if (batch.index + 1 == resume_at_) check_counts();
    } else {
        whole_ = false;
        append(batch);
        progress_.batches = batch.index + 1;
        progress_.input_hash = batch.input_hash;
        whole_ = true;
    }
    shown_.bytes_read = batch.bytes_read;
    shown_.bytes_total = reader_.bytes_total();
    shown_.skipping = batch.skip;
    if (batch.end) return false;
    stopped_ = options_.progress && options_.progress(shown_);
    const bool closed = writers_[0]->state().finished.size() + writers_[1]->state().finished.size() != shards;
    const bool due = seconds_since(last_checkpoint_) >= options_.checkpoint_seconds;
    if (!batch.skip && (closed || due || stopped_)) {
        checkpoint();
        last_checkpoint_ = Clock::now();
    }
    return !stopped_;
}

/// nanoGPT's split of a single text: its first nine tenths, rounded down, are for training, by tokens.
/// (nanoGPT counts characters before it encodes; for a vocabulary of characters that is the same.)
void Builder::cut_one_text() {
    ShardWriter &train = *writers_[0], &validation = *writers_[1];
    const std::uint64_t all = train.state().open.tokens, tokens = all - all * 9 / 10;
    if (shown_.documents != 1 || options_.validation_fraction == 0 || all < 10) return;
    if (validation.state().open.tokens > 0) return;  // an earlier run came as far as this
    const std::string tail = train.take_tail(tokens);
    std::string text;
    for (std::size_t i = 0; i < tail.size(); i += static_cast<std::size_t>(token_bytes_))
        tokenizer_.decode(static_cast<TokenId>(load_token(tail.data() + i, token_bytes_)), false, text);
    train.forget_text(text.size());
    const ShardWriter::Part part{tail.size(), 0, text.size()};
    validation.write(tail, {&part, 1});
    checkpoint();
    settle();  // the files are finished from here on
}

/// All that index.json speaks of, side by side: it is waiting for the disk more than work.
void Builder::close_files() {
    const std::function<void()> tasks[] = {[&] { writers_[0]->finish(); },
                                           [&] {
                                               if (shown_.documents > 0)
                                                   write_file(folder_->path() + "/" + corpus_tokenizer,
                                                              tokenizer_file_, Existing::replace_name);
                                           },
                                           [&] { writers_[1]->finish(); }};
    std::atomic<std::size_t> next{0};
    run_team(std::min(options_.threads, 3), [&](Worker) {
        for (std::size_t i; (i = next++) < std::size(tasks);) tasks[i]();
    });
}

CorpusResult Builder::finish() {
    CorpusResult result;
    CorpusIndex& index = result.index;
    index.layout = options_.layout;
    index.vocab_size = tokenizer_.size();
    index.tokenizer = options_.tokenizer_name;
    index.tokenizer_sha256 = progress_.settings[0].second;
    index.validation_fraction = options_.validation_fraction;
    result.skipped = reader_.skipped();
    index.skipped = result.skipped.skipped;
    result.stopped = stopped_;
    settle();
    if (!stopped_ && layout_.cuts_one_text) cut_one_text();
    if (!stopped_) close_files();
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
        folder_->abandon();
        fail_input(files_.size() == 1 ? files_[0] : std::to_string(files_.size()) + " files", "",
                   "at least one document", result.skipped.bad_alone());
    }
    write_file(folder_->path() + "/" + corpus_index_name, corpus_index_json(index), Existing::replace_name);
    folder_->finish();
    remove_corpus_progress(folder_->path());
    return result;
}

/// After an error: once the input is mended or the disk has space, a resumed run goes on from here; a run
/// that wrote nothing leaves nothing.
void Builder::keep_what_is_good() {
    try {
        if (progress_.batches == 0) {
            for (auto& writer : writers_) writer.reset();  // waits for what it is about
            folder_->abandon();
        } else if (whole_) {
            checkpoint();
        }
        settle();
    } catch (const std::exception&) {  // the first error is the one to tell; the last checkpoint stands
    }
}

CorpusResult Builder::run() {
    if (options_.end_tokens && !tokenizer_.eos())
        fail_input(options_.tokenizer_name, "", "a tokenizer with an end-of-text token", "none",
                   "--no-end-tokens leaves documents unmarked");
    folder_.emplace(options_.folder, options_.resume      ? CorpusStart::resume
                                     : options_.overwrite ? CorpusStart::overwrite
                                                          : CorpusStart::fresh);
    if (folder_->finished()) {
        CorpusResult result;
        result.index = read_corpus_index(options_.folder);
        result.was_done = true;
        return result;
    }
    prepare_folder();
    resume_at_ = progress_.batches;
    resume_hash_ = progress_.input_hash;
    last_checkpoint_ = Clock::now();
    try {
        run_ordered<Batch>(options_.threads, {[this](Batch& batch) { return read(batch); },
                                              [this](Batch& batch) { encode(batch); },
                                              [this](Batch& batch) { return write(batch); }});
    } catch (const Stopped&) {  // while it waited for stdin
        stopped_ = true;
        checkpoint();
    } catch (...) {
        keep_what_is_good();
        throw;
    }
    return finish();
}

}  // namespace

CorpusResult build_corpus(const Tokenizer& tokenizer, const CorpusOptions& options) {
    return Builder(tokenizer, options).run();
}

}  // namespace linnet
