// Options as all commands declare them: checked when parsed, with one-line messages.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"

namespace linnet {

/// The number that the whole text is, a sign "+" before it or not; nothing where it is none.
template <class T>
std::optional<T> parse_whole(const std::string& text) {
    T value{};
    const char *begin = text.data(), *end = begin + text.size();
    if (begin != end && *begin == '+') begin++;
    auto [stop, status] = std::from_chars(begin, end, value);
    if (status != std::errc() || stop != end || begin == end) return std::nullopt;
    return value;
}

/// Takes "PATH=NUMBER" apart; nothing, and `path` stays, where a file has the whole name, or where neither
/// the text behind "=" is a number nor the text before it a file. A number not in (above, most] is a usage
/// error of `option`, which takes `expected`.
std::optional<double> cut_number(std::string& path, const char* option, const char* expected, double above,
                                 double most);

/// A whole number in [min, max]; anything else is a usage error that says so. `names` as CLI11 takes them
/// ("-n,--tokens").
CLI::Option* add_integer(CLI::App& app, const std::string& names, std::int64_t& value, std::int64_t min,
                         std::int64_t max, const std::string& help);

/// A finite number in [min, max].
CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, double min, double max,
                      const std::string& help);

/// A text; where `may_be_empty` is false an empty one (an unset shell variable) is a usage error.
CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                      bool may_be_empty = false);

/// A text that may be given several times, one value each time.
CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       const std::string& help);

/// One of some names; another is a usage error that lists them. Help and completions show them as the value's
/// name, "a|b|c".
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        std::vector<std::string> choices, const std::string& help);

/// A file that must be named and not empty, as an argument.
CLI::Option* add_file(CLI::App& app, const std::string& name, std::string& path, const std::string& help);

/// What a command is to write, as an option or an argument; "-" is refused, as files do not go to stdout.
CLI::Option* add_output(CLI::App& app, const std::string& names, std::string& path, const std::string& help);
/// That refusal, a usage error of `option`.
void refuse_stdout(const std::string& option, const std::string& path);

/// --overwrite, for every command that writes what it was told to.
CLI::Option* add_overwrite(CLI::App& app, bool& overwrite,
                           const std::string& help = "replace OUT if it exists");
inline Existing existing(bool overwrite) {
    return overwrite ? Existing::replace : Existing::keep;
}

/// -m MODEL; empty means the built-in model, and the folder of a run its best model (train/run_model.h).
CLI::Option* add_model(CLI::App& app, std::string& path);

/// Other names of an option, as older versions or other programs spell it: understood, not in help.
void add_hidden_names(CLI::App& app, const std::string& names, CLI::Option* option);

/// Our option for what other programs call `name` (both without dashes): "tokens" for "max-tokens"; empty
/// where none is known; "max_tokens" is the same. Such a name is not understood, as what it means may differ,
/// but answered with a hint.
std::string_view option_for(std::string_view name);

/// -f, --file: texts that may also be named as arguments.
CLI::Option* add_files(CLI::App& app, const std::string& name, std::vector<std::string>& files,
                       const std::string& help);

/// --ctx N, of the model's own length where it is left out (0); llama.cpp's -c is understood.
CLI::Option* add_context(CLI::App& app, std::int64_t& context, std::int64_t min, const std::string& help);

/// --kv-type, of the state that a model keeps (model/engine/states.h).
CLI::Option* add_state_type(CLI::App& app, DType& type);

/// -t, --tokenizer; empty means the built-in model's. (-m, --model are understood, too: a model has one.)
CLI::Option* add_tokenizer(CLI::App& app, std::string& path);

struct Unit {
    std::string_view name;
    double scale;
};
/// A number with one of the units behind it, times its scale; nothing where it is something else, or not
/// finite.
std::optional<double> number_of_unit(std::string_view text, std::span<const Unit> units);

/// Bytes from "512M" or "4G": K, M and G are powers of 1000, for memory as for files, so that a bound is
/// never above what either counting means; a usage error naming `option` otherwise, or below `least` bytes.
std::uint64_t parse_size(const std::string& option, const std::string& text, double least = 1);

/// "1 token", "2 tokens".
std::string counted(std::uint64_t count, const std::string& what);

/// Seconds from "90", "90s", "10m", "1.5h", "2d", "1:30" (minutes:seconds), "1:30:00"; a usage error naming
/// `option` otherwise.
double parse_duration(const std::string& option, const std::string& text);

/// Throws the usage error `OPTION: expected X, got 'Y' (hint)`.
[[noreturn]] void usage_error(const std::string& option, const std::string& expected, const std::string& got,
                              const std::string& hint = {});

/// A usage error where a value is not UTF-8: `expected` says what it is for.
void require_utf8(const std::string& option, const std::string& expected, const std::string& value);

/// After parsing: a usage error where `option` is given and none of `others`, without which it means nothing.
void require_beside(const CLI::App& app, const std::string& option, const std::vector<std::string>& others);

}  // namespace linnet
