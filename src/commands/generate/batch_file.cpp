#include "commands/generate/batch_file.h"

#include <algorithm>

#include "base/error.h"
#include "commands/text_input.h"
#include "data/utf8_check.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

/// The keys of a line as `fields` name them.
nlohmann::json with_known_names(const nlohmann::json& object, const std::vector<Field>& fields,
                                const std::string& place) {
    std::vector<std::string> known;
    for (const Field& field : fields) known.push_back(field.key);
    nlohmann::json renamed = nlohmann::json::object();
    for (const auto& [key, value] : object.items()) {
        const std::string name = text_key(key);
        require_text_key(name, known, place, key);
        if (renamed.contains(name)) fail_input(place, key, "each setting once", "a second one");
        renamed[name] = value;
    }
    return renamed;
}

BatchLine read_line(std::string_view text, const std::string& file, std::size_t number,
                    const TextSettings& defaults) {
    const std::string place = file + ": line " + std::to_string(number);
    const nlohmann::json object = parse_json(text, file, number);
    BatchLine line{number, {}, defaults};
    std::vector<Field> fields = text_fields(line.settings);
    fields.push_back({"prompt", &line.prompt, ""});
    const std::vector<TextList> lists = text_lists(line.settings);
    std::vector<Repeating<std::string>> texts(lists.size());
    for (std::size_t i = 0; i < lists.size(); i++) fields.push_back({lists[i].key, &texts[i], ""});
    if (!object.is_object()) fail_input(place, "", "a JSON object", object.type_name());
    const nlohmann::json settings = with_known_names(object, fields, place);
    if (!settings.contains("prompt")) fail_input(place, "prompt", "a string", "none");
    apply_json(fields, settings, place);
    // A line's own one takes the place of the command's, of either kind.
    if (settings.contains("grammar") != settings.contains("json-schema"))
        (settings.contains("grammar") ? line.settings.json_schema : line.settings.grammar).clear();
    for (std::size_t i = 0; i < lists.size(); i++) {
        if (!settings.contains(lists[i].key)) continue;
        *lists[i].target = texts[i].list();
        for (const std::string& text : *lists[i].target)
            if (text.empty()) fail_input(place, lists[i].key, "a value", "an empty text");
    }
    return line;
}

}  // namespace

std::vector<BatchLine> read_batch_file(const std::string& path, const TextSettings& defaults) {
    const TextInput input(path);
    std::vector<BatchLine> lines;
    std::string_view rest = input.text();
    for (std::size_t number = 1; !rest.empty(); number++) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        if (const std::size_t fault = valid_utf8_prefix(line); fault < line.size())
            fail_input(input.name(), "line " + std::to_string(number), "UTF-8", utf8_fault_name(line, fault));
        lines.push_back(read_line(line, input.name(), number, defaults));
    }
    if (lines.empty()) fail_input(input.name(), "", "a JSON object with a prompt on each line", "no line");
    return lines;
}

}  // namespace linnet
