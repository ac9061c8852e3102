#include "data/byte_source.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/system.h"

namespace linnet {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 18;

/// The bytes as they lie on disk.
class RawSource : public ByteSource {
  public:
    explicit RawSource(const std::string& path) : path_(input_name(path)) {
        if (path == "-") {
            claim_stdin();
            return;
        }
        OpenFile opened = open_regular(path, "pipe into stdin and name it -");
        file_ = std::move(opened.file);
        fd_ = file_.fd;
        size_ = opened.size;
        regular_ = true;
    }

    std::size_t read(char* out, std::size_t size) override {
        if (!regular_) wait_for_input(fd_);
        const ssize_t n = uninterrupted([&] { return ::read(fd_, out, size); });
        if (n < 0) fail_errno(path_, "reading", errno);
        done_ += static_cast<std::uint64_t>(n);
        if (regular_ && (done_ > size_ || (n == 0 && size > 0 && done_ < size_)))
            fail(Exit::io, path_, "", std::to_string(size_) + " bytes",
                 done_ > size_ ? "more" : std::to_string(done_), "the file changed while it was read");
        return static_cast<std::size_t>(n);
    }
    std::uint64_t bytes_read() const override { return done_; }
    std::uint64_t bytes_total() const override { return size_; }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    Descriptor file_;
    int fd_ = STDIN_FILENO;
    bool regular_ = false;
    std::uint64_t size_ = 0, done_ = 0;
};

/// A raw source whose first bytes were looked at.
struct Input {
    std::unique_ptr<RawSource> raw;
    std::string buffer;
    std::size_t used = 0, filled = 0;

    explicit Input(const std::string& path) : raw(std::make_unique<RawSource>(path)) {
        // Of many small files most of the time would go into zeros; a size of 0: unknown.
        const std::uint64_t size = raw->bytes_total();
        buffer.resize(size == 0 ? chunk
                                : static_cast<std::size_t>(std::clamp<std::uint64_t>(size, 64, chunk)));
    }

    /// Reads until `n` bytes are there or the file ends (only before the first are used).
    void peek(std::size_t n) {
        while (filled < n) {
            std::size_t got = raw->read(buffer.data() + filled, buffer.size() - filled);
            if (got == 0) return;
            filled += got;
        }
    }
    /// Some unused bytes; false at the end.
    bool fill() {
        if (used < filled) return true;
        used = 0;
        filled = raw->read(buffer.data(), buffer.size());
        return filled > 0;
    }
    std::uint64_t position() const { return raw->bytes_read() - (filled - used); }
    [[noreturn]] void refuse(std::string_view expected, std::string_view got,
                             std::string_view hint = {}) const {
        fail_input(raw->path(), "byte " + std::to_string(position()), expected, got, hint);
    }
};

class PlainSource : public ByteSource {
  public:
    explicit PlainSource(Input input) : in_(std::move(input)) {}
    std::size_t read(char* out, std::size_t size) override {
        if (in_.used == in_.filled) return in_.raw->read(out, size);
        std::size_t n = std::min(size, in_.filled - in_.used);
        std::memcpy(out, in_.buffer.data() + in_.used, n);
        in_.used += n;
        return n;
    }
    std::uint64_t bytes_read() const override { return in_.position(); }
    std::uint64_t bytes_total() const override { return in_.raw->bytes_total(); }

  private:
    Input in_;
};

class GzipSource : public ByteSource {
  public:
    explicit GzipSource(Input input) : in_(std::move(input)) {
        if (inflateInit2(&z_, 15 + 16) != Z_OK) throw std::bad_alloc();
    }
    ~GzipSource() override { inflateEnd(&z_); }
    std::size_t read(char* out, std::size_t size) override {
        z_.next_out = reinterpret_cast<Bytef*>(out);
        z_.avail_out = static_cast<uInt>(std::min(size, chunk * 64));
        const uInt wanted = z_.avail_out;
        while (z_.avail_out == wanted) {
            if (!in_.fill()) {
                if (!between_) in_.refuse("more gzip data", "the end of the file", "truncated");
                return 0;
            }
            if (between_ && in_.buffer[in_.used] != '\x1F')
                in_.refuse("the end of the gzip data", "something else");
            between_ = false;
            z_.next_in = reinterpret_cast<Bytef*>(in_.buffer.data() + in_.used);
            z_.avail_in = static_cast<uInt>(in_.filled - in_.used);
            int code = inflate(&z_, Z_NO_FLUSH);
            in_.used = in_.filled - z_.avail_in;
            if (code == Z_STREAM_END) {
                between_ = true;
                inflateReset(&z_);  // keeps next_out
            } else if (code != Z_OK && code != Z_BUF_ERROR) {
                if (code == Z_MEM_ERROR) throw std::bad_alloc();
                in_.refuse("gzip data", z_.msg ? z_.msg : "damage", "corrupt");
            }
        }
        return wanted - z_.avail_out;
    }
    std::uint64_t bytes_read() const override { return in_.position(); }
    std::uint64_t bytes_total() const override { return in_.raw->bytes_total(); }

  private:
    Input in_;
    z_stream z_{};
    bool between_ = false;  // two members
};

class ZstdSource : public ByteSource {
  public:
    explicit ZstdSource(Input input) : in_(std::move(input)), z_(ZSTD_createDStream()) {
        if (!z_) throw std::bad_alloc();
    }
    ~ZstdSource() override { ZSTD_freeDStream(z_); }
    std::size_t read(char* out, std::size_t size) override {
        ZSTD_outBuffer to{out, size, 0};
        while (to.pos == 0) {
            bool more = in_.fill();
            if (!more && between_) return 0;
            ZSTD_inBuffer from{in_.buffer.data() + in_.used, in_.filled - in_.used, 0};
            std::size_t code = ZSTD_decompressStream(z_, &to, &from);
            in_.used += from.pos;
            if (ZSTD_isError(code)) refuse(code);
            between_ = code == 0;
            // Without input the decoder may still hand out what it holds; when it has none left, the frame is
            // cut off.
            if (!more && to.pos == 0 && !between_)
                in_.refuse("more Zstandard data", "the end of the file", "truncated");
        }
        return to.pos;
    }
    std::uint64_t bytes_read() const override { return in_.position(); }
    std::uint64_t bytes_total() const override { return in_.raw->bytes_total(); }

  private:
    [[noreturn]] void refuse(std::size_t code) const {
        std::string_view name = ZSTD_getErrorName(code);
        if (name == "Unknown frame descriptor")  // of a second frame: open_source has seen the first
            in_.refuse("the end of the Zstandard data", "something else");
        if (name == "Frame requires too much memory for decoding")
            in_.refuse("a window of at most 128 MiB", "a larger one", "recompress without --ultra or --long");
        in_.refuse("Zstandard data", name, "corrupt");
    }
    Input in_;
    ZSTD_DStream* z_;
    bool between_ = false;  // two frames
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::string& path) {
    Input input(path);
    input.peek(4);
    std::string_view head(input.buffer.data(), std::min<std::size_t>(input.filled, 4));
    if (head.starts_with("\x1F\x8B")) return std::make_unique<GzipSource>(std::move(input));
    bool skippable = head.size() == 4 && (head[0] & 0xF0) == 0x50 && head.substr(1) == "\x2A\x4D\x18";
    if (head == "\x28\xB5\x2F\xFD" || skippable) return std::make_unique<ZstdSource>(std::move(input));
    for (const PackedEnding& packed : packed_endings)
        if (path.ends_with(packed.ending))
            input.refuse(std::string(packed.data) + " (the name ends in " + std::string(packed.ending) + ")",
                         head.empty() ? "an empty file" : "something else");
    return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace linnet
