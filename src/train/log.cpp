#include "train/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace linnet {

RunLog::RunLog(std::string path, std::uint64_t keep, bool echo) : path_(std::move(path)), echo_(echo) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) fail_errno(path_, "", errno);
    off_t size = ::lseek(file_, 0, SEEK_END);
    bytes_ = std::min(keep, static_cast<std::uint64_t>(std::max<off_t>(size, 0)));
    if (::ftruncate(file_, static_cast<off_t>(bytes_)) != 0 ||
        ::lseek(file_, static_cast<off_t>(bytes_), SEEK_SET) < 0)
        fail_errno(path_, "", errno);
}

RunLog::~RunLog() {
    ::close(file_);
}

void RunLog::write(const nlohmann::ordered_json& record) {
    std::string line = record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    for (std::size_t done = 0; done < line.size();) {
        ssize_t n = ::write(file_, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno(path_, "", errno);
        done += static_cast<std::size_t>(n);
    }
    bytes_ += line.size();
    if (echo_) {
        write_stdout(line);
        flush_stdout();
    }
}

}  // namespace linnet
