// What the program says of itself: the overview of bare `linnet`, and --help.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace linnet {

/// Columns that help may take.
int help_width();

/// For `linnet` alone: what it is, two commands to try, and where to read on.
std::string overview_text();

struct ExitCode {
    const char* code;  // "0", "129, 130, 143"
    const char* meaning;
};
/// The exit codes of base/error.h as people read them, here and in manual pages.
std::span<const ExitCode> exit_codes();

/// For `linnet --help`: every command with its line.
std::string program_help(const CLI::App& root);

/// For `linnet NAME --help`: usage, arguments, options with their defaults, examples.
struct Command;
std::string command_help(const CLI::App& app, const Command& command);

/// What `linnet help` has a page of that is no command.
inline constexpr const char* config_topic = "config";
/// For `linnet help config PATTERN`: every key of a CONFIG, or those that the one of `patterns` fits. A usage
/// error for one that fits none, and for several.
std::string config_help(std::span<const std::string> patterns);
/// The keys that it has.
std::vector<std::string> config_keys();

}  // namespace linnet
