#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/system.h"
#include "base/utf8.h"

namespace linnet {
namespace {

bool be_quiet = false;
StatusLine* live = nullptr;

bool takes_escapes(int fd) {
    const char* term = std::getenv("TERM");
    return ::isatty(fd) && !(term && std::string_view(term) == "dumb");
}

bool colours_on(int fd) {
    const char* no_color = std::getenv("NO_COLOR");
    return !(no_color && *no_color) && takes_escapes(fd);
}

int width_of(int fd) {
    winsize size = {};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char* columns = std::getenv("COLUMNS");
    int width = columns ? std::atoi(columns) : 0;
    return width > 0 ? width : 80;
}

/// To stderr. Errors are ignored: there is nowhere else to report them.
void put(std::string_view text) {
    (void)write_all(STDERR_FILENO, text.data(), text.size());
}

/// The first `columns` characters; a character is taken to be one column wide.
std::string_view cut(std::string_view text, int columns) {
    for (std::size_t i = 0; i < text.size(); i++)
        if (!is_tail(text[i]) && columns-- == 0) return text.substr(0, i);
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

bool stderr_redraws() {
    return takes_escapes(STDERR_FILENO);
}

int stderr_width() {
    return width_of(STDERR_FILENO);
}
int stdout_width() {
    return width_of(STDOUT_FILENO);
}

std::string printable(std::string_view text, bool lines) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        const Char c = decode_utf8(p, end);
        const bool control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
        const bool stays = lines && (c.code == '\n' || c.code == '\t');
        if (c.valid && (!control || stays)) {
            out.append(p, c.size);
        } else {
            out += "\\x";
            out += digits[c.code >> 4];
            out += digits[c.code & 15];
        }
        p += c.size;
    }
    return out;
}

std::string folded(std::string_view text, int width, int indent, int used) {
    std::string out;
    int at = used;
    bool fresh = true;  // no word on this line yet
    auto next_line = [&] {
        out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
        at = indent;
        fresh = true;
    };
    while (!text.empty()) {
        // A word, with the spaces before it that a line may have at its beginning or between words.
        const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
        const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
        std::string_view word = text.substr(0, end);
        if (at + character_count(word) > width && !(fresh && at <= indent)) {
            next_line();
            word.remove_prefix(begin);
        }
        out += word;
        at += character_count(word);
        fresh = fresh && word.empty();
        text.remove_prefix(end);
        if (!text.empty() && text.front() == '\n') {
            next_line();
            text.remove_prefix(1);
        }
    }
    return out;
}

void set_quiet(bool quiet) {
    be_quiet = quiet;
}
bool quiet() {
    return be_quiet;
}

void tell(std::string_view line, bool faint) {
    bool redraw = live && live->drawn_;
    std::string text = printable(line, true);
    if (stderr_is_terminal()) text = folded(text, stderr_width());
    if (faint && stderr_colours()) text = "\x1b[2m" + text + "\x1b[0m";
    put((redraw ? "\r\x1b[K" : "") + text + "\n");
    if (redraw) live->draw();
}

void note(std::string_view line, bool faint) {
    if (!be_quiet) tell(line, faint);
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

std::string two_digits(double value) {
    return formatted("%.2g", value, "");
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
    if (stderr_redraws()) log_seconds_ = 0.1;
    last_ = Clock::now() - std::chrono::hours(24);  // the first text shows at once
    live = this;
}

StatusLine::~StatusLine() {
    if (live == this) live = nullptr;
    if (be_quiet) return;
    if (stderr_redraws()) {
        if (pending_) draw();
        if (drawn_) put("\n");
    } else if (pending_ && log_seconds_ > 0) {
        put(text_ + "\n");
    }
}

void StatusLine::draw() const {
    put("\r" + std::string(cut(text_, stderr_width() - 1)) + "\x1b[K");
}

void StatusLine::show(std::string_view text) {
    if (be_quiet) return;
    text_ = text;
    pending_ = true;
    if (log_seconds_ <= 0 || seconds_since(last_) < log_seconds_) return;
    last_ = Clock::now();
    pending_ = false;
    if (stderr_redraws()) {
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
