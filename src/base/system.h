// The system's calls on files, made again where a signal broke them off (EINTR).
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace linnet {

/// The result of `call`, which answers -1 and sets errno; repeated while that is EINTR.
template <class Call>
auto uninterrupted(Call&& call) {
    for (;;) {
        const auto result = call();
        if (result != -1 || errno != EINTR) return result;
    }
}

/// open() with O_CLOEXEC. -1 and errno.
inline int open_file(const std::string& path, int flags, mode_t mode = 0) {
    return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

/// Cuts or lengthens the file. 0, or errno.
inline int truncate_file(int fd, std::size_t size) {
    return uninterrupted([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) == 0 ? 0 : errno;
}

/// fsync(). 0, or errno; 0 also where the file system has nothing to flush for such a file.
inline int sync_file(int fd) {
    if (uninterrupted([&] { return ::fsync(fd); }) == 0) return 0;
    return errno == EINVAL || errno == EROFS || errno == ENOTSUP ? 0 : errno;
}

/// rename(). 0, or errno.
inline int rename_file(const std::string& from, const std::string& to) {
    return uninterrupted([&] { return ::rename(from.c_str(), to.c_str()); }) == 0 ? 0 : errno;
}

/// Writes everything, through interruptions, short writes and descriptors that do not block. 0, or errno; a
/// write that moves nothing is EIO.
int write_all(int fd, const char* data, std::size_t size);

}  // namespace linnet
