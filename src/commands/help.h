// What the program says of itself: the overview of bare `linnet`, and --help.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace linnet {

/// For `linnet` alone: what it is, two commands to try, and where to read on.
std::string overview_text();

/// For `linnet --help`: every command with its line.
std::string program_help(const CLI::App& root);

/// For `linnet NAME --help`: usage, arguments, options with their defaults, examples.
struct Command;
std::string command_help(const CLI::App& app, const Command& command);

}  // namespace linnet
