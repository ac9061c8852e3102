#include "chat/messages.h"

#include "base/fields.h"

namespace linnet {
namespace {

constexpr std::size_t largest_file = 1 << 20;  // what parse_json() takes

}  // namespace

std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& path) {
    nlohmann::json list = parse_json(json, path);
    if (list.is_object() && list.contains("messages")) {
        nlohmann::json inner = list["messages"];
        list = std::move(inner);
    }
    return messages_of(list, path);
}

std::vector<ChatMessage> load_messages(const std::string& path) {
    return parse_messages(read_input(path, largest_file), input_name(path));
}

void save_messages(const std::string& path, const std::vector<ChatMessage>& messages, Existing existing) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages)
        list.push_back({{"role", message.role}, {"content", message.content}});
    write_file(path, list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
               existing);
}

}  // namespace linnet
