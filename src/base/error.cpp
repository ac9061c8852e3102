#include "base/error.h"

#include <cstring>

namespace linnet {
namespace {

/// One line, whatever the text: control bytes (also DEL) become \xNN. Bytes from 0x80 on pass: names may be
/// UTF-8.
std::string one_line(std::string_view text) {
    static const char digits[] = "0123456789abcdef";
    std::string line;
    for (unsigned char c : text) {
        if (c < 0x20 || c == 0x7F) {
            line += "\\x";
            line += digits[c >> 4];
            line += digits[c & 15];
        } else {
            line += static_cast<char>(c);
        }
    }
    return line;
}

void append_part(std::string& line, std::string_view separator, std::string_view text) {
    if (text.empty()) return;
    if (!line.empty()) line += separator;
    line += text;
}

}  // namespace

void fail(Exit exit, std::string_view file, std::string_view where, std::string_view expected,
          std::string_view got, std::string_view hint) {
    std::string difference;
    if (!expected.empty()) difference = "expected " + std::string(expected);
    if (!got.empty()) append_part(difference, ", ", "got " + std::string(got));
    std::string line(file);
    append_part(line, ": ", where);
    append_part(line, ": ", difference);
    if (!hint.empty()) append_part(line, " ", "(" + std::string(hint) + ")");
    throw Error(exit, one_line(line));
}

void fail_input(std::string_view file, std::string_view where, std::string_view expected,
                std::string_view got, std::string_view hint) {
    fail(Exit::input, file, where, expected, got, hint);
}

void fail_errno(std::string_view file, std::string_view where, int errno_value) {
    std::string line(file);
    append_part(line, ": ", where);
    append_part(line, ": ", std::strerror(errno_value));
    throw Error(Exit::io, one_line(line));
}

std::string quoted(std::string_view name, std::size_t limit) {
    if (name.size() <= limit) return "'" + std::string(name) + "'";
    while (limit > 0 && (static_cast<unsigned char>(name[limit]) & 0xC0) == 0x80)
        limit--;  // whole characters
    return "'" + std::string(name.substr(0, limit)) + "…'";
}

}  // namespace linnet
