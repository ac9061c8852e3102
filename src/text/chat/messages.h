// A conversation as the ecosystem writes it: a JSON list of {"role": …, "content": …}.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace linnet {

struct ChatMessage {
    std::string role;  // "system" (the first alone), "user", "assistant", in turns
    std::string content;

    bool operator==(const ChatMessage&) const = default;
};

/// An object's member that is a string. Error(Exit::input) naming `path` and the member, behind `where`.
std::string text_member(const nlohmann::json& object, const char* key, const std::string& path,
                        const std::string& where);

/// A list's messages. Error(Exit::input) naming `path` and the place, behind `where`, for anything but a
/// system message or none, and then user and assistant in turns.
std::vector<ChatMessage> messages_of(const nlohmann::json& list, const std::string& path,
                                     const std::string& where = {});

}  // namespace linnet
