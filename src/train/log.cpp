#include "train/log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/system.h"
#include "base/terminal.h"

namespace linnet {

RunLog::RunLog(std::string path, std::uint64_t keep, bool echo)
    : path_(std::move(path)), file_(open_file(path_, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666)), echo_(echo) {
    if (file_.fd < 0 && errno == ELOOP) fail(Exit::io, path_, "", "a regular file", "a symbolic link");
    if (file_.fd < 0) fail_errno(path_, "", errno);
    off_t size = ::lseek(file_.fd, 0, SEEK_END);
    bytes_ = std::min(keep, static_cast<std::uint64_t>(std::max<off_t>(size, 0)));
    if (bytes_ < keep)
        bytes_ = MappedFile(path_).text().rfind('\n') + 1;  // cut short: its last line may be, too
    if (int error = truncate_file(file_.fd, bytes_)) fail_errno(path_, "", error);
    if (bytes_ > 0) run_ = read_logged_run(MappedFile(path_).text());
    if (::lseek(file_.fd, static_cast<off_t>(bytes_), SEEK_SET) < 0) fail_errno(path_, "", errno);
}

void RunLog::write(const nlohmann::ordered_json& record) {
    const std::string line = json_line(record);
    if (int error = write_all(file_.fd, line.data(), line.size())) fail_errno(path_, "", error);
    bytes_ += line.size();
    add_line(run_, line);  // what the file says, also where the record had no UTF-8
    if (!echo_) return;
    // A run goes on where its output cannot be written.
    try {
        write_stdout(line);
        flush_stdout();
    } catch (const BrokenPipe&) {
        echo_ = false;
        note("stdout is closed: the run goes on without it; " + path_ + " has every line");
    } catch (const Error& error) {
        echo_ = false;
        note(std::string(error.what()) + ": the run goes on without it; " + path_ + " has every line");
    }
}

double with_digits(double value, int digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return std::strtod(text, nullptr);
}

}  // namespace linnet
