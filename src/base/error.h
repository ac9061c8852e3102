// Errors at the border: one exception type, one line, documented exit codes.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace linnet {

/// Exit codes of the program (README.md lists them for users).
enum class Exit : int {
    ok = 0,
    bug = 1,            // a bug of linnet
    usage = 2,          // the command line; what it would write is there already
    input = 3,          // a file's content, a config, a text
    io = 4,             // the operating system: unreadable, no space, no memory
    diverged = 5,       // training diverged, or a resume was refused
    hung_up = 129,      // SIGHUP, after a graceful save
    interrupted = 130,  // SIGINT, after a graceful save
    terminated = 143,   // SIGTERM, after a graceful save
};

/// What is wrong, for the user. Besides it only Stopped (signals.h), BrokenPipe (file.h) and std::bad_alloc
/// leave a command; all are caught once, in run_program.
class Error : public std::runtime_error {
  public:
    Error(Exit exit, const std::string& line) : std::runtime_error(line), exit_(exit) {}
    Exit exit() const { return exit_; }

  private:
    Exit exit_;
};

/// The line `FILE: WHERE: expected X, got Y (hint)`; empty parts are left out, places and values cut at 200
/// bytes, control characters (files may hold any bytes) shown as \xNN.
std::string error_line(std::string_view file, std::string_view where, std::string_view expected,
                       std::string_view got, std::string_view hint = {});

/// Throws Error with that line.
[[noreturn]] void fail(Exit exit, std::string_view file, std::string_view where, std::string_view expected,
                       std::string_view got, std::string_view hint = {});

/// The same with Exit::input, the commonest.
[[noreturn]] void fail_input(std::string_view file, std::string_view where, std::string_view expected,
                             std::string_view got, std::string_view hint = {});

/// Throws Error(Exit::io) with `FILE: WHERE: strerror(errno_value)`.
[[noreturn]] void fail_errno(std::string_view file, std::string_view where, int errno_value);

/// A name out of a file, for an error: in quotes, cut after `limit` bytes.
std::string quoted(std::string_view name, std::size_t limit = 60);
// Overloads: for these argument-dependent lookup would find std::quoted, a closer match but for them.
inline std::string quoted(const std::string& name, std::size_t limit = 60) {
    return quoted(std::string_view(name), limit);
}
inline std::string quoted(const char* name, std::size_t limit = 60) {
    return quoted(std::string_view(name), limit);
}

}  // namespace linnet
