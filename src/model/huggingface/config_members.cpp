// Which family a config.json is of; its members by their paths.
#include <algorithm>

#include "base/error.h"
#include "base/json_line.h"
#include "base/split.h"
#include "model/huggingface/config.h"

namespace linnet {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// "a.b" of nested objects; the keys of nulls stand apart.
void flatten(const json& object, const std::string& before, std::map<std::string, json>& out,
             std::set<std::string>& nulls) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_object())
            flatten(value, before + key + ".", out, nulls);
        else if (value.is_null())
            nulls.insert(before + key);
        else
            out[before + key] = value;
    }
}

void rename(std::map<std::string, json>& values, std::string from, std::string to) {
    const bool all = from.ends_with(".*") && to.ends_with(".*");
    if (all) from.pop_back(), to.pop_back();
    std::map<std::string, json> renamed;
    for (auto it = values.begin(); it != values.end();) {
        const bool fits = all ? it->first.starts_with(from) : it->first == from;
        const std::string name = fits ? to + it->first.substr(from.size()) : "";
        if (fits && !values.contains(name)) {
            renamed[name] = it->second;
            it = values.erase(it);
        } else {
            ++it;
        }
    }
    values.merge(renamed);
}

/// A folder that has its class's code beside it (auto_map) need not say the model type: the class tells it.
std::string type_of(const json& file, const std::string& path, const std::string& below) {
    const json type = file.value("model_type", json()), classes = file.value("architectures", json());
    if (type.is_string()) return type;
    if (type.is_null() && file.contains("auto_map") && classes.is_array())
        for (const HuggingFaceFamily& family : huggingface_families())
            if (std::find(classes.begin(), classes.end(), family.class_name) != classes.end())
                return family.model_type;
    fail_input(path, below + "model_type", "a string", type.is_null() ? "no such key" : dumped(type));
}

/// By its model type; of several families that have it, by the class.
const HuggingFaceFamily& family_of(const json& file, const std::string& path, const std::string& below) {
    const std::string type = type_of(file, path, below);
    const json classes = file.value("architectures", json());
    const HuggingFaceFamily* found = nullptr;
    std::set<std::string> known;
    for (const HuggingFaceFamily& family : huggingface_families()) {
        known.insert(family.model_type);
        if (family.model_type == type &&
            (!found || (classes.is_array() &&
                        std::find(classes.begin(), classes.end(), family.class_name) != classes.end())))
            found = &family;
    }
    if (!found)
        fail_input(path, below + "model_type", "one of " + joined(known), quoted(std::string_view(type)),
                   architecture_named(type) ? "its GGUF files are read" : "");
    return *found;
}

/// The config.json of the part that is text, with what is said of the whole.
ordered_json text_part(const ordered_json& file, const HuggingFaceFamily& around, const std::string& path) {
    const ordered_json part = file.value(around.text, ordered_json());
    if (!part.is_object())
        fail_input(path, around.text, "an object", part.is_null() ? "no such key" : dumped(json(part)));
    ordered_json own = part;
    for (const char* key : {"torch_dtype", "dtype"})
        if (!own.contains(key) && file.contains(key)) own[key] = file[key];
    return own;
}

}  // namespace

HuggingFaceConfig::HuggingFaceConfig(std::string_view text, std::string path)
    : path_(std::move(path)), text_(text) {
    json file = parse_json(text, path_);
    if (!file.is_object()) fail_input(path_, "", "a JSON object", file.type_name());
    family_ = &family_of(file, path_, "");
    if (!family_->text.empty()) {
        around_ = family_;
        ordered_json part = text_part(ordered_json::parse(text), *around_, path_);
        file = json(part);
        family_ = &family_of(file, path_, around_->text + ".");
        if (!family_->text.empty())
            fail_input(path_, around_->text + ".model_type", "a model of text",
                       quoted(std::string_view(family_->model_type)));
        part["architectures"] = ordered_json::array({family_->class_name});
        text_ = part.dump();
        path_ += ": " + around_->text;
    }
    flatten(file, "", values_, nulls_);
    for (const auto& [from, to] : family_->aliases) rename(values_, from, to);
}

json HuggingFaceConfig::value(const std::string& key) const {
    auto found = values_.find(key);
    return found == values_.end() ? json() : found->second;
}

bool HuggingFaceConfig::has_members(const std::string& key) const {
    const auto first = values_.lower_bound(key + ".");
    return first != values_.end() && first->first.starts_with(key + ".");
}

std::vector<std::string> HuggingFaceConfig::unknown() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) {
        bool known = false;
        for (const HuggingFaceKey& row : family_->keys)
            known |= row.key == key || row.offset == key || (row.ignored && key.starts_with(row.key + "."));
        for (const HuggingFaceMade& made : family_->made)
            known |= key == made.from || (key.starts_with(made.from + ".") &&
                                          made_reads(made.by, key.substr(made.from.size() + 1)));
        if (!known) keys.push_back(key);
    }
    return keys;
}

}  // namespace linnet
