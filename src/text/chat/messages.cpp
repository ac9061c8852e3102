#include "text/chat/messages.h"

#include "base/error.h"

namespace linnet {

std::string text_member(const nlohmann::json& object, const char* key, const std::string& path,
                        const std::string& where) {
    if (!object.contains(key)) fail_input(path, where + key, "a string", "nothing");
    if (!object[key].is_string()) fail_input(path, where + key, "a string", object[key].type_name());
    return object[key];
}

std::vector<ChatMessage> messages_of(const nlohmann::json& list, const std::string& path,
                                     const std::string& before_it) {
    if (!list.is_array()) fail_input(path, before_it, "a list of messages", list.type_name());
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list.size(); i++) {
        const std::string where = before_it + "[" + std::to_string(i) + "]";
        if (!list[i].is_object())
            fail_input(path, where, "an object with role and content", list[i].type_name());
        ChatMessage message{text_member(list[i], "role", path, where + "."),
                            text_member(list[i], "content", path, where + ".")};
        const std::string_view before = messages.empty() ? "" : std::string_view(messages.back().role);
        const std::string_view expected = before == "user" ? "assistant"
                                          : before.empty() ? "system or user"
                                                           : "user";
        const bool fits = message.role == expected ||
                          (before.empty() && (message.role == "system" || message.role == "user"));
        if (!fits) fail_input(path, where + ".role", expected, linnet::quoted(message.role));
        messages.push_back(std::move(message));
    }
    return messages;
}

}  // namespace linnet
