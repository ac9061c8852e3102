// A conversation as the ecosystem writes it: a JSON list of {"role": …, "content": …}.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace linnet {

struct ChatMessage {
    std::string role;  // "system" (the first alone), "user", "assistant", in turns
    std::string content;

    bool operator==(const ChatMessage&) const = default;
};

/// Reads a list, or an object with one under "messages". Error(Exit::input) naming the file and the place
/// for anything but a system message or none, and then user and assistant in turns; and for text of more
/// than 1 MiB or that is no UTF-8.
std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& path);
std::vector<ChatMessage> load_messages(const std::string& path);

/// Error(Exit::io), or (Exit::usage) for a file that is there and to be kept.
void save_messages(const std::string& path, const std::vector<ChatMessage>& messages, Existing existing);

}  // namespace linnet
