// The files of conversations (text/chat/messages.h has their form).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "text/chat/messages.h"

namespace linnet {

/// Reads a list, or an object with one under "messages". Error(Exit::input) as messages_of() has them,
/// and for text of more than 1 MiB or that is no UTF-8.
std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& path);
std::vector<ChatMessage> load_messages(const std::string& path);

/// Error(Exit::io), or (Exit::usage) for a file that is there and to be kept.
void save_messages(const std::string& path, const std::vector<ChatMessage>& messages, Existing existing);

}  // namespace linnet
