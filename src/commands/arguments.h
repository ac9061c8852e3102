// The options and arguments of a command as data, read off the CLI11 tree: one source for help, manual pages
// and completions.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace linnet {

/// What a shell offers in place of a value.
enum class Offer { nothing, files, folders, words };

struct Argument {
    std::vector<std::string> names;  // "-m", "--model"; of a positional argument its one name, "FILE"
    bool positional = false, repeats = false, required = false;
    bool everywhere = false;  // an option of every command
    std::string value;        // "N", "text|ids|jsonl"; empty: a flag
    std::string help;
    std::string fallback;  // the default as help shows it; may be empty
    Offer offer = Offer::nothing;
    std::vector<std::string> words;  // for Offer::words; one that ends with '=' wants more
};

/// Those of `app` in the order of declaration, without hidden ones (group ""). Throws std::logic_error for an
/// option whose value name is in no row of the table of kinds: a new name needs its row.
std::vector<Argument> arguments_of(const CLI::App& app);

/// "-m, --model MODEL", "FILE..."; aligned, a long name stands in the column of long names.
std::string spelled(const Argument& argument);

/// Its first long name.
std::string long_name(const Argument& argument);

/// The default in brackets after the help, or "(required)".
std::string explained(const Argument& argument);

/// What follows "linnet NAME" on a usage line: required options, [OPTIONS], arguments.
std::string usage_of(const std::vector<Argument>& arguments);

/// The node of a command of the table ("bench train") below the root; "" is the root itself.
const CLI::App& app_of(const CLI::App& root, std::string_view name);

/// The root of the tree that `app` is in.
const CLI::App& root_of(const CLI::App& app);

}  // namespace linnet
