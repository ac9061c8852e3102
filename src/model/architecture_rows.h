// Reading a data file's objects strictly: every key known, every value of its kind. And what rows for keys
// have in common, GGUF's and those of config.json.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/split.h"
#include "model/architectures.h"
#include "model/config/config.h"

namespace linnet {

/// An object of the file: every key must be known, every value of its kind.
class DataRow {
  public:
    using json = nlohmann::json;
    DataRow(const json& object, const std::string& path, std::string where, std::vector<std::string> known)
        : object_(object), path_(path), where_(std::move(where)) {
        if (!object.is_object()) fail_input(path, where_, "an object", object.type_name());
        for (const auto& [key, value] : object.items()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            fail_input(path, place(key), "a known key", "an unknown one", did_you_mean(key, known));
        }
    }

    std::string place(const std::string& key) const { return where_.empty() ? key : where_ + "." + key; }
    bool has(const char* key) const { return object_.contains(key); }
    json value(const char* key) const { return has(key) ? object_[key] : json(); }

    std::string text(const char* key, bool required) const {
        if (!has(key) && !required) return "";
        if (!has(key) || !object_[key].is_string() || object_[key].get<std::string>().empty())
            fail_input(path_, place(key), "a string", has(key) ? object_[key].dump() : "nothing");
        return object_[key];
    }
    bool flag(const char* key) const {
        if (has(key) && !object_[key].is_boolean())
            fail_input(path_, place(key), "true or false", object_[key].dump());
        return has(key) && object_[key].get<bool>();
    }
    /// A list of true and false.
    std::vector<bool> truths(const char* key) const {
        const json list = value(key);
        std::vector<bool> truths;
        for (const json& one : list.is_array() ? list : json())
            if (one.is_boolean()) truths.push_back(one);
        if (truths.empty() || truths.size() != list.size())
            fail_input(path_, place(key), "a list of true and false", list.dump());
        return truths;
    }
    /// Calls visit(element, where) for every element of an array that may be absent.
    template <class Visit>
    void each(const char* key, const Visit& visit) const {
        if (!has(key)) return;
        if (!object_[key].is_array()) fail_input(path_, place(key), "an array", object_[key].type_name());
        for (std::size_t i = 0; i < object_[key].size(); i++)
            visit(object_[key][i], place(key) + "[" + std::to_string(i) + "]");
    }

  private:
    const json& object_;
    const std::string& path_;
    std::string where_;
};

/// Says of fields and values whether the config has them.
class FieldCheck {
  public:
    using json = nlohmann::json;
    explicit FieldCheck(const std::string& path) : path_(path), fields_(model_fields(config_)) {}

    void known(const std::string& where, const std::string& field) {
        for (const Field& f : fields_)
            if (f.key == field) return;
        set_field(fields_, field, json(), path_ + ": " + where);  // says so, and which is near
    }
    void value(const std::string& where, const std::string& field, const json& value) {
        if (!value.is_object()) return set_field(fields_, field, value, path_ + ": " + where);
        if (value.contains("marked")) {
            DataRow row(value, path_, where, {"marked", "unmarked"});
            for (const char* one : {"marked", "unmarked"}) this->value(row.place(one), field, row.value(one));
            return;
        }
        DataRow row(value, path_, where, {"from", "over", "times", "power", "only", "multiple"});
        known(where, field), known(where + ".from", row.text("from", true));
        if (row.has("over")) known(where + ".over", row.text("over", true));
        const json only = row.has("only") ? row.value("only") : json::object();
        if (!only.is_object()) fail_input(path_, row.place("only"), "an object", only.dump());
        for (const auto& [key, wanted] : only.items()) this->value(row.place("only"), key, wanted);
        for (const char* key : {"times", "power"})
            if (!row.value(key).is_number())
                fail_input(path_, row.place(key), "a number", row.value(key).dump());
        if (row.has("multiple") && (!row.value("multiple").is_number() || row.value("multiple") <= 0))
            fail_input(path_, row.place("multiple"), "a number above 0", row.value("multiple").dump());
    }

  private:
    const std::string& path_;
    ModelConfig config_;
    std::vector<Field> fields_;
};

/// What rows of both kinds say in the same words.
inline void read_common(ArchitectureKey& key, const DataRow& row) {
    key.key = row.text("key", true), key.field = row.text("field", false);
    key.required = row.flag("required"), key.per_layer = row.flag("per_layer");
    key.inverse = row.flag("inverse"), key.largest = row.flag("largest");
    key.missing = row.value("missing"), key.values = row.value("values"), key.equals = row.value("equals");
    key.ignored = !row.text("ignore", false).empty();
}

/// Error(Exit::input) unless a row's `values` are values of its field.
inline void check_values(const ArchitectureKey& key, const std::string& path, const std::string& where,
                         FieldCheck& check) {
    if (!key.values.is_object() || key.values.empty())
        fail_input(path, where + ".values", "an object of what the key may say", key.values.dump());
    for (const auto& [says, value] : key.values.items())
        check.value(where + ".values." + says, key.field, value);
}

/// The field's value where a key of the file at `path` says `text`, by the row's `values`.
inline nlohmann::json meaning_of(const ArchitectureKey& row, const std::string& text, const std::string& path,
                                 const std::string& key) {
    if (row.values.contains(text)) return row.values[text];
    std::vector<std::string> known;
    for (const auto& [says, value] : row.values.items()) known.push_back(says);
    fail_input(path, key, "one of " + joined(known), text, "others are not supported");
}

}  // namespace linnet
