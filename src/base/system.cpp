#include "base/system.h"

#include <poll.h>

#include <algorithm>

namespace linnet {

int write_all(int fd, const char* data, std::size_t size) {
    while (size > 0) {
        // Linux moves at most 0x7ffff000 bytes per call, macOS refuses more than INT_MAX.
        const ssize_t done = ::write(fd, data, std::min(size, std::size_t{1} << 30));
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            pollfd ready{fd, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (done < 0 && errno != EINTR) {
            return errno;
        } else if (done == 0) {
            return EIO;
        } else if (done > 0) {
            data += done;
            size -= static_cast<std::size_t>(done);
        }
    }
    return 0;
}

}  // namespace linnet
