#include "base/stream_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/aside.h"
#include "base/error.h"
#include "base/system.h"

namespace linnet {
namespace {

constexpr std::size_t block_bytes = std::size_t{2} << 20;
constexpr std::size_t alignment = 4096;  // of place and length; no disk in use asks for more

char* bytes_of(const Arena& arena) {
    return static_cast<char*>(arena.get());
}

int open_past_cache(const std::string& path, int flags) {
    int fd = -1;
#ifdef O_DIRECT
    fd = open_file(path, flags | O_DIRECT, 0666);
    if (fd >= 0 || errno != EINVAL) return fd;
#endif
    fd = open_file(path, flags, 0666);
#ifdef F_NOCACHE
    if (fd >= 0) ::fcntl(fd, F_NOCACHE, 1);
#endif
    return fd;
}

/// `fd`, which open_past_cache gave for `path`; where that is -1, its error.
void check_opened(int fd, const std::string& path) {
    if (fd >= 0) return;
    if (errno == ELOOP) fail(Exit::io, path, "", "a regular file", "a symbolic link");
    fail_errno(path, "", errno);
}

/// Runs `transfer` again where a signal broke it off, and through the cache where the file system takes the
/// flag but not the transfer. Its result; Error(Exit::io).
template <class F>
std::size_t insist(int fd, const std::string& path, const char* where, F&& transfer) {
    for (;;) {
#ifdef O_DIRECT
        const int flags = ::fcntl(fd, F_GETFL);  // before: another transfer may clear O_DIRECT meanwhile
#else
        (void)fd;
#endif
        const ssize_t n = transfer();
        if (n >= 0) return static_cast<std::size_t>(n);
        const int error = errno;
        if (error == EINTR) continue;
#ifdef O_DIRECT
        if (error == EINVAL && (flags & O_DIRECT) && ::fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0) continue;
#endif
        fail_errno(path, where, error);
    }
}

void write_at(int fd, const std::string& path, std::string_view bytes, std::uint64_t at) {
    while (!bytes.empty()) {
        const std::size_t n = insist(fd, path, "writing", [&] {
            return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        });
        if (n == 0) fail_errno(path, "writing", EIO);
        bytes.remove_prefix(n);
        at += n;
    }
}

/// Asks for `size` bytes, a multiple of the alignment, of which `there` are there.
void read_at(int fd, const std::string& path, char* to, std::size_t size, std::size_t there,
             std::uint64_t at) {
    for (std::size_t done = 0; done < there;) {
        const std::size_t n = insist(fd, path, "reading", [&] {
            return ::pread(fd, to + done, size - done, static_cast<off_t>(at + done));
        });
        if (n == 0) fail(Exit::io, path, "", "a file that stays as it is", "a shorter one");
        done += n;
    }
}

}  // namespace

AppendFile::AppendFile(std::string path, std::uint64_t size)
    : path_(std::move(path)),
      // O_NOFOLLOW: shards have fixed names in a folder where anybody may have put a link.
      file_(open_past_cache(path_, O_RDWR | O_CREAT | O_NOFOLLOW)),
      block_at_(size / alignment * alignment) {
    check_opened(file_.fd, path_);
    if (int error = truncate_file(file_.fd, size)) fail_errno(path_, "", error);
    for (Arena& block : blocks_) block = allocate_arena(block_bytes, "a file's blocks");
    filled_ = static_cast<std::size_t>(size - block_at_);
    read_at(file_.fd, path_, bytes_of(blocks_[0]), alignment, filled_, block_at_);
}

AppendFile::~AppendFile() {
    if (writing_.valid()) writing_.wait();
    if (syncing_.valid()) syncing_.wait();
}

/// Throws what went wrong, now or before.
template <class F>
void AppendFile::attempt(F&& work) {
    if (failed_) std::rethrow_exception(failed_);
    try {
        if (writing_.valid()) writing_.get();
        work();
    } catch (...) {
        failed_ = std::current_exception();
        throw;
    }
}

void AppendFile::append(std::string_view bytes) {
    if (failed_) std::rethrow_exception(failed_);
    while (!bytes.empty()) {
        const std::size_t n = std::min(bytes.size(), block_bytes - filled_);
        std::memcpy(bytes_of(blocks_[filling_]) + filled_, bytes.data(), n);
        bytes.remove_prefix(n);
        filled_ += n;
        flushed_ = false;
        if (filled_ == block_bytes) write_block();
    }
}

void AppendFile::write_block() {
    attempt([&] {
        const std::string_view block(bytes_of(blocks_[filling_]), block_bytes);
        writing_ = aside([this, block, at = block_at_] { write_at(file_.fd, path_, block, at); });
    });
    filling_ ^= 1;
    filled_ = 0;
    flushed_ = true;
    block_at_ += block_bytes;
}

void AppendFile::replace_head(std::string_view bytes) {
    attempt([&] {
        char* head = bytes_of(blocks_[block_at_ == 0 ? filling_ : filling_ ^ 1]);
        if (block_at_ > 0) read_at(file_.fd, path_, head, alignment, alignment, 0);
        std::memcpy(head, bytes.data(), bytes.size());
        flushed_ = flushed_ && block_at_ > 0;
        if (block_at_ > 0) write_at(file_.fd, path_, {head, alignment}, 0);
    });
}

void AppendFile::flush() {
    attempt([&] {
        if (flushed_) return;
        // Whole aligned pieces alone can be written; what that adds is cut off again.
        const std::size_t padded = (filled_ + alignment - 1) / alignment * alignment;
        write_at(file_.fd, path_, {bytes_of(blocks_[filling_]), padded}, block_at_);
        if (int error = truncate_file(file_.fd, size())) fail_errno(path_, "", error);
        flushed_ = true;
    });
}

std::shared_future<void> AppendFile::sync() {
    flush();
    attempt([&] {
        if (syncing_.valid()) syncing_.get();
        syncing_ = aside([this] {
                       if (int error = sync_file(file_.fd)) fail_errno(path_, "", error);
                   }).share();
    });
    return syncing_;
}

void read_stream(const std::string& path, const std::function<void(std::string_view)>& f) {
    const Descriptor file(open_past_cache(path, O_RDONLY));
    check_opened(file.fd, path);
    struct stat status {};
    if (::fstat(file.fd, &status) != 0) fail_errno(path, "", errno);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    auto bytes_at = [&](std::uint64_t at) {
        return static_cast<std::size_t>(std::min<std::uint64_t>(size - at, block_bytes));
    };
    struct Block {
        Arena memory = allocate_arena(block_bytes, "a file's blocks");
        std::future<void> read;
    } blocks[2];  // last, as a reading that is under way is waited for first
    auto start = [&](std::uint64_t at) {
        if (at >= size) return;
        Block& block = blocks[at / block_bytes % std::size(blocks)];
        block.read =
            aside([&, at] { read_at(file.fd, path, bytes_of(block.memory), block_bytes, bytes_at(at), at); });
    };
    start(0);
    for (std::uint64_t at = 0; at < size; at += block_bytes) {
        start(at + block_bytes);
        Block& block = blocks[at / block_bytes % std::size(blocks)];
        block.read.get();
        f({bytes_of(block.memory), bytes_at(at)});
    }
}

}  // namespace linnet
