#include "chat/messages.h"

#include "base/fields.h"

namespace linnet {

std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& path) {
    const nlohmann::json list = parse_json(json, path);
    if (list.is_object() && list.contains("messages")) return messages_of(list["messages"], path, "messages");
    return messages_of(list, path);
}

std::vector<ChatMessage> load_messages(const std::string& path) {
    return parse_messages(read_input(path, largest_json), input_name(path));
}

void save_messages(const std::string& path, const std::vector<ChatMessage>& messages, Existing existing) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages)
        list.push_back({{"role", message.role}, {"content", message.content}});
    write_file(path, list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
               existing);
}

}  // namespace linnet
