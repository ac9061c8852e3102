#include "commands/pseudo_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace linnet::test {

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment) {
    const std::string program =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "linnet").string();
    terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0)
        throw std::runtime_error("no pseudo-terminal");
    const std::string name = ::ptsname(terminal_);
    program_ = ::fork();
    if (program_ < 0) throw std::runtime_error("no process");
    if (program_ == 0) {
        ::setsid();
        const int end = ::open(name.c_str(), O_RDWR);
        ::ioctl(end, TIOCSCTTY, 0);
        const winsize size = {24, 80, 0, 0};
        ::ioctl(end, TIOCSWINSZ, &size);
        for (int fd : {0, 1, 2}) ::dup2(end, fd);
        ::setenv("TERM", "xterm", 1);
        ::setenv("NO_COLOR", "1", 1);
        for (const std::string& setting : environment)
            ::setenv(setting.substr(0, setting.find('=')).c_str(),
                     setting.substr(setting.find('=') + 1).c_str(), 1);
        std::vector<char*> argv = {const_cast<char*>("linnet")};
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        ::execv(program.c_str(), argv.data());
        ::_exit(127);
    }
}

PseudoTerminal::~PseudoTerminal() {
    if (program_ > 0) {
        ::kill(program_, SIGKILL);
        ::waitpid(program_, nullptr, 0);
    }
    ::close(terminal_);
}

void PseudoTerminal::type(const std::string& keys) {
    if (::write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
        throw std::runtime_error("cannot type");
}

bool PseudoTerminal::read_more() {
    pollfd ready = {terminal_, POLLIN, 0};
    if (::poll(&ready, 1, 20'000) <= 0) return false;
    char bytes[4096];
    const ssize_t n = ::read(terminal_, bytes, sizeof bytes);
    ended_ = n <= 0;  // EIO: nobody has the other end any more
    if (ended_) return false;
    printed_.append(bytes, static_cast<std::size_t>(n));
    return true;
}

bool PseudoTerminal::shows(const std::string& text) {
    std::size_t at;
    while ((at = printed_.find(text, seen_)) == std::string::npos)
        if (!read_more()) return false;
    seen_ = at + text.size();
    return true;
}

void PseudoTerminal::signal(int number) {
    ::kill(program_, number);
}

void PseudoTerminal::resize(int columns) {
    const winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
    if (::ioctl(terminal_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("cannot resize");
}

int PseudoTerminal::exit() {
    while (read_more()) {
    }
    if (!ended_) ::kill(program_, SIGKILL);  // it waits for something
    int status = 0;
    ::waitpid(program_, &status, 0);
    program_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace linnet::test
