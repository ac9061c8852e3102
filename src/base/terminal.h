// What a person sees: is there a terminal, numbers in human units, one live line of progress.
#pragma once
#include <concepts>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace linnet {

bool stdout_is_terminal();
bool stderr_is_terminal();
/// Colours are wanted on stderr: a terminal, not TERM=dumb, and NO_COLOR unset or empty (no-color.org).
bool stderr_colours();
bool stdout_colours();
/// A line can be drawn over on stderr: a terminal, not TERM=dumb.
bool stderr_redraws();
/// Columns of the terminal there; 80 where unknown.
int stderr_width();
int stdout_width();

/// Text that may hold anything, safe to show: control characters (C0, DEL, C1) and bytes that are no UTF-8
/// become \xNN. With `lines`, line feeds and tabs stay.
std::string printable(std::string_view text, bool lines = false);

/// `text` folded at its spaces into lines of at most `width` characters, each of one column (a longer word
/// keeps a line of its own), every line but the first after `indent` spaces. `used`: columns of the first
/// line that are taken already. Line feeds in the text stay.
std::string folded(std::string_view text, int width, int indent = 0, int used = 0);

/// --quiet: notes and progress are not shown; errors are.
void set_quiet(bool quiet);
bool quiet();

/// One line on stderr (a live line is cleared first and drawn again), made printable, folded at spaces on a
/// terminal, in a faint colour where `faint` and there are colours. Nothing where quiet.
void note(std::string_view line, bool faint = false);
/// The same where quiet, too: what was asked for.
void tell(std::string_view line, bool faint = false);

std::string human_bytes(double bytes);           // "512 B", "1.2 GB" (powers of 1000)
std::string human_seconds(double seconds);       // "0.8s", "3m 20s", "2h 05m", "3d 04h"
std::string human_count(double count);           // "950", "12.3k", "1.24M"
std::string two_digits(double value);            // "3.4", "0.00012", "1.2e+03": of a rate, a time, a share
std::string grouped(std::integral auto count) {  // "950", "50 257"
    std::string digits = std::to_string(count);
    for (std::size_t at = digits.size(); at > (digits[0] == '-' ? 4U : 3U);) digits.insert(at -= 3, 1, ' ');
    return digits;
}

/// One line of progress on stderr that overwrites itself: redrawn at most 10 times per second on a terminal,
/// and elsewhere (a log file) printed as a line of its own at most every `log_seconds` (0: never). Nothing
/// where quiet. One at a time.
class StatusLine {
  public:
    explicit StatusLine(double log_seconds = 30);
    ~StatusLine();  // leaves the last text standing, on a line of its own
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;

    void show(std::string_view text);
    /// Wipes the line from the terminal, for good (the destructor then leaves nothing).
    void clear();

  private:
    friend void tell(std::string_view line, bool faint);
    void draw() const;
    std::string text_;
    bool drawn_ = false, pending_ = false;
    double log_seconds_;
    Clock::time_point last_;
};

}  // namespace linnet
