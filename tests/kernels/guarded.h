// Memory whose ends are guarded by the processor, for what must not read beyond.
#pragma once
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace linnet::test {

/// Bytes between two pages that nobody may read: at the beginning of what lies between, or at its end.
class Guarded {
  public:
    Guarded(const std::vector<std::byte>& bytes, bool at_end) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t room = (bytes.size() + page - 1) / page * page;
        size_ = room + 2 * page;
        void* all = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(all != MAP_FAILED);
        all_ = static_cast<std::byte*>(all);
        REQUIRE(mprotect(all_ + page, room, PROT_READ | PROT_WRITE) == 0);
        data_ = all_ + page + (at_end ? room - bytes.size() : 0);
        std::copy(bytes.begin(), bytes.end(), data_);
    }
    Guarded(const Guarded&) = delete;
    ~Guarded() { munmap(all_, size_); }
    const std::byte* data() const { return data_; }

  private:
    std::size_t size_ = 0;
    std::byte *all_ = nullptr, *data_ = nullptr;
};

}  // namespace linnet::test
