#include "data/batches.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/team.h"
#include "data/document_marks.h"
#include "data/packing.h"
#include "data/permutation.h"
#include "data/shards.h"
#include "text/naming.h"

namespace linnet {

/// The tokens of one split: in memory (one of the vectors) or in shards end to end.
struct TokenSource::Stream {
    std::vector<std::uint16_t> narrow;
    std::vector<std::uint32_t> wide;
    std::vector<std::shared_ptr<const TokenShard>> shards;
    std::vector<std::uint64_t> ends;  // of the shards, in tokens
    std::uint64_t begin = 0;          // of the stream in the first shard
    std::uint64_t size = 0, bytes = 0;

    std::size_t shard_of(std::uint64_t at) const {  // at < begin + size
        return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
    }
    std::uint32_t of_shard(std::size_t shard, std::uint64_t at) const {
        return (*shards[shard])[at - (shard == 0 ? 0 : ends[shard - 1])];
    }
};

namespace {

constexpr std::uint64_t window_stream = 0x77696e646f77;  // "window": this purpose's stream of the seed

/// Appends the ids of one part to `ids`, a document as `linnet corpus` writes it where `mark`: between its
/// begin and end tokens (a vocabulary without an end token: at least a newline parts it from the next).
void encode_document(const Tokenizer& tokenizer, std::string_view text, bool mark, int threads,
                     std::vector<TokenId>& ids) {
    const DocumentMarks marks(tokenizer);
    EncodeOptions options;
    options.threads = threads;
    if (mark && marks.begin) ids.push_back(*marks.begin);
    tokenizer.encode(text, ids, options);
    if (mark && marks.end)
        ids.push_back(*marks.end);
    else if (mark && !text.ends_with('\n'))
        behind(text.size(), [&] { tokenizer.encode("\n", ids, {}); });
}

/// One of the two parts of a split.
std::vector<TokenId> encode_documents(const Tokenizer& tokenizer, const TextSplit& split,
                                      const std::vector<std::string_view>& documents, bool mark, int threads,
                                      const std::string& name) {
    auto encode = [&](std::size_t i, int threads_of_one, std::vector<TokenId>& to) {
        naming_part(split, documents, i, name,
                    [&] { encode_document(tokenizer, documents[i], mark, threads_of_one, to); });
    };
    std::vector<TokenId> ids;
    if (documents.size() < 64) {  // threads share each one
        for (std::size_t i = 0; i < documents.size(); i++) encode(i, threads, ids);
        return ids;
    }
    std::vector<std::vector<TokenId>> shares(static_cast<std::size_t>(threads));
    run_team(threads, [&](Worker worker) {
        Range range = worker.share(static_cast<std::int64_t>(documents.size()));
        for (std::int64_t i = range.begin; i < range.end; i++)
            encode(static_cast<std::size_t>(i), 1, shares[static_cast<std::size_t>(worker.index)]);
    });
    for (const std::vector<TokenId>& share : shares) ids.insert(ids.end(), share.begin(), share.end());
    return ids;
}

}  // namespace

/// The last `fraction` of `train` becomes `validation`.
void TokenSource::hold_out(Stream& train, Stream& validation, double fraction) {
    validation = train;
    validation.size = static_cast<std::uint64_t>(static_cast<double>(train.size) * fraction);
    train.size -= validation.size;
    validation.begin = train.size;
}

/// Bytes of the text that a stream's tokens spell: exact up to 16 Mi tokens, beyond that from as many of
/// them, evenly spread. An id outside the vocabulary spells nothing here; window() refuses it.
std::uint64_t TokenSource::spelled_bytes(const Stream& stream, const Tokenizer& tokenizer) {
    constexpr std::uint64_t most = std::uint64_t{1} << 24;
    std::vector<std::uint32_t> length(static_cast<std::size_t>(tokenizer.size()));
    std::string text;
    for (TokenId id = 0; id < tokenizer.size(); id++) {
        text.clear();
        tokenizer.decode(id, false, text);
        length[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(text.size());
    }
    const std::uint64_t step = stream.size / most + 1;
    std::uint64_t sum = 0, seen = 0;
    for (std::uint64_t i = 0; i < stream.size; i += step, seen++) {
        const std::uint32_t id = stream.of_shard(stream.shard_of(stream.begin + i), stream.begin + i);
        if (id < length.size()) sum += length[id];
    }
    return step == 1 ? sum
                     : static_cast<std::uint64_t>(static_cast<double>(sum) / static_cast<double>(seen) *
                                                  static_cast<double>(stream.size));
}

TokenSource TokenSource::from_documents(const TextSplit& split, bool mark, const Tokenizer& tokenizer,
                                        int threads, std::string name) {
    TokenSource source;
    source.name_ = std::move(name);
    source.vocab_size_ = tokenizer.size();
    const std::vector<std::string_view>* parts[2] = {&split.train, &split.validation};
    for (int i = 0; i < 2; i++) {
        auto stream = std::make_shared<Stream>();
        const std::vector<TokenId> ids =
            encode_documents(tokenizer, split, *parts[i], mark, threads, source.name_);
        if (tokenizer.size() <= 65536)
            stream->narrow.assign(ids.begin(), ids.end());
        else
            stream->wide.assign(ids.begin(), ids.end());
        stream->size = ids.size();
        for (std::string_view text : *parts[i]) stream->bytes += text.size();
        source.streams_[i] = std::move(stream);
    }
    return source;
}

TokenSource TokenSource::open_files(const TokenFiles& files, const Tokenizer& tokenizer, double fraction) {
    const CorpusIndex& index = files.index;
    if (files.ours && index.vocab_size != tokenizer.size())
        fail_input(files.folder + "/" + corpus_index_name, "vocab_size",
                   std::to_string(tokenizer.size()) + " (the model's vocabulary)",
                   std::to_string(index.vocab_size), "made with another tokenizer: run linnet corpus again");
    TokenSource source;
    source.name_ = files.folder;
    source.vocab_size_ = tokenizer.size();
    std::shared_ptr<Stream> streams[2] = {std::make_shared<Stream>(), std::make_shared<Stream>()};
    for (const CorpusShard& shard : index.shards) {
        const std::string path = files.folder + "/" + shard.file;
        Stream& stream = *streams[shard.split == split_names[0] ? 0 : 1];
        stream.shards.push_back(std::make_shared<TokenShard>(path, *find_layout(index.layout)));
        if (stream.shards.back()->size() != shard.tokens)
            fail_input(path, "header", std::to_string(shard.tokens) + " tokens (index.json)",
                       std::to_string(stream.shards.back()->size()));
        stream.size += shard.tokens;
        stream.bytes += shard.bytes;
        stream.ends.push_back(stream.size);
    }
    if (!files.ours) {
        if (streams[1]->size == 0) hold_out(*streams[0], *streams[1], fraction);
        for (const auto& stream : streams) stream->bytes = spelled_bytes(*stream, tokenizer);
    }
    for (int i = 0; i < 2; i++) source.streams_[i] = streams[i];
    return source;
}

TokenSource TokenSource::from_packed(PackedTexts texts, std::string name) {
    TokenSource source;
    source.name_ = std::move(name);
    source.packed_ = std::make_shared<const PackedTexts>(std::move(texts));
    return source;
}

std::uint64_t TokenSource::size(DataSplit split) const {
    if (packed_) return packed_->size(split);
    return streams_[static_cast<int>(split)]->size;
}
std::uint64_t TokenSource::bytes(DataSplit split) const {
    if (packed_) return packed_->bytes(split);
    return streams_[static_cast<int>(split)]->bytes;
}

bool TokenSource::in_memory() const {
    return packed_ || (streams_[0]->shards.empty() && streams_[1]->shards.empty());
}

void TokenSource::window(DataSplit split, std::uint64_t begin, std::span<std::int32_t> inputs,
                         std::span<std::int32_t> targets) const {
    if (packed_) throw std::logic_error("a window of packed texts, which are read by bins");
    const Stream& stream = *streams_[static_cast<int>(split)];
    const std::size_t T = inputs.size();
    begin += stream.begin;
    std::size_t shard = stream.shard_of(begin);
    for (std::size_t i = 0; i <= T; i++) {
        std::uint64_t at = begin + i;
        std::uint32_t id = 0;
        if (!stream.narrow.empty()) {
            id = stream.narrow[at];
        } else if (!stream.wide.empty()) {
            id = stream.wide[at];
        } else {
            while (at >= stream.ends[shard]) shard++;
            id = stream.of_shard(shard, at);
        }
        if (id >= static_cast<std::uint32_t>(vocab_size_))
            fail_input(stream.shards.empty() ? name_ : stream.shards[shard]->path(),
                       "token " + std::to_string(at), "an id below " + std::to_string(vocab_size_),
                       std::to_string(id));
        if (i < T) inputs[i] = static_cast<std::int32_t>(id);
        if (i > 0) targets[i - 1] = static_cast<std::int32_t>(id);
    }
}

WindowSampler::WindowSampler(TokenSource source, std::uint64_t seed, std::int64_t T)
    : source_(std::move(source)), seed_(seed), rng_(seed, window_stream), T_(static_cast<std::uint64_t>(T)) {
    if (!source_.packed() && source_.size(DataSplit::train) < T_ + 1)
        fail_input(source_.name(), "training split",
                   "at least " + std::to_string(T_ + 1) + " tokens (one window of " + std::to_string(T_) +
                       " and its last target)",
                   std::to_string(source_.size(DataSplit::train)),
                   "more text; `linnet train` and `finetune` also take a shorter train.sequence");
}

std::uint64_t WindowSampler::epoch_windows() const {
    if (source_.packed()) return source_.packed()->bins(DataSplit::train);
    const std::uint64_t windows = (source_.size(DataSplit::train) - 1) / T_;
    return windows > 2 ? windows - 1 : 1;  // one is given up for the room that the offset needs
}

std::uint64_t WindowSampler::epoch_rows() const {
    return source_.packed() ? epoch_windows() * T_ : source_.size(DataSplit::train);
}

std::int64_t WindowSampler::targets(std::uint64_t begin, std::uint64_t end) const {
    const PackedTexts* packed = source_.packed();
    if (!packed) return static_cast<std::int64_t>((end - begin) * T_);
    std::int64_t count = 0;
    for (std::uint64_t i = begin; i < end; i++)
        count += packed->targets(DataSplit::train, packed->train_bin(i));
    return count;
}

void WindowSampler::train_window(std::uint64_t index, std::span<std::int32_t> inputs,
                                 std::span<std::int32_t> targets) const {
    const std::uint64_t size = source_.size(DataSplit::train), windows = epoch_windows();
    std::uint64_t epoch = index / windows, room = size - windows * T_;
    Rng of_epoch(seed_, window_stream + 1 + epoch);
    std::uint64_t offset = rng_.below(room, epoch);
    source_.window(DataSplit::train, offset + permuted(of_epoch, index % windows, windows) * T_, inputs,
                   targets);
}

std::uint64_t WindowSampler::validation_windows() const {
    if (source_.packed()) return source_.packed()->bins(DataSplit::validation);
    std::uint64_t tokens = source_.size(DataSplit::validation);
    return tokens == 0 ? 0 : (tokens - 1) / T_;
}

void WindowSampler::validation_window(std::uint64_t i, std::span<std::int32_t> inputs,
                                      std::span<std::int32_t> targets) const {
    source_.window(DataSplit::validation, i * T_, inputs, targets);
}

void WindowSampler::add(DataSplit split, std::uint64_t index, Batch& batch) const {
    const bool train = split == DataSplit::train;
    if (const PackedTexts* packed = source_.packed())
        return packed->add(split, train ? packed->train_bin(index) : index, batch);
    std::vector<std::int32_t> inputs(T_), targets(T_);
    if (train)
        train_window(index, inputs, targets);
    else
        validation_window(index, inputs, targets);
    batch.add(inputs.data(), static_cast<std::int64_t>(T_), 0,
              static_cast<std::int64_t>(batch.rows.segments.size()));
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
}

}  // namespace linnet
