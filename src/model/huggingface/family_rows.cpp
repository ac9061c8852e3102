// The sections "huggingface" of the data files, read and checked.
#include <algorithm>

#include "base/error.h"
#include "model/architecture_rows.h"
#include "model/huggingface/config.h"

namespace linnet {
namespace {

using nlohmann::json;

/// The texts of each key of `when`.
std::map<std::string, std::vector<std::string>> read_when(const DataRow& row, const std::string& path) {
    std::map<std::string, std::vector<std::string>> when;
    const json object = row.value("when");
    if (object.is_null()) return when;
    if (!object.is_object()) fail_input(path, row.place("when"), "an object", object.type_name());
    for (const auto& [key, texts] : object.items()) {
        if (!texts.is_array()) fail_input(path, row.place("when"), "lists of texts", texts.dump());
        for (const json& text : texts) {
            if (!text.is_string()) fail_input(path, row.place("when"), "lists of texts", texts.dump());
            when[key].push_back(text);
        }
    }
    return when;
}

/// How the field follows from the key and from other fields.
void read_reckoning(HuggingFaceKey& key, const DataRow& row, const std::string& path,
                    const std::string& where, FieldCheck& check) {
    if ((row.has("times") || row.has("power")) && (key.field.empty() || key.per_layer || key.inverse))
        fail_input(path, where, "a field beside times and power, without per_layer and inverse",
                   key.field.empty() ? "no field" : "another row");
    auto other = [&](const char* name) {
        json value = row.value(name);
        if (value.is_object() && value.contains("only"))
            fail_input(path, row.place(name), "an object without only", value.dump());
        if (value.is_object())
            check.value(row.place(name), key.field, value);
        else if (!value.is_null() && !(value.is_number() && name == std::string_view("times")))
            check.known(row.place(name), row.text(name, true));
        return value;
    };
    key.times = other("times");
    const json zero = other("zero_means");
    if (zero.is_object())
        key.zero = zero;
    else
        key.zero_means = row.text("zero_means", false);
    if (row.has("power") && (!row.value("power").is_number() || row.value("power") == 0))
        fail_input(path, row.place("power"), "a number other than 0", row.value("power").dump());
    if (row.has("power")) key.power = row.value("power");
}

/// Of a row with "offset": `missing` is the two keys' numbers where they are not there.
void read_marks(const HuggingFaceKey& key, const std::string& path, const std::string& where,
                FieldCheck& check) {
    if (!key.marked.is_null()) check.value(where + ".marked", key.field, key.marked);
    check.value(where + ".unmarked", key.field, key.unmarked);
    const json& pair = key.missing;
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() || !pair[1].is_number_integer())
        fail_input(path, where + ".missing", "a period and an offset", pair.dump());
}

HuggingFaceKey read_key(const json& object, const std::string& path, const std::string& where,
                        FieldCheck& check) {
    const DataRow row(
        object, path, where,
        {"key",     "field",      "required", "per_layer", "missing", "values", "equals",  "ignore",
         "inverse", "zero_means", "layers",   "written",   "times",   "power",  "null",    "write",
         "when",    "silent",     "never",    "largest",   "offset",  "marked", "unmarked"});
    HuggingFaceKey key;
    read_common(key, row);
    key.offset = row.text("offset", false);
    key.marked = row.value("marked"), key.unmarked = row.value("unmarked");
    key.write = row.value("write");
    key.never = row.value("never"), key.if_null = row.value("null");
    key.silent = row.value("silent");
    if (!key.silent.is_null() && !key.silent.is_object())
        fail_input(path, where + ".silent", "an object", key.silent.dump());
    for (const auto& [field, value] : key.silent.items()) check.value(where + ".silent", field, value);
    key.writes_null = key.ignored && row.has("write") && key.write.is_null();
    key.written = !row.has("written") || row.flag("written");
    key.when = read_when(row, path);
    if (row.has("layers")) key.layers = row.truths("layers");
    const int kinds = !key.field.empty() + row.has("equals") + key.ignored;
    if (kinds != 1)
        fail_input(path, where, "one of field, equals and ignore", std::to_string(kinds) + " of them");
    if (!key.write.is_null() && !key.ignored && key.values.is_null())
        fail_input(path, where, "ignore or values beside write", "neither");
    if (!key.field.empty()) check.known(where, key.field);
    read_reckoning(key, row, path, where, check);
    if (key.field.empty()) return key;
    if (!key.offset.empty()) {
        read_marks(key, path, where, check);
        return key;
    }
    if (!key.missing.is_null()) check.value(where + ".missing", key.field, key.missing);
    if (!key.if_null.is_null()) check.value(where + ".null", key.field, key.if_null);
    if (!key.values.is_null()) check_values(key, path, where, check);
    return key;
}

/// A field, or of several parameters a list with a field or "" for each.
void read_permute(HuggingFaceTensor& tensor, const DataRow& row, const std::string& path,
                  const std::string& where, FieldCheck& check) {
    tensor.permute.resize(tensor.holds.size());
    if (!row.has("permute")) return;
    const json fields =
        row.value("permute").is_array() ? row.value("permute") : json::array({row.value("permute")});
    if (fields.size() != tensor.holds.size())
        fail_input(path, row.place("permute"), "a field for each parameter", fields.dump());
    for (std::size_t i = 0; i < fields.size(); i++) {
        if (!fields[i].is_string()) fail_input(path, row.place("permute"), "fields", fields.dump());
        tensor.permute[i] = fields[i];
        if (!tensor.permute[i].empty()) check.known(where, tensor.permute[i]);
    }
}

void add_tensor(HuggingFaceFamily& family, const json& object, const std::string& path,
                const std::string& where, FieldCheck& check) {
    const DataRow row(object, path, where,
                      {"tensor", "holds", "ignore", "parts", "groups", "matrices", "permute", "beside",
                       "transpose", "stacks", "channels", "flat", "whole", "less_one", "log", "spare"});
    HuggingFaceTensor tensor;
    tensor.tensor = row.text("tensor", true);
    tensor.parts = row.text("parts", false), tensor.groups = row.text("groups", false);
    tensor.matrices = row.text("matrices", false), tensor.stacks = row.text("stacks", false);
    tensor.beside = row.text("beside", false), tensor.transpose = row.flag("transpose");
    tensor.channels = row.flag("channels"), tensor.flat = row.flag("flat");
    tensor.whole = row.flag("whole"), tensor.spare = row.flag("spare");
    if (row.flag("less_one") && row.flag("log")) fail_input(path, where, "less_one or log", "both");
    if (row.flag("less_one")) tensor.transform = ValueTransform::less_one;
    if (row.flag("log")) tensor.transform = ValueTransform::log;
    for (const std::string& field : {tensor.parts, tensor.groups, tensor.matrices, tensor.stacks})
        if (!field.empty()) check.known(where, field);
    if (!tensor.stacks.empty() && !tensor.transpose)
        fail_input(path, where, "transpose beside stacks", "none");
    if (row.has("holds") == !row.text("ignore", false).empty())
        fail_input(path, where, "either holds or ignore", row.has("holds") ? "both" : "neither");
    if (row.has("holds") && tensor.parts.empty() != (tensor.tensor.find("{part}") == std::string::npos))
        fail_input(path, where, "{part} in the name where there are parts", tensor.tensor);
    row.each("holds", [&](const json& part, const std::string& place) {
        if (!part.is_string()) fail_input(path, place, "a parameter's name", part.dump());
        family.places.emplace(part, std::pair(family.tensors.size(), static_cast<int>(tensor.holds.size())));
        tensor.holds.push_back(part);
    });
    if (row.has("holds") && tensor.holds.empty())
        fail_input(path, where + ".holds", "parameters' names", "an empty list");
    if (tensor.holds.size() > 1 && !tensor.parts.empty())
        fail_input(path, where, "one parameter beside parts", "several");
    read_permute(tensor, row, path, where, check);
    if (tensor.holds.empty()) family.ignored.insert(tensor.tensor);
    family.tensors.push_back(std::move(tensor));
}

void add_made(HuggingFaceFamily& family, const json& object, const std::string& path,
              const std::string& where, FieldCheck& check) {
    const DataRow row(object, path, where, {"by", "from", "parameter", "field", "when"});
    HuggingFaceMade made{row.text("by", true), row.text("from", true), row.text("parameter", false),
                         row.text("field", false), read_when(row, path)};
    if (made.parameter.empty() == made.field.empty())
        fail_input(path, where, "either parameter or field", made.field.empty() ? "neither" : "both");
    if (!made.field.empty()) check.known(where, made.field);
    family.made.push_back(std::move(made));
}

/// Rows of `base` that `own` replaces go: those that are for the same thing.
json merged(const json& base, const json& own, const std::function<bool(const json&, const json&)>& same) {
    json rows = json::array();
    for (const json& row : base)
        if (std::none_of(own.begin(), own.end(), [&](const json& o) { return same(row, o); }))
            rows.push_back(row);
    for (const json& row : own) rows.push_back(row);
    return rows;
}

bool same_member(const json& a, const json& b, const char* name) {
    return a.is_object() && b.is_object() && a.contains(name) && b.contains(name) && a[name] == b[name];
}

/// A tensor row takes the place of those of the same name, and of those that hold a parameter of its own.
bool same_tensor(const json& a, const json& b) {
    if (same_member(a, b, "tensor")) return true;
    if (!a.is_object() || !b.is_object() || !a.contains("holds") || !b.contains("holds")) return false;
    for (const json& one : a["holds"])
        for (const json& other : b["holds"])
            if (one == other) return true;
    return false;
}

/// `whole` with what `section` says besides and instead.
json overlaid(json whole, const json& section) {
    for (const char* own : {"model_type", "class", "gguf", "also"}) whole.erase(own);
    for (const auto& [key, value] : section.items()) {
        json& had = whole[key];
        if (had.is_null() || key == "like")
            had = value;
        else if (key == "constants" && value.is_object())
            had.update(value);
        else if (key == "keys")
            had = merged(had, value, [](auto& a, auto& b) { return same_member(a, b, "key"); });
        else if (key == "tensors")
            had = merged(had, value, same_tensor);
        else if (key == "presence")
            had = merged(had, value, [](auto& a, auto& b) { return same_member(a, b, "tensor"); });
        else if ((key == "aliases" || key == "made") && had.is_array() && value.is_array())
            had.insert(had.end(), value.begin(), value.end());
        else
            had = value;
    }
    whole.erase("like");
    return whole;
}

/// A section with what the ones that "like" names say and it does not; of several, the later ones go first.
json inherited(const json& section, const std::string& path, std::span<const EmbeddedFile> bases, int depth) {
    if (!section.is_object() || !section.contains("like")) return section;
    json whole = json::object();
    const json& likes = section["like"];
    for (const json& like : likes.is_array() ? likes : json::array({likes})) {
        const EmbeddedFile* base = nullptr;
        for (const EmbeddedFile& one : bases)
            if (like.is_string() && one.path.ends_with("/" + like.get<std::string>() + ".json")) base = &one;
        if (!base || depth > 8) fail_input(path, "huggingface.like", "the name of another file", like.dump());
        const std::string base_path(base->path);
        const json file = parse_json(base->text, base_path);
        if (!file.contains("huggingface"))
            fail_input(path, "huggingface.like", "a file with such a section", base_path);
        whole = overlaid(std::move(whole), inherited(file["huggingface"], base_path, bases, depth + 1));
    }
    return overlaid(std::move(whole), section);
}

const Architecture* gguf_of(const std::string& name, const std::string& path) {
    if (const Architecture* a = architecture_named(name)) return a;
    fail_input(path, "huggingface.gguf", "an architecture", name);
}

}  // namespace

HuggingFaceFamily parse_huggingface(const Architecture& file, const std::string& path,
                                    std::span<const EmbeddedFile> bases) {
    const json section = inherited(file.huggingface, path, bases, 0);
    const DataRow row(section, path, "huggingface",
                      {"model_type", "class", "gguf", "like", "constants", "prefix", "aliases", "keys",
                       "tensors", "presence", "made", "also", "text", "names", "vocabulary"});
    FieldCheck check(path);
    HuggingFaceFamily family;
    family.model_type = row.text("model_type", false), family.class_name = row.text("class", false);
    if (family.model_type.empty() != family.class_name.empty())
        fail_input(path, "huggingface", "model_type and class", "one of them");
    const std::string gguf = row.text("gguf", false);
    family.gguf = family.model_type.empty() ? nullptr : gguf_of(gguf.empty() ? file.name : gguf, path);
    family.prefix = row.text("prefix", false), family.text = row.text("text", false);
    family.vocabulary = row.has("vocabulary") ? row.text("vocabulary", true) : "vocab_size";
    row.each("also", [&](const json& name, const std::string& where) {
        if (!name.is_string()) fail_input(path, where, "an architecture", name.dump());
        family.also.insert(gguf_of(name, path)->name);
    });
    family.constants = file.constants;
    if (row.has("constants")) family.constants.update(row.value("constants"));
    for (const auto& [field, value] : family.constants.items()) {
        check.value("huggingface.constants", field, value);
        if (value.is_object() && value.contains("marked"))
            fail_input(path, "huggingface.constants." + field, "one value or a list, as no key marks layers",
                       value.dump());
    }
    const auto pairs = [&](const char* name, auto& into) {
        row.each(name, [&](const json& pair, const std::string& where) {
            if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
                fail_input(path, where, "two texts", pair.dump());
            into.emplace_back(pair[0], pair[1]);
        });
    };
    pairs("aliases", family.aliases), pairs("names", family.names);
    row.each("keys", [&](const json& object, const std::string& where) {
        family.keys.push_back(read_key(object, path, where, check));
    });
    row.each("tensors", [&](const json& object, const std::string& where) {
        add_tensor(family, object, path, where, check);
    });
    row.each("presence", [&](const json& object, const std::string& where) {
        const DataRow one(object, path, where, {"tensor", "field", "present", "absent"});
        family.presence.push_back(
            {one.text("tensor", true), one.text("field", true), one.value("present"), one.value("absent")});
        check.value(where + ".present", family.presence.back().field, one.value("present"));
        check.value(where + ".absent", family.presence.back().field, one.value("absent"));
    });
    row.each("made", [&](const json& object, const std::string& where) {
        add_made(family, object, path, where, check);
    });
    return family;
}

const std::vector<HuggingFaceFamily>& huggingface_families() {
    static const std::vector<HuggingFaceFamily> all = [] {
        std::vector<HuggingFaceFamily> list;
        for (std::size_t i = 0; i < architecture_files().size(); i++) {
            const Architecture& a = architecture_of_file(i);
            if (a.huggingface.is_null()) continue;
            HuggingFaceFamily family =
                parse_huggingface(a, std::string(architecture_files()[i].path), architecture_files());
            if (!family.model_type.empty()) list.push_back(std::move(family));
        }
        // What goes out as several families could is written as the one that GGUF's name is, too.
        std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
            auto rank = [](const HuggingFaceFamily& f) {
                return std::pair(f.gguf->order, f.gguf->name != f.model_type);
            };
            return rank(a) < rank(b);
        });
        return list;
    }();
    return all;
}

}  // namespace linnet
