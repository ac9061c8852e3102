// Files: mapped for reading, written whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace linnet {

/// A regular file mapped read-only. Directories, FIFOs and devices are refused (Exit::io for the operating
/// system's refusals, Exit::input for the wrong kind of file), and never waited for. An empty file is an
/// empty span. Movable; unmaps when destroyed.
class MappedFile {
  public:
    MappedFile() = default;
    explicit MappedFile(const std::string& path);
    /// Bytes that are in memory already and outlive the object (a file built into the program), under a name
    /// for messages.
    static MappedFile view(std::span<const std::byte> bytes, std::string name);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const std::byte> bytes() const { return {data_, size_}; }
    std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
    const std::string& path() const { return path_; }

  private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    bool owned_ = false;
    std::string path_;
};

/// What a path to be read is called in errors: "-" is stdin.
std::string input_name(const std::string& path);
/// What `count` inputs are called, by the first one's name: "X and 2 more".
std::string inputs_name(const std::string& first, std::size_t count);

struct OpenFile {
    Descriptor file;
    std::uint64_t size;
};
/// Opens a regular file for reading. Refuses what MappedFile does, with `hint` where it is the wrong kind of
/// file.
OpenFile open_regular(const std::string& path, std::string_view hint = {});

/// A regular file, whole, up to `limit` bytes (Exit::input beyond).
std::string read_file(const std::string& path, std::size_t limit = std::size_t{1} << 32);

/// Before standard input is read: Error(Exit::usage) the second time, as what was to be read then has been
/// taken for the first.
void claim_stdin();

/// Standard input to its end, up to `limit` bytes; a stop signal ends the wait (Stopped, base/signals.h).
/// It is claimed.
std::string read_stdin(std::size_t limit = std::size_t{1} << 32);

/// A file, or stdin where the path is "-".
std::string read_input(const std::string& path, std::size_t limit = std::size_t{1} << 32);

/// What becomes of a file that has the name of one to be written.
enum class Existing {
    keep,          // refused: it is the user's
    replace,       // and where the name is a symbolic link, what that leads to
    replace_name,  // never what a link leads to: for the fixed names in a folder that linnet writes
};

/// The last component of the path, made absolute first, with or without a slash behind it: "b" of "a/b/", the
/// current folder's name of ".".
std::string last_name(const std::string& path);

/// The path as a file may keep it: absolute. Where it has "..", which may stand behind a symbolic link, all
/// of it stays as it is.
std::string kept_path(const std::string& path);

/// Whether anything has that name, a link to nowhere too.
bool name_taken(const std::string& path);
/// Whether there is anything, or a link to something.
bool path_exists(const std::string& path);
/// Whether there is a folder, or a link to one.
bool is_folder(const std::string& path);
/// Whether the name is a folder's own, and not that of a link to one.
bool is_real_folder(const std::string& path);

/// Throws Error(Exit::usage) where a file, or a link to nowhere, has the name `path` and is to be kept.
void refuse_existing(const std::string& path, Existing existing);
/// The same of anything in `folder` whose name is one of those that are to be written into it.
void refuse_existing_in(const std::string& folder, Existing existing,
                        const std::function<bool(std::string_view name)>& to_write);

/// Writes `path` through a temporary file beside it: commit() flushes, fsyncs and renames; without commit()
/// the destructor removes what was written, so nothing half-written ever bears its final name. A symbolic
/// link is followed (but for replace_name), an existing file's permissions are kept, and anything but a
/// regular file is refused. Throws Error(Exit::io) naming `path`, also for a full disk and for a folder that
/// does not exist. With Existing::keep, the constructor and commit() refuse (refuse_existing) rather than
/// replace a file.
class AtomicFile {
  public:
    explicit AtomicFile(std::string path, Existing existing = Existing::replace);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(const void* data, std::size_t size);
    void write(std::string_view text) { write(text.data(), text.size()); }
    std::uint64_t position() const { return position_; }
    /// All of commit() that takes long or may find the disk full: of files that belong together, none has its
    /// name before all have come so far. Nothing is written afterwards.
    void finish();
    void commit();
    /// Whether the file has its name: commit() may fail behind that, where the folder cannot be flushed.
    bool has_name() const { return has_name_; }

  private:
    void flush();
    int rename_into_place();
    Existing existing_;
    std::string path_, target_, temporary_, buffer_;
    std::uint64_t position_ = 0;
    int fd_ = -1;
    bool has_name_ = false;
};

/// Removes what AtomicFile left in `folder` where a process was killed (kill -9) before its commit. Only for
/// a folder that no other process writes to.
void remove_uncommitted(const std::string& folder);

/// Writes `text` to `path` atomically.
void write_file(const std::string& path, std::string_view text, Existing existing = Existing::replace);

/// Makes the folder (and its parents) where it is missing.
void make_folders(const std::string& path);

/// The names in a folder, sorted; none where there is no such folder. Error(Exit::io).
std::vector<std::string> names_in(const std::string& folder);

/// Exchanges what two names of one file system stand for, so that at every instant both names stand for one
/// of the two. False, with nothing changed, where the system or the file system cannot. Error(Exit::io).
bool exchange_names(const std::string& a, const std::string& b);

/// Removes a file, or a folder with all that is in it. False where something of it is still there.
bool remove_all(const std::string& path);

/// Flushes a folder's entries to disk (after a rename in it).
void sync_folder(const std::string& path);

/// Thrown where nobody reads stdout any more (`| head`), which ends the program with Exit::ok.
class BrokenPipe {};
/// stdout with its errors seen: a full disk is Error(Exit::io) rather than silence. Text is held back until
/// flush_stdout() or until there are 64 KiB of it; run_program flushes at the end.
void write_stdout(std::string_view text);
void flush_stdout();

/// Called once, first thing in run_program: SIGPIPE and SIGXFSZ (a file beyond the limit of `ulimit -f`)
/// become error codes, SIGBUS a line (base/mapped_ranges.h), and descriptors 0 to 2 that the caller closed
/// are held, so that no file opened later takes their number and receives what was meant for the terminal.
void prepare_standard_streams();

}  // namespace linnet
