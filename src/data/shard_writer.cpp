#include "data/shard_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/aside.h"
#include "base/error.h"
#include "base/file.h"
#include "base/system.h"
#include "data/megatron_index.h"

namespace linnet {
namespace {

/// An AppendFile would lengthen a shorter file with zeros.
void require_held(const std::string& path, std::uint64_t bytes) {
    struct stat status {};
    const bool there = ::stat(path.c_str(), &status) == 0;
    if (!there && errno != ENOENT) fail_errno(path, "", errno);
    if (there && static_cast<std::uint64_t>(status.st_size) >= bytes) return;
    fail(Exit::diverged, path, "", "at least " + std::to_string(bytes) + " bytes",
         there ? std::to_string(status.st_size) : "no file",
         "what the first run wrote is gone: begin again with --overwrite");
}

}  // namespace

ShardWriter::ShardWriter(std::string folder, std::string split, const CorpusLayout& layout, int token_bytes,
                         std::uint64_t shard_tokens, SplitState state)
    : folder_(std::move(folder)),
      split_(std::move(split)),
      layout_(&layout),
      token_bytes_(token_bytes),
      shard_tokens_(layout.many_shards() ? shard_tokens : std::uint64_t{1} << 53),
      state_(std::move(state)) {
    require_state();
    if (state_.open.tokens > 0) open();
    if (layout.index && state_.finished.empty()) {
        const std::uint64_t bytes = state_.open.documents * sizeof(std::int64_t);
        if (bytes > 0) require_held(path(0, ".starts"), bytes);
        starts_ = std::make_unique<AppendFile>(path(0, ".starts"), bytes);
    }
}

/// The state that an earlier run has noted is one that a writer comes to, and its shards are there.
void ShardWriter::require_state() const {
    const std::size_t begun = state_.open.tokens > 0 ? 1 : 0, shards = state_.finished.size() + begun;
    if (!layout_->many_shards() && shards > 1)
        fail(Exit::diverged, folder_, split_, "one file", std::to_string(shards),
             "begin again with --overwrite");
    if (state_.open.tokens >= shard_tokens_)
        fail(Exit::diverged, folder_, split_, "fewer than " + std::to_string(shard_tokens_) + " tokens begun",
             std::to_string(state_.open.tokens), "begin again with --overwrite");
    for (std::size_t i = 0; i < state_.finished.size(); i++)
        require_held(path(i, ".bin"), bytes_of(state_.finished[i]));
}

std::string ShardWriter::path(std::size_t index, std::string_view suffix) const {
    return folder_ + "/" + layout_->file(split_, index) + std::string(suffix);
}

std::string ShardWriter::header(std::uint64_t tokens) const {
    std::string bytes(layout_->header_bytes, '\0');
    for (const LlmcHeader& h : llmc_headers) {
        if (bytes.empty() || h.token_bytes != token_bytes_) continue;
        const std::int32_t fields[3] = {h.magic, h.version, static_cast<std::int32_t>(tokens)};
        std::memcpy(bytes.data(), fields, sizeof fields);
    }
    return bytes;
}

void ShardWriter::open() {
    std::size_t index = state_.finished.size();
    std::string part = path(index, ".part"), whole = path(index, ".bin");
    if (state_.open.tokens == 0) {
        const std::string first = header(shard_tokens_);
        file_ = std::make_unique<AppendFile>(part, 0);
        file_->append(first);
        hash_.emplace().update(first);
        return;
    }
    // A crash may fall between a shard's renaming and the note of it: then it is taken back and finished
    // again.
    if (!name_taken(part)) (void)rename_file(whole, part);
    require_held(part, bytes_of(state_.open));
    file_ = std::make_unique<AppendFile>(part, bytes_of(state_.open));
}

void ShardWriter::write(std::string_view tokens, std::span<const Part> parts) {
    const auto width = static_cast<std::uint64_t>(token_bytes_);
    if (starts_) note_starts(parts);
    std::size_t part_begin = 0,
                written = 0;  // where the next part to book begins; both in bytes of this call
    while (!tokens.empty()) {
        if (!file_) open();
        std::uint64_t room = (shard_tokens_ - state_.open.tokens) * width;
        std::string_view now =
            tokens.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, tokens.size())));
        file_->append(now);
        if (hash_) hash_->update(now);
        written += now.size();
        state_.open.tokens += now.size() / width;
        for (; !parts.empty() && part_begin < written; parts = parts.subspan(1)) {
            state_.open.documents += parts[0].documents;
            state_.open.bytes += parts[0].bytes;
            part_begin += parts[0].token_bytes;
        }
        tokens.remove_prefix(now.size());
        if (state_.open.tokens == shard_tokens_) close_shard();
    }
    for (const Part& part : parts) {  // what became no token at all (with --no-end-tokens)
        state_.open.documents += part.documents;
        state_.open.bytes += part.bytes;
    }
}

/// Where each document begins, in tokens. Only for a layout with one shard.
void ShardWriter::note_starts(std::span<const Part> parts) {
    std::uint64_t at = state_.open.tokens;
    for (const Part& part : parts) {
        const auto start = static_cast<std::int64_t>(at);
        for (std::uint64_t i = 0; i < part.documents; i++)
            starts_->append({reinterpret_cast<const char*>(&start), sizeof start});
        at += part.token_bytes / static_cast<std::uint64_t>(token_bytes_);
    }
}

std::uint64_t ShardWriter::bytes_of(const CorpusShard& shard) const {
    return layout_->header_bytes + shard.tokens * static_cast<std::uint64_t>(token_bytes_);
}

/// The file is cut when the shard is closed: until the caller has noted the new state, the old one holds.
std::string ShardWriter::take_tail(std::uint64_t tokens) {
    file_->sync().get();
    const std::uint64_t all = bytes_of(state_.open);
    state_.open.tokens -= tokens;
    hash_.reset();
    const std::uint64_t left = bytes_of(state_.open);
    const MappedFile part(path(state_.finished.size(), ".part"));
    return std::string(part.text().substr(left, all - left));
}

/// The open shard's hash, where its header is not the one that writing and hashing began with: the shard ends
/// early, or it was begun by an earlier run, which may have come as far as to end it early.
std::string ShardWriter::rehash(const std::string& part) {
    file_->replace_head(header(state_.open.tokens));
    file_->sync();  // goes on while the file is read
    hash_.emplace();
    read_stream(part, [&](std::string_view bytes) { hash_->update(bytes); });
    return hash_->hex();
}

/// The disk takes up to 50 ms to confirm a shard, so that is waited for beside the next one's work.
void ShardWriter::close_shard() {
    std::size_t index = state_.finished.size();
    std::string part = path(index, ".part"), whole = path(index, ".bin");
    CorpusShard shard = state_.open;
    if (file_->size() > bytes_of(shard))
        file_ = std::make_unique<AppendFile>(part, bytes_of(shard));  // take_tail()
    const bool hashed = hash_ && (layout_->header_bytes == 0 || shard.tokens == shard_tokens_);
    shard.sha256 = hashed ? hash_->hex() : rehash(part);
    shard.file = whole.substr(whole.rfind('/') + 1);
    shard.split = split_;
    hash_.reset();
    if (closing_.valid()) closing_.get();
    auto close = [file = std::move(file_), part, whole, folder = folder_]() mutable {
        file->sync().get();
        file.reset();
        if (int error = rename_file(part, whole)) fail_errno(whole, "", error);
        sync_folder(folder);
    };
    closing_ = aside(std::move(close)).share();
    if (starts_) {
        starts_->sync().get();
        starts_.reset();
        write_megatron_index(path(index, ".idx"), path(index, ".starts"), shard.tokens, token_bytes_);
    }
    state_.finished.push_back(std::move(shard));
    state_.open = {};
}

std::function<void()> ShardWriter::sync() {
    std::shared_future<void> open;
    if (file_) open = file_->sync();
    std::shared_future<void> starts;
    if (starts_) starts = starts_->sync();
    return [closed = closing_, open, starts] {
        for (const auto& done : {closed, open, starts})
            if (done.valid()) done.get();
    };
}

void ShardWriter::finish() {
    if (file_) close_shard();
    if (closing_.valid()) closing_.get();
}

}  // namespace linnet
