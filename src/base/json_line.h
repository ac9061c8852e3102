// JSON on one line.
#pragma once
#include <string>

namespace linnet {

/// Bytes that are no UTF-8 become U+FFFD: texts come from anywhere, and the library would throw. A template,
/// so that this header reads none of the library's.
template <class Json>
std::string dumped(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The same JSON with DEL and C1 escaped, which JSON may hold as they are, and which steer a terminal.
std::string printable_json(std::string json);

/// A record as a line of a file or of stdout.
template <class Json>
std::string json_line(const Json& record) {
    return printable_json(dumped(record)) + "\n";
}

}  // namespace linnet
