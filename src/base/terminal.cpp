#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace linnet {
namespace {

bool be_quiet = false;
StatusLine* live = nullptr;

bool colours_on(int fd) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    if (no_color && *no_color) return false;
    return ::isatty(fd) && !(term && std::string_view(term) == "dumb");
}

/// stderr is for people: where it is gone there is nobody to tell.
void put(std::string_view text) {
    while (!text.empty()) {
        ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
        if (done <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(done));
    }
}

/// The first `columns` characters; a character is taken to be one column wide.
std::string_view cut(std::string_view text, int columns) {
    for (std::size_t i = 0; i < text.size(); i++)
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && columns-- == 0) return text.substr(0, i);
    return text;
}

std::string formatted(const char* format, double value, const char* unit) {
    char text[48];
    std::snprintf(text, sizeof text, format, value);
    return std::string(text) + unit;
}

/// Three significant digits at most two decimals: 1.24, 12.3, 123.
const char* three_digits(double value) {
    return value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f";
}

}  // namespace

bool stdout_is_terminal() {
    return ::isatty(STDOUT_FILENO);
}
bool stderr_is_terminal() {
    return ::isatty(STDERR_FILENO);
}
bool stdout_colours() {
    return colours_on(STDOUT_FILENO);
}
bool stderr_colours() {
    return colours_on(STDERR_FILENO);
}

int terminal_width() {
    winsize size = {};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char* columns = std::getenv("COLUMNS");
    int width = columns ? std::atoi(columns) : 0;
    return width > 0 ? width : 80;
}

void set_quiet(bool quiet) {
    be_quiet = quiet;
}
bool quiet() {
    return be_quiet;
}

void note(std::string_view line) {
    if (be_quiet) return;
    bool redraw = live && live->drawn_;
    put((redraw ? "\r\x1b[K" : "") + std::string(line) + "\n");
    if (redraw) live->draw();
}

std::string human_bytes(double bytes) {
    static const char* const units[] = {" B", " kB", " MB", " GB", " TB", " PB"};
    int unit = 0;
    while (unit < 5 && bytes >= (unit == 0 ? 1000 : 999.5)) {
        bytes /= 1000;
        unit++;
    }
    return formatted(unit == 0 || bytes >= 99.95 ? "%.0f" : "%.1f", bytes, units[unit]);
}

std::string human_seconds(double seconds) {
    if (!(seconds >= 0) || seconds > 3.2e9) return "?";
    if (seconds < 9.95) return formatted("%.1f", seconds, "s");
    auto whole = static_cast<long long>(std::llround(seconds));
    char text[32];
    if (whole < 60) {
        std::snprintf(text, sizeof text, "%llds", whole);
    } else if (whole < 3600) {
        std::snprintf(text, sizeof text, "%lldm %02llds", whole / 60, whole % 60);
    } else if (whole < 86400) {
        std::snprintf(text, sizeof text, "%lldh %02lldm", whole / 3600, whole / 60 % 60);
    } else {
        std::snprintf(text, sizeof text, "%lldd %02lldh", whole / 86400, whole / 3600 % 24);
    }
    return text;
}

std::string grouped(std::uint64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ' ');
    return digits;
}

std::string human_count(double count) {
    static const char* const units[] = {"", "k", "M", "G", "T"};
    int unit = 0;
    while (unit < 4 && std::fabs(count) >= 999.5) {
        count /= 1000;
        unit++;
    }
    bool whole = unit == 0 && count == std::floor(count);
    return formatted(whole ? "%.0f" : three_digits(std::fabs(count)), count, units[unit]);
}

StatusLine::StatusLine(double log_seconds) : log_seconds_(log_seconds) {
    if (stderr_is_terminal()) log_seconds_ = 0.1;
    last_ = std::chrono::steady_clock::now() - std::chrono::hours(24);  // the first text shows at once
    live = this;
}

StatusLine::~StatusLine() {
    if (live == this) live = nullptr;
    if (be_quiet) return;
    if (stderr_is_terminal()) {
        if (pending_) draw();
        if (drawn_) put("\n");
    } else if (pending_ && log_seconds_ > 0) {
        put(text_ + "\n");
    }
}

void StatusLine::draw() const {
    put("\r" + std::string(cut(text_, terminal_width() - 1)) + "\x1b[K");
}

void StatusLine::show(std::string_view text) {
    if (be_quiet) return;
    text_ = text;
    pending_ = true;
    auto now = std::chrono::steady_clock::now();
    if (log_seconds_ <= 0 || std::chrono::duration<double>(now - last_).count() < log_seconds_) return;
    last_ = now;
    pending_ = false;
    if (stderr_is_terminal()) {
        draw();
        drawn_ = true;
    } else {
        put(text_ + "\n");
    }
}

void StatusLine::clear() {
    if (drawn_) put("\r\x1b[K");
    drawn_ = pending_ = false;
}

}  // namespace linnet
