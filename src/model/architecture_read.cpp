// The data files of architectures, read and checked.
#include <algorithm>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "model/architecture_files.h"
#include "model/architecture_rows.h"
#include "model/architectures.h"

namespace linnet {
namespace {

using nlohmann::json;

/// The layers that a row is for: a list, or those that another row marks or does not.
void read_layers(ArchitectureKey& key, const DataRow& row, const std::string& path,
                 const std::string& where) {
    const json layers = row.value("layers");
    if (layers.is_null()) return;
    if (layers.is_string())
        key.marked = layers;
    else
        key.layers = row.truths("layers");
    const bool some = key.marked == "marked" || key.marked == "unmarked" ||
                      std::find(key.layers.begin(), key.layers.end(), true) != key.layers.end();
    if (!some || key.per_layer || key.field.empty())
        fail_input(path, where + ".layers", "a field, and marked, unmarked or true for a layer",
                   layers.dump());
}

ArchitectureKey read_key(const json& object, const std::string& path, const std::string& where,
                         FieldCheck& check) {
    DataRow row(object, path, where,
                {"key", "field", "required", "per_layer", "missing", "values", "equals", "ignore", "inverse",
                 "zero_means", "layers", "unit", "largest", "zero_where", "positive", "marks", "beside"});
    ArchitectureKey key;
    read_common(key, row);
    read_layers(key, row, path, where);
    key.marks = row.text("marks", false);
    key.positive = row.flag("positive");
    key.zero_means = row.text("zero_means", false);
    key.unit = row.text("unit", false);
    key.zero_where = row.value("zero_where");
    int kinds = !key.field.empty() + row.has("equals") + key.ignored + !key.marks.empty();
    if (kinds != 1)
        fail_input(path, where, "one of field, equals, ignore and marks", std::to_string(kinds) + " of them");
    if (!key.marks.empty()) {
        check.known(where + ".marks", key.marks);
        row.truths("missing");
        return key;
    }
    if (key.field.empty() && (row.has("missing") || row.has("values") || row.has("unit") || key.per_layer ||
                              key.inverse || !key.zero_means.empty()))
        fail_input(path, where, "a field beside missing, values, per_layer, inverse, zero_means and unit",
                   "none");
    if (row.has("unit") && (row.has("missing") || row.has("values") || key.per_layer || !key.layers.empty()))
        fail_input(path, where, "unit without missing, values, per_layer and layers", "another");
    if (!key.unit.empty()) check.known(where + ".unit", key.unit);
    if (!key.zero_means.empty()) check.known(where + ".zero_means", key.zero_means);
    if (row.has("zero_where") &&
        (!key.zero_where.is_object() || key.zero_where.size() != 1 || !key.per_layer))
        fail_input(path, where + ".zero_where", "a field and its value, beside per_layer",
                   key.zero_where.dump());
    if (row.has("zero_where"))
        for (const auto& [field, value] : key.zero_where.items())
            check.value(where + ".zero_where", field, value);
    if (key.ignored && key.required) fail_input(path, where, "ignore or required", "both");
    if (key.required && row.has("missing")) fail_input(path, where, "missing or required", "both");
    if (key.per_layer && row.has("values")) fail_input(path, where, "values or per_layer", "both");
    if (key.field.empty()) return key;
    check.known(where + ".field", key.field);
    if (row.has("missing")) check.value(where + ".missing", key.field, key.missing);
    if (!row.has("values")) return key;
    check_values(key, path, where, check);
    key.beside = row.value("beside");
    for (const auto& [word, fields] : key.beside.items()) {
        if (!key.values.contains(word) || !fields.is_object())
            fail_input(path, where + ".beside", "words of values, and objects", key.beside.dump());
        for (const auto& [field, value] : fields.items())
            check.value(where + ".beside." + word, field, value);
    }
    return key;
}

void add_tensor(Architecture& a, const json& object, const std::string& path, const std::string& where) {
    DataRow row(object, path, where, {"tensor", "holds", "ignore", "beside", "written"});
    ArchitectureTensor tensor{row.text("tensor", true), {}, row.text("beside", false)};
    if (row.has("written")) tensor.written = row.flag("written");
    if (row.has("holds") == !row.text("ignore", false).empty())
        fail_input(path, where, "either holds or ignore", row.has("holds") ? "both" : "neither");
    auto has_layer = [](const std::string& name) { return name.find("{layer}") != std::string::npos; };
    row.each("holds", [&](const json& part, const std::string& place) {
        if (!part.is_string()) fail_input(path, place, "a parameter's name", part.dump());
        std::string name = part;
        if (has_layer(name) != has_layer(tensor.tensor))
            fail_input(path, place, "{layer} in both names or in neither", name);
        auto here = std::pair(a.tensors.size(), static_cast<int>(tensor.holds.size()));
        if (!a.parts.emplace(name, here).second) fail_input(path, place, "each parameter once", name);
        tensor.holds.push_back(name);
    });
    if (row.has("holds") && tensor.holds.empty())
        fail_input(path, where + ".holds", "parameters' names", "an empty list");
    if (tensor.holds.empty()) a.ignored_tensors.insert(tensor.tensor);
    for (const ArchitectureTensor& other : a.tensors)
        if (other.tensor == tensor.tensor)
            fail_input(path, where + ".tensor", "each tensor once", tensor.tensor);
    a.tensors.push_back(std::move(tensor));
}

void read_gguf(Architecture& a, const json& object, const std::string& path, FieldCheck& check) {
    DataRow gguf(object, path, "gguf", {"config", "keys", "tensors", "presence"});
    a.config_key = gguf.text("config", false);
    std::set<std::string> seen;
    gguf.each("keys", [&](const json& row, const std::string& where) {
        a.keys.push_back(read_key(row, path, where, check));
        if (!seen.insert(a.keys.back().key).second)
            fail_input(path, where + ".key", "each key once", a.keys.back().key);
    });
    bool marks = false, marked = false;
    for (const ArchitectureKey& key : a.keys) marks |= !key.marks.empty(), marked |= !key.marked.empty();
    if (marks != marked)
        fail_input(path, "gguf.keys", "a row that marks layers and rows for them", marks ? "one" : "others");
    if (a.config_key.empty() == a.keys.empty())
        fail_input(path, "gguf", "either keys or config", a.keys.empty() ? "neither" : "both");
    gguf.each("tensors", [&](const json& row, const std::string& where) { add_tensor(a, row, path, where); });
    gguf.each("presence", [&](const json& object, const std::string& where) {
        DataRow row(object, path, where, {"tensor", "field", "present", "absent", "each", "written"});
        TensorPresence presence{row.text("tensor", true), row.text("field", true), row.value("present"),
                                row.value("absent")};
        presence.each = row.flag("each");
        if (row.has("written")) presence.written = row.flag("written");
        if (!presence.each || row.has("present"))
            check.value(where + ".present", presence.field, presence.present);
        check.value(where + ".absent", presence.field, presence.absent);
        a.presence.push_back(std::move(presence));
    });
}

/// `rows` with those of `own` in the place of rows that have the same `names`, and the others behind.
json merged_rows(json rows, const json& own, std::initializer_list<const char*> names) {
    auto same = [&](const json& a, const json& b) {
        for (const char* name : names)
            if (!a.is_object() || !b.is_object() || !a.contains(name) || !b.contains(name) ||
                a[name] != b[name])
                return false;
        return true;
    };
    for (const json& row : own) {
        auto place = std::find_if(rows.begin(), rows.end(), [&](const json& r) { return same(r, row); });
        place == rows.end() ? rows.push_back(row) : void(*place = row);
    }
    return rows;
}

/// The file with all that it does not say itself taken from the one that "like" names.
json inherited(const json& file, const std::string& path, std::span<const EmbeddedFile> bases, int depth) {
    if (!file.is_object() || !file.contains("like")) return file;
    if (!file["like"].is_string()) fail_input(path, "like", "a string", file["like"].dump());
    std::string name = file["like"];
    const EmbeddedFile* base = nullptr;
    for (const EmbeddedFile& one : bases)
        if (one.path.ends_with("/" + name + ".json")) base = &one;
    if (!base || depth > 4) fail_input(path, "like", "the name of another file", name);
    std::string base_path(base->path);
    json whole = inherited(parse_json(base->text, base_path), base_path, bases, depth + 1);
    for (const auto& [key, value] : file.items()) {
        if (key == "constants" && value.is_object() && whole.contains(key)) {
            whole[key].update(value);
        } else if (key == "gguf" && value.is_object() && whole.contains(key)) {
            json& gguf = whole[key];
            for (const auto& [part, rows] : value.items())
                gguf[part] = !gguf.contains(part) || !rows.is_array() ? rows
                             : part == "keys"                         ? merged_rows(gguf[part], rows, {"key"})
                             : part == "tensors" ? merged_rows(gguf[part], rows, {"tensor"})
                                                 : merged_rows(gguf[part], rows, {"tensor", "field"});
        } else if (key != "like") {
            whole[key] = value;
        }
    }
    for (const char* own : {"partial", "huggingface"})
        if (!file.contains(own)) whole.erase(own);
    return whole;
}

}  // namespace

Architecture parse_architecture(std::string_view text, const std::string& path,
                                std::span<const EmbeddedFile> bases) {
    json file = inherited(parse_json(text, path), path, bases, 0);
    DataRow row(file, path, "", {"name", "order", "constants", "gguf", "partial", "huggingface"});
    FieldCheck check(path);
    Architecture a;
    a.name = row.text("name", true);
    a.partial = row.flag("partial");
    a.huggingface = row.value("huggingface");
    if (!path.ends_with("/" + a.name + ".json")) fail_input(path, "name", "the file's name", a.name);
    if (row.has("order")) {
        if (!row.value("order").is_number_integer())
            fail_input(path, "order", "a whole number", row.value("order").dump());
        a.order = row.value("order");
    }
    a.constants = row.has("constants") ? row.value("constants") : json::object();
    if (!a.constants.is_object()) fail_input(path, "constants", "an object", a.constants.type_name());
    for (const auto& [field, value] : a.constants.items()) check.value("constants", field, value);
    if (a.partial && !row.has("gguf")) return a;  // liked for its other sections
    if (!row.has("gguf")) fail_input(path, "gguf", "an object", "nothing");
    read_gguf(a, row.value("gguf"), path, check);
    return a;
}

const Architecture& architecture_of_file(std::size_t i) {
    static std::mutex reading;
    static std::vector<std::optional<const Architecture>> read(architecture_files().size());
    const std::lock_guard lock(reading);
    const EmbeddedFile& file = architecture_files()[i];
    if (!read[i])
        read[i].emplace(parse_architecture(file.text, std::string(file.path), architecture_files()));
    return *read[i];
}

const std::vector<const Architecture*>& architectures() {
    static const std::vector<const Architecture*> all = [] {
        std::vector<const Architecture*> list;
        for (std::size_t i = 0; i < architecture_files().size(); i++)
            if (const Architecture& a = architecture_of_file(i); !a.partial) list.push_back(&a);
        std::ranges::sort(list, {}, [](const Architecture* a) { return std::pair(a->order, a->name); });
        return list;
    }();
    return all;
}

const Architecture* architecture_named(std::string_view name) {
    const std::string end = "/" + std::string(name) + ".json";
    for (std::size_t i = 0; i < architecture_files().size(); i++) {
        if (!architecture_files()[i].path.ends_with(end)) continue;
        const Architecture& a = architecture_of_file(i);
        if (!a.partial && a.name == name) return &a;
    }
    return nullptr;
}

}  // namespace linnet
