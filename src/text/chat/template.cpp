// The data files of chat templates, read and checked; and which of them a file's own template means.
#include "text/chat/template.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/split.h"
#include "text/chat/template_files.h"

namespace linnet {
namespace {

std::vector<std::string> list_of(const Repeating<std::string>& field, const std::string& path,
                                 const char* key) {
    std::vector<std::string> list;
    for (const std::string& text : field.list()) {
        if (text.empty() && field.is_list())
            fail_input(path, key, "strings that are not empty", "an empty one");
        if (!text.empty()) list.push_back(text);
    }
    return list;
}

}  // namespace

ChatTemplate parse_chat_template(std::string_view json, const std::string& path) {
    ChatTemplate form;
    Repeating<std::string> known_by, unless, ends;
    std::vector<Field> fields = {
        {"name", &form.name, ""},
        {"known_by", &known_by, ""},
        {"unless", &unless, ""},
        {"system.before", &form.system.before, ""},
        {"system.after", &form.system.after, ""},
        {"user.before", &form.user.before, ""},
        {"user.after", &form.user.after, ""},
        {"assistant.before", &form.assistant.before, ""},
        {"assistant.after", &form.assistant.after, ""},
        {"system_in_user", &form.system_in_user, ""},
        {"trim", &form.trim, ""},
        {"ends", &ends, ""},
        {"continues", &form.continues, ""},
    };
    const nlohmann::json object = parse_json(json, path);
    if (!object.is_object()) fail_input(path, "", "an object", object.type_name());
    for (const char* key : {"user", "assistant"})
        if (!object.contains(key))
            fail_input(path, key, "what stands before and after its messages", "nothing");
    apply_json(fields, object, path);
    form.known_by = list_of(known_by, path, "known_by");
    form.unless = list_of(unless, path, "unless");
    form.ends = list_of(ends, path, "ends");
    if (!form.continues && form.user.before.empty() && form.user.after.empty() &&
        form.assistant.before.empty())
        fail_input(path, "user", "text that tells roles apart", "none",
                   "\"continues\": true is for models without roles");
    return form;
}

std::span<const ChatTemplate> chat_templates() {
    static const std::vector<ChatTemplate> all = [] {
        std::vector<ChatTemplate> read;
        for (const EmbeddedFile& file : chat_template_files())
            read.push_back(parse_chat_template(file.text, std::string(file.path)));
        std::sort(read.begin(), read.end(),
                  [](const ChatTemplate& a, const ChatTemplate& b) { return a.name < b.name; });
        return read;
    }();
    return all;
}

ChatTemplate open_chat_template(const std::string& name_or_path, std::string_view option) {
    for (const ChatTemplate& each : chat_templates())
        if (each.name == name_or_path) return each;
    std::error_code ignored;
    if (std::filesystem::exists(name_or_path, ignored)) {
        ChatTemplate form = parse_chat_template(read_file(name_or_path, largest_json), name_or_path);
        if (form.name.empty()) form.name = std::filesystem::path(name_or_path).stem().string();
        return form;
    }
    const std::vector<std::string> names = names_of(chat_templates());
    fail_input("", option, "the name of a file, or one of " + joined(names), quoted(name_or_path),
               did_you_mean(name_or_path, names));
}

bool has_marks(std::string_view source, const ChatTemplate& form) {
    auto has = [&](const std::string& mark) { return source.find(mark) != std::string_view::npos; };
    return !form.known_by.empty() && std::all_of(form.known_by.begin(), form.known_by.end(), has) &&
           std::none_of(form.unless.begin(), form.unless.end(), has);
}

ChatTemplate recognise_chat_template(std::string_view source, std::span<const ChatTemplate> known,
                                     std::string_view file, std::string_view place) {
    if (std::optional<ChatTemplate> ours = template_in(source, file, place)) return *std::move(ours);
    std::vector<const ChatTemplate*> found;
    std::string marks;
    for (const ChatTemplate& each : known) {
        if (!has_marks(source, each)) continue;
        marks += (found.empty() ? "" : ", ") + each.name;
        found.push_back(&each);
    }
    if (found.size() == 1) return *found[0];
    fail_input(file, place, "a template that linnet knows", found.empty() ? "another" : "marks of " + marks,
               "--template NAME or FILE says which it is; names: " + joined(names_of(known)));
}

std::string place_in(std::string_view file, std::string_view place) {
    return std::string(file) + (place.empty() ? "" : ": ") + std::string(place);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view white = " \t\n\r\f\v";
    const std::size_t first = text.find_first_not_of(white);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white) + 1 - first);
}

std::string_view without_last_spaces(std::string_view text) {
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace linnet
