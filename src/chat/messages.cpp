#include "chat/messages.h"

#include "base/error.h"
#include "base/fields.h"

namespace linnet {
namespace {

constexpr std::size_t largest_file = 1 << 20;  // what parse_json() takes

std::string text_of(const nlohmann::json& message, const char* key, const std::string& path,
                    const std::string& where) {
    if (!message.contains(key)) fail_input(path, where + "." + key, "a string", "nothing");
    if (!message[key].is_string()) fail_input(path, where + "." + key, "a string", message[key].type_name());
    return message[key];
}

}  // namespace

std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& path) {
    nlohmann::json list = parse_json(json, path);
    if (list.is_object() && list.contains("messages")) {
        nlohmann::json inner = list["messages"];
        list = std::move(inner);
    }
    if (!list.is_array()) fail_input(path, "", "a list of messages", list.type_name());
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list.size(); i++) {
        const std::string where = "[" + std::to_string(i) + "]";
        if (!list[i].is_object())
            fail_input(path, where, "an object with role and content", list[i].type_name());
        ChatMessage message{text_of(list[i], "role", path, where), text_of(list[i], "content", path, where)};
        const std::string before = messages.empty() ? "" : messages.back().role;
        const std::string expected = before == "user" ? "assistant"
                                     : before.empty() ? "system or user"
                                                      : "user";
        const bool fits = message.role == expected ||
                          (before.empty() && (message.role == "system" || message.role == "user"));
        if (!fits) fail_input(path, where + ".role", expected, linnet::quoted(message.role));
        messages.push_back(std::move(message));
    }
    return messages;
}

std::vector<ChatMessage> load_messages(const std::string& path) {
    return parse_messages(read_file(path, largest_file), path);
}

void save_messages(const std::string& path, const std::vector<ChatMessage>& messages, Existing existing) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages)
        list.push_back({{"role", message.role}, {"content", message.content}});
    write_file(path, list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
               existing);
}

}  // namespace linnet
