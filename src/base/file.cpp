#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/mapped_ranges.h"
#include "base/signals.h"
#include "base/system.h"

namespace linnet {
namespace {

constexpr std::string_view uncommitted_prefix = ".linnet-";

constexpr std::size_t buffer_size = std::size_t{1} << 16;
/// Of a file being written. What one call writes to a multiple of it, Linux keeps in one large page, and so
/// maps later at once: the first token of 1.1B weights of q8_0 that were written just before comes after 0.2
/// s instead of 0.34.
constexpr std::size_t write_size = large_page;

const char* kind_of_file(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "a special file";
}

std::string parent_of(const std::string& path) {
    auto slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

/// Reads a descriptor to its end; nothing beyond `limit` bytes is kept.
std::string read_descriptor(int fd, const std::string& name, std::size_t size_hint, std::size_t limit) {
    std::string text;
    std::size_t used = 0;
    text.resize(std::min(size_hint, limit) + 1);  // one more, so that the end shows without growing
    while (true) {
        if (used == text.size()) text.resize(std::max(buffer_size, text.size() * 2));
        if (fd == STDIN_FILENO) wait_for_input(fd);
        ssize_t done = ::read(fd, text.data() + used, std::min(text.size() - used, std::size_t{1} << 30));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            pollfd ready{fd, POLLIN, 0};
            ::poll(&ready, 1, -1);
            continue;
        }
        if (done < 0) fail_errno(name, "", errno);
        if (done == 0) break;
        used += static_cast<std::size_t>(done);
        if (used > limit) fail_input(name, "", "at most " + std::to_string(limit) + " bytes", "more");
    }
    text.resize(used);
    return text;
}

/// Reads a byte of every page. Where `data` lie in a mapped file, pages that are not there yet would break
/// the system's copy off within write(), which then clears the rest and begins again.
void touch_pages(const void* data, std::size_t size) {
    constexpr std::size_t page = 4096;
    const auto* bytes = static_cast<const volatile char*>(data);
    for (std::size_t at = 0; at < size; at += page) (void)bytes[at];
}

std::string& stdout_buffer() {
    static std::string buffer;
    return buffer;
}

}  // namespace

std::string input_name(const std::string& path) {
    return path == "-" ? "stdin" : path;
}

std::string inputs_name(const std::string& first, std::size_t count) {
    return count > 1 ? first + " and " + std::to_string(count - 1) + " more" : first;
}

OpenFile open_regular(const std::string& path, std::string_view hint) {
    // O_NONBLOCK: a FIFO that nobody writes to must not make us wait.
    Descriptor file(open_file(path, O_RDONLY | O_NONBLOCK));
    struct stat status;
    if (file.fd < 0 || ::fstat(file.fd, &status) != 0) fail_errno(path, "", errno);
    if (!S_ISREG(status.st_mode)) fail_input(path, "", "a regular file", kind_of_file(status.st_mode), hint);
    return {std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
    const OpenFile opened = open_regular(path);
    size_ = static_cast<std::size_t>(opened.size);
    if (size_ == 0) return;  // mmap refuses a length of zero
    void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, opened.file.fd, 0);
    if (data == MAP_FAILED) fail_errno(path, "", errno);
    // Read into large pages where the system has room for them, which they stay in for the next one to map
    // it: touching 1.1 GB takes 0.01 s instead of 0.3 (Linux 6.18, ext4, a virtual machine).
    prefer_large_pages(data, size_);
    data_ = static_cast<const std::byte*>(data);
    owned_ = true;
    remember_mapped(data_, size_, path_);
}

MappedFile MappedFile::view(std::span<const std::byte> bytes, std::string name) {
    MappedFile file;
    file.data_ = bytes.data();
    file.size_ = bytes.size();
    file.path_ = std::move(name);
    return file;
}

MappedFile::~MappedFile() {
    if (!owned_) return;
    forget_mapped(data_);
    ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      owned_(std::exchange(other.owned_, false)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
    std::swap(path_, other.path_);
    return *this;
}

std::string read_file(const std::string& path, std::size_t limit) {
    const OpenFile opened = open_regular(path);
    if (opened.size > limit)
        fail_input(path, "", "at most " + std::to_string(limit) + " bytes", std::to_string(opened.size));
    return read_descriptor(opened.file.fd, path, static_cast<std::size_t>(opened.size), limit);
}

void claim_stdin() {
    static std::atomic<bool> claimed{false};
    if (claimed.exchange(true)) fail(Exit::usage, "stdin", "", "one use of it", "two");
}

std::string read_stdin(std::size_t limit) {
    claim_stdin();
    return read_descriptor(STDIN_FILENO, input_name("-"), buffer_size, limit);
}

std::string read_input(const std::string& path, std::size_t limit) {
    return path == "-" ? read_stdin(limit) : read_file(path, limit);
}

std::string last_name(const std::string& path) {
    const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string kept_path(const std::string& path) {
    const std::filesystem::path whole = std::filesystem::absolute(path);
    return (std::find(whole.begin(), whole.end(), "..") == whole.end() ? whole.lexically_normal() : whole)
        .string();
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
}

bool is_real_folder(const std::string& path) {
    struct stat status;
    return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool name_taken(const std::string& path) {
    struct stat status;
    return ::lstat(path.c_str(), &status) == 0;
}

bool path_exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

void refuse_existing(const std::string& path, Existing existing) {
    struct stat status;
    if (existing == Existing::keep && ::lstat(path.c_str(), &status) == 0 &&
        (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)))
        fail(Exit::usage, path, "", "a new name", "a file that exists", "--overwrite replaces it");
}

void refuse_existing_in(const std::string& folder, Existing existing,
                        const std::function<bool(std::string_view name)>& to_write) {
    if (existing != Existing::keep) return;
    for (const std::string& name : names_in(folder))
        if (to_write(name))
            fail(Exit::usage, folder, "", "a folder without " + name, "one that has it",
                 "--overwrite replaces it");
}

AtomicFile::AtomicFile(std::string path, Existing existing)
    : existing_(existing), path_(std::move(path)), target_(path_) {
    refuse_existing(path_, existing_);
    struct stat status;
    mode_t mode = 0;
    auto look = existing_ == Existing::replace_name ? ::lstat : ::stat;
    if (path_.empty() || path_.back() == '/') fail(Exit::io, path_, "", "the name of a file", "a folder's");
    if (look(path_.c_str(), &status) == 0 && !S_ISLNK(status.st_mode)) {
        // Renaming onto a device or FIFO would replace it (as root, /dev/null).
        if (!S_ISREG(status.st_mode))
            fail(Exit::io, path_, "", "a regular file", kind_of_file(status.st_mode));
        mode = status.st_mode & 07777;
        char* real = existing_ == Existing::replace_name ? nullptr : ::realpath(path_.c_str(), nullptr);
        if (real) {
            target_ = real;
            std::free(real);
        }
    }
    buffer_.reserve(write_size);  // first: where memory lacks, no file is left
    static std::atomic<unsigned> serial{0};
    do {
        temporary_ = parent_of(target_) + "/" + std::string(uncommitted_prefix) + std::to_string(::getpid()) +
                     "-" + std::to_string(serial++) + ".part";
        fd_ = open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL, 0666);
    } while (fd_ < 0 && errno == EEXIST);  // left by a killed process that had our number
    if (fd_ < 0) fail_errno(path_, "", errno);
    if (mode) (void)!::fchmod(fd_, mode);
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::flush() {
    int error = write_all(fd_, buffer_.data(), buffer_.size());
    buffer_.clear();
    if (error) fail_errno(path_, "", error);
}

void AtomicFile::write(const void* data, std::size_t size) {
    position_ += size;
    const auto* from = static_cast<const char*>(data);
    // Up to a multiple of the buffer's size: the system copies to whole pages much faster than across them.
    const std::size_t head = std::min(size, write_size - buffer_.size());
    buffer_.append(from, head);
    if (buffer_.size() < write_size) return;
    flush();
    const std::size_t rest = (size - head) % write_size, whole = size - head - rest;
    touch_pages(from + head, whole);
    if (int error = write_all(fd_, from + head, whole)) fail_errno(path_, "", error);
    buffer_.assign(from + head + whole, rest);
}

/// 0, or errno: EEXIST where a file that is to be kept has come by that name since the constructor looked.
int AtomicFile::rename_into_place() {
    const char *from = temporary_.c_str(), *to = target_.c_str();
    if (existing_ != Existing::keep) return rename_file(temporary_, target_);
#ifdef RENAME_NOREPLACE
    if (uninterrupted([&] { return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE); }) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
    // Where the system or the file system has no such call: a second name never replaces a first.
    if (uninterrupted([&] { return ::link(from, to); }) == 0) return ::unlink(from) == 0 ? 0 : errno;
    if (errno == EEXIST) return EEXIST;
    struct stat status;
    if (::lstat(to, &status) == 0) return EEXIST;
    return rename_file(temporary_, target_);
}

void AtomicFile::finish() {
    flush();
    if (int error = sync_file(fd_)) fail_errno(path_, "", error);
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_errno(path_, "", errno);
}

void AtomicFile::commit() {
    if (fd_ >= 0) finish();
    if (int error = rename_into_place()) {
        if (error == EEXIST) refuse_existing(path_, existing_);
        fail_errno(path_, "", error);
    }
    temporary_.clear();
    has_name_ = true;
    sync_folder(parent_of(target_));
}

void remove_uncommitted(const std::string& folder) {
    for (const std::string& name : names_in(folder))
        if (name.starts_with(uncommitted_prefix)) remove_all(folder + "/" + name);
}

void write_file(const std::string& path, std::string_view text, Existing existing) {
    AtomicFile file(path, existing);
    file.write(text);
    file.commit();
}

void make_folders(const std::string& path) {
    std::error_code error;
    do std::filesystem::create_directories(path, error);
    while (error == std::errc::interrupted);
    if (error) fail_errno(path, "", error.value());
    if (!is_folder(path)) fail_errno(path, "", ENOTDIR);
}

std::vector<std::string> names_in(const std::string& folder) {
    // Not std::filesystem's, which ends the program where memory runs out while it opens a folder.
    const auto close = [](DIR* entries) { ::closedir(entries); };
    std::unique_ptr<DIR, decltype(close)> entries(nullptr, close);
    do entries.reset(::opendir(folder.c_str()));
    while (!entries && errno == EINTR);
    if (!entries && errno == ENOENT) return {};
    if (!entries) fail_errno(folder, "", errno);
    std::vector<std::string> names;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(entries.get());
        if (!entry) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno) fail_errno(folder, "", errno);
    std::sort(names.begin(), names.end());
    return names;
}

bool exchange_names(const std::string& a, const std::string& b) {
#ifdef RENAME_EXCHANGE
    if (uninterrupted(
            [&] { return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); }) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS) fail_errno(b, "", errno);
#else
    (void)a, (void)b;
#endif
    return false;
}

bool remove_all(const std::string& path) {
    const auto absent = [](int result) { return result == 0 || errno == ENOENT; };
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT;
    if (!S_ISDIR(status.st_mode)) return absent(uninterrupted([&] { return ::unlink(path.c_str()); }));
    // Not std::filesystem's, which begins again from the start where a signal breaks off one of its calls.
    bool all = true;
    try {
        for (const std::string& name : names_in(path)) all = remove_all(path + "/" + name) && all;
    } catch (const Error&) {
        return false;
    }
    return absent(uninterrupted([&] { return ::rmdir(path.c_str()); })) && all;
}

void sync_folder(const std::string& path) {
    Descriptor folder(open_file(path, O_RDONLY | O_DIRECTORY));
    if (folder.fd < 0) fail_errno(path, "", errno);
    // Some file systems cannot flush a folder; the rename itself has happened.
    if (int error = sync_file(folder.fd)) fail_errno(path, "", error);
}

void write_stdout(std::string_view text) {
    stdout_buffer() += text;
    if (stdout_buffer().size() >= buffer_size) flush_stdout();
}

void flush_stdout() {
    std::string& buffer = stdout_buffer();
    if (buffer.empty()) return;
    int error = write_all(STDOUT_FILENO, buffer.data(), buffer.size());
    buffer.clear();
    if (error == EPIPE) throw BrokenPipe();
    if (error) fail_errno("stdout", "", error);
}

void prepare_standard_streams() {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    report_lost_pages();
    for (int fd = 0; fd < 3; fd++) {
        if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        // This takes the lowest free number: fd. The wrong way round on purpose for stdout: writing still
        // answers EBADF, as a closed one should.
        uninterrupted([&] { return ::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY); });
    }
}

}  // namespace linnet
