#include "base/folder_lock.h"

#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/system.h"
#include "base/terminal.h"

namespace linnet {
namespace {

constexpr const char* lock_name = ".linnet.lock";

/// The number that the file holds, or nothing yet: its owner writes it a moment after locking.
std::string holder(int fd) {
    char digits[24];
    for (int attempt = 0; attempt < 50; attempt++) {
        const ssize_t n = ::pread(fd, digits, sizeof digits, 0);
        const std::string_view text(digits, static_cast<std::size_t>(n > 0 ? n : 0));
        const std::size_t end = text.find_first_not_of("0123456789");
        if (end != 0 && end != std::string_view::npos) return std::string(text.substr(0, end));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return "";
}

/// The folders of `path` that are not there, outermost first.
std::vector<std::string> missing_folders(const std::string& path) {
    std::vector<std::string> missing;
    for (std::filesystem::path at(path); !at.empty() && !path_exists(at); at = at.parent_path())
        if (at.has_filename()) missing.insert(missing.begin(), at.string());
    return missing;
}

void remove_empty(const std::vector<std::string>& folders) {
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) ::rmdir(folder->c_str());
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(folder), made_(missing_folders(folder)) {
    make_folders(folder);
    directory_ = Descriptor(open_file(folder, O_RDONLY | O_DIRECTORY));
    if (directory_.fd < 0) fail_errno(folder, "", errno);
    try {
        acquire();
    } catch (...) {
        remove_empty(made_);
        throw;
    }
}

FolderLock::~FolderLock() {
    if (file_.fd >= 0) ::unlinkat(directory_.fd, lock_name, 0);
    remove_empty(made_);
}

std::vector<std::string> FolderLock::made() const {
    std::vector<std::string> names = {folder_ + "/" + lock_name};
    names.insert(names.end(), made_.rbegin(), made_.rend());
    return names;
}

void FolderLock::acquire() {
    for (;;) {
        // O_NOFOLLOW, O_NONBLOCK: a link or a FIFO by that name must lead nowhere.
        Descriptor file(uninterrupted([&] {
            return ::openat(directory_.fd, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                            0666);
        }));
        if (file.fd < 0) fail_errno(folder_, lock_name, errno);
        struct stat held = {}, named = {};
        if (::fstat(file.fd, &held) != 0 || !S_ISREG(held.st_mode) || held.st_nlink > 1)
            fail(Exit::io, folder_, lock_name, "a lock made by linnet", "something else");
        const int status = uninterrupted([&] { return ::flock(file.fd, LOCK_EX | LOCK_NB); });
        if (status != 0 && errno == EWOULDBLOCK) {
            const std::string pid = holder(file.fd);
            fail(Exit::io, folder_, "", "a folder that nothing else writes into",
                 "one that " + (pid.empty() ? "another process" : "process " + pid) + " writes into");
        }
        if (status != 0) note(folder_ + ": no locks on this file system: do not write into it twice at once");
        // The process that held it may have removed the name since we opened it.
        if (::fstatat(directory_.fd, lock_name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
            named.st_ino != held.st_ino || named.st_dev != held.st_dev)
            continue;
        const std::string line = std::to_string(::getpid()) + "\n";
        // The number is for people; the lock holds without it.
        (void)truncate_file(file.fd, 0);
        (void)!::pwrite(file.fd, line.data(), line.size(), 0);
        file_ = std::move(file);
        return;
    }
}

}  // namespace linnet
