// A file descriptor with an owner.
#pragma once
#include <unistd.h>

namespace linnet {

/// A descriptor that is closed when the scope ends.
struct Descriptor {
    int fd;
    explicit Descriptor(int fd) : fd(fd) {}
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace linnet
