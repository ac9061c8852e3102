#include "base/error.h"

#include <cstring>

#include "base/terminal.h"
#include "base/utf8.h"

namespace linnet {
namespace {

// Bytes of a part of the line; what is longer is cut. A place and a value may be a file's own, of any length;
// an expectation or a hint may list names.
constexpr std::size_t longest_value = 200, longest_list = 800, longest_path = 4096;

/// `text`, or as many whole characters of it as `limit` bytes hold, and "…".
std::string shortened(std::string_view text, std::size_t limit) {
    if (text.size() <= limit) return std::string(text);
    return std::string(text.substr(0, character_start(text, limit))) + "…";
}

void append_part(std::string& line, std::string_view separator, std::string_view text) {
    if (text.empty()) return;
    if (!line.empty()) line += separator;
    line += text;
}

}  // namespace

std::string error_line(std::string_view file, std::string_view where, std::string_view expected,
                       std::string_view got, std::string_view hint) {
    std::string difference;
    if (!expected.empty()) difference = "expected " + shortened(expected, longest_list);
    if (!got.empty()) append_part(difference, ", ", "got " + shortened(got, longest_value));
    std::string line = shortened(file, longest_path);
    append_part(line, ": ", shortened(where, longest_value));
    append_part(line, ": ", difference);
    if (!hint.empty()) append_part(line, " ", "(" + shortened(hint, longest_list) + ")");
    return printable(line);
}

void fail(Exit exit, std::string_view file, std::string_view where, std::string_view expected,
          std::string_view got, std::string_view hint) {
    throw Error(exit, error_line(file, where, expected, got, hint));
}

void fail_input(std::string_view file, std::string_view where, std::string_view expected,
                std::string_view got, std::string_view hint) {
    fail(Exit::input, file, where, expected, got, hint);
}

void fail_errno(std::string_view file, std::string_view where, int errno_value) {
    std::string line(file);
    append_part(line, ": ", where);
    append_part(line, ": ", std::strerror(errno_value));
    throw Error(Exit::io, printable(line));
}

std::string quoted(std::string_view name, std::size_t limit) {
    return "'" + shortened(name, limit) + "'";
}

}  // namespace linnet
