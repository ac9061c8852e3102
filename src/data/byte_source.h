// A file's bytes in order, decompressed as they are read, in memory that does not grow with the file.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace linnet {

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    /// Up to `size` bytes into `out`; 0 at the end alone. Error(Exit::io) for the system's refusals,
    /// Error(Exit::input) for compressed data that is corrupt, ends too early, or is followed by something
    /// else.
    virtual std::size_t read(char* out, std::size_t size) = 0;
    /// Compressed or plain bytes read so far (for progress), of bytes_total() (0: unknown).
    virtual std::uint64_t bytes_read() const = 0;
    virtual std::uint64_t bytes_total() const = 0;
};

/// How the names of compressed files end, and what they hold.
struct PackedEnding {
    std::string_view ending, data;
};
inline constexpr PackedEnding packed_endings[] = {{".gz", "gzip data"}, {".zst", "Zstandard data"}};

/// The file's kind is told by its first bytes: gzip (members may follow each other), Zstandard (frames may),
/// or plain. "-" is stdin, where a stop signal ends the wait (Stopped, base/signals.h). A directory, a FIFO
/// or a device is refused, and a regular file whose size changes while it is read is an error: what was
/// tokenized would be neither the old text nor the new.
std::unique_ptr<ByteSource> open_source(const std::string& path);

}  // namespace linnet
