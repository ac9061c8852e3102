// Files that are written or read once, from one end to the other, past the system's page cache: they would
// push other files out of memory, and the copy into the cache costs the processor more than anything else
// about them (160 MB: 0.20 s through the cache, 0.04 s past it). Where the system offers no way past it, the
// cache is used.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/descriptor.h"

namespace linnet {

/// A file that grows at its end. Full blocks go to the disk beside the caller's work. After an error every
/// call throws that error; what goes wrong beside a sync(), its future and the next sync() throw.
class AppendFile {
  public:
    /// Goes on behind the first `size` bytes of `path`; what follows them is cut off. The file is made where
    /// it is missing and must not be shorter. Error(Exit::io).
    AppendFile(std::string path, std::uint64_t size);
    ~AppendFile();  // closes the file; what no sync() has followed may be lost
    AppendFile(const AppendFile&) = delete;

    void append(std::string_view bytes);
    /// Replaces the first bytes (at most 4096) of the file, which has them.
    void replace_head(std::string_view bytes);
    std::uint64_t size() const { return block_at_ + filled_; }
    /// When it returns, the file has all size() bytes and no more; they are on the disk when the future is
    /// ready.
    std::shared_future<void> sync();

  private:
    template <class F>
    void attempt(F&& work);
    void write_block();
    void flush();

    std::string path_;
    Descriptor file_;
    Arena blocks_[2];  // one is filled while the other is written
    int filling_ = 0;
    std::size_t filled_ = 0;
    std::uint64_t block_at_;  // where the block being filled begins in the file
    bool flushed_ = true;     // the file has what that block has
    std::future<void> writing_;
    std::shared_future<void> syncing_;
    std::exception_ptr failed_;
};

/// Calls `f` with a file's bytes, block by block; the next is read meanwhile. Error(Exit::io).
void read_stream(const std::string& path, const std::function<void(std::string_view)>& f);

}  // namespace linnet
