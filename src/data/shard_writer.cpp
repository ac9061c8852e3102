#include "data/shard_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace linnet {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

std::string header(const ShardFormat& format, std::uint64_t tokens) {
    std::string bytes(shard_header_bytes, '\0');
    const std::int32_t fields[3] = {format.magic, format.version, static_cast<std::int32_t>(tokens)};
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
}

void write_at(int fd, const std::string& path, std::string_view bytes, std::uint64_t at) {
    while (!bytes.empty()) {
        ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno(path, "writing", errno);
        bytes.remove_prefix(static_cast<std::size_t>(n));
        at += static_cast<std::uint64_t>(n);
    }
}

/// Asks the system to begin writing to the disk, so that the fsync at the end has little left to wait for.
void start_writing(int fd, std::uint64_t at, std::size_t size) {
#ifdef SYNC_FILE_RANGE_WRITE
    ::sync_file_range(fd, static_cast<off_t>(at), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
#else
    (void)fd, (void)at, (void)size;
#endif
}

/// Adds the file's first `size` bytes to the hash.
void hash_file(int fd, const std::string& path, std::uint64_t size, Sha256& hash) {
    std::string bytes(std::size_t{1} << 17, '\0');  // half of a second-level cache
    for (std::uint64_t at = 0; at < size;) {
        ssize_t n = ::pread(fd, bytes.data(), std::min<std::uint64_t>(bytes.size(), size - at),
                            static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail_errno(path, "reading back", n < 0 ? errno : EIO);
        hash.update(bytes.data(), static_cast<std::size_t>(n));
        at += static_cast<std::uint64_t>(n);
    }
}

}  // namespace

ShardWriter::ShardWriter(std::string folder, std::string split, const ShardFormat& format,
                         std::uint64_t shard_tokens, SplitState state)
    : folder_(std::move(folder)),
      split_(std::move(split)),
      format_(format),
      shard_tokens_(shard_tokens),
      state_(std::move(state)) {
    buffer_.reserve(buffer_bytes * 2);
    if (state_.open.tokens > 0) open();
}

ShardWriter::~ShardWriter() {
    if (fd_ >= 0) ::close(fd_);
}

std::string ShardWriter::path(std::size_t index, std::string_view suffix) const {
    char number[16];
    std::snprintf(number, sizeof number, "_%06zu", index);
    return folder_ + "/" + (split_ == "validation" ? "val" : split_) + number + std::string(suffix);
}

void ShardWriter::open() {
    std::size_t index = state_.finished.size();
    std::string part = path(index, ".part"), whole = path(index, ".bin");
    struct stat status {};
    // A crash may fall between a shard's renaming and the note of it: then it is taken back and finished
    // again.
    if (state_.open.tokens > 0 && ::stat(part.c_str(), &status) != 0) ::rename(whole.c_str(), part.c_str());
    fd_ = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail_errno(part, "", errno);
    at_ = shard_header_bytes + state_.open.tokens * static_cast<std::uint64_t>(format_.token_bytes);
    if (state_.open.tokens > 0) {
        if (::fstat(fd_, &status) != 0) fail_errno(part, "", errno);
        if (static_cast<std::uint64_t>(status.st_size) < at_)
            fail(Exit::diverged, part, "", "at least " + std::to_string(at_) + " bytes",
                 std::to_string(status.st_size),
                 "the unfinished shard is gone: begin again with --overwrite");
    }
    if (::ftruncate(fd_, static_cast<off_t>(at_)) != 0) fail_errno(part, "", errno);
}

void ShardWriter::flush() {
    if (buffer_.empty()) return;
    write_at(fd_, path(state_.finished.size(), ".part"), buffer_, at_);
    at_ += buffer_.size();
    buffer_.clear();
}

void ShardWriter::write(std::string_view tokens, std::span<const Part> parts) {
    const auto width = static_cast<std::uint64_t>(format_.token_bytes);
    std::size_t part_begin = 0,
                written = 0;  // where the next part to book begins; both in bytes of this call
    while (!tokens.empty()) {
        if (fd_ < 0) open();
        std::uint64_t room = (shard_tokens_ - state_.open.tokens) * width;
        std::string_view now =
            tokens.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, tokens.size())));
        if (now.size() >= buffer_bytes / 4) {  // large enough to go past the buffer
            flush();
            write_at(fd_, path(state_.finished.size(), ".part"), now, at_);
            start_writing(fd_, at_, now.size());
            at_ += now.size();
        } else {
            buffer_.append(now);
            if (buffer_.size() >= buffer_bytes) flush();
        }
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

void ShardWriter::close_shard() {
    flush();
    std::size_t index = state_.finished.size();
    std::string part = path(index, ".part"), whole = path(index, ".bin");
    write_at(fd_, part, header(format_, state_.open.tokens), 0);
    Sha256 hash;  // the header comes first and is known last, so the file is read once more (from the page
                  // cache)
    hash_file(fd_, part, at_, hash);
    if (::fsync(fd_) != 0) fail_errno(part, "", errno);
    ::close(fd_);
    fd_ = -1;
    if (::rename(part.c_str(), whole.c_str()) != 0) fail_errno(whole, "", errno);
    sync_directory(folder_);
    CorpusShard shard = state_.open;
    shard.file = whole.substr(whole.rfind('/') + 1);
    shard.split = split_;
    shard.sha256 = hash.hex();
    state_.finished.push_back(std::move(shard));
    state_.open = {};
}

void ShardWriter::sync() {
    if (fd_ < 0) return;
    flush();
    if (::fsync(fd_) != 0) fail_errno(path(state_.finished.size(), ".part"), "", errno);
}

void ShardWriter::finish() {
    if (fd_ >= 0) close_shard();
}

}  // namespace linnet
