// What a person sees: is there a terminal, numbers in human units, one live line of progress.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

bool stdout_is_terminal();
bool stderr_is_terminal();
/// Colours are wanted on stderr: a terminal, not TERM=dumb, and NO_COLOR unset or empty (no-color.org).
bool stderr_colours();
bool stdout_colours();
/// Columns of the terminal on stderr; 80 where unknown.
int terminal_width();

/// --quiet: notes and progress are not shown; errors are.
void set_quiet(bool quiet);
bool quiet();

/// One line on stderr (a live line is cleared first and drawn again); nothing where quiet.
void note(std::string_view line);

std::string human_bytes(double bytes);      // "512 B", "1.2 GB" (powers of 1000)
std::string human_seconds(double seconds);  // "0.8s", "3m 20s", "2h 05m", "3d 04h"
std::string grouped(std::uint64_t count);   // "950", "50 257"
std::string human_count(double count);      // "950", "12.3k", "1.24M"

/// One line of progress on stderr that overwrites itself: redrawn at most 10 times a second on a terminal,
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
    friend void note(std::string_view line);
    void draw() const;
    std::string text_;
    bool drawn_ = false, pending_ = false;
    double log_seconds_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace linnet
