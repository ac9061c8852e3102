// A file descriptor with an owner.
#pragma once
#include <unistd.h>

#include <utility>

namespace linnet {

/// A descriptor that is closed with its owner; -1: none.
struct Descriptor {
    int fd = -1;
    Descriptor() = default;
    explicit Descriptor(int fd) : fd(fd) {}
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
    Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd, other.fd);
        return *this;
    }
};

}  // namespace linnet
