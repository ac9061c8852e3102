// Configs read from a file's metadata and written to it, by the rows of the architectures.
#include "model/architectures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/json_line.h"

namespace linnet {
namespace {

using nlohmann::json;

constexpr std::string_view layer_mark = "{layer}";
constexpr std::uint64_t most_layers = 4096;

}  // namespace

bool of_training(std::string_view key) {
    constexpr std::string_view keys[] = {
        "model.dropout",   "model.label_smoothing",      "model.init_std",
        "model.zero_init", "model.experts.balance_loss", "model.experts.z_loss"};
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

json values_of(ModelConfig config) {
    json values = json::object();
    for (const Field& field : model_fields(config)) values[field.key] = value_of(field);
    return values;
}

std::string with_layer(std::string name, const std::string& layer) {
    std::size_t at = name.find(layer_mark);
    if (at != std::string::npos) name.replace(at, layer_mark.size(), layer);
    return name;
}

json placed(const ArchitectureKey& row, const json& now, const json& value) {
    if (row.layers.empty()) return value;
    std::size_t period = row.layers.size(), old = now.is_array() ? now.size() : 1;
    json list = json::array();
    for (std::size_t i = 0; i < std::lcm(period, old); i++)
        list.push_back(row.layers[i % period] ? value : now.is_array() ? now[i % old] : now);
    return list;
}

json told(const ArchitectureKey& row, const json& values) {
    const json& value = values[row.field];
    json one = value;
    if (!row.layers.empty()) {
        std::size_t first = static_cast<std::size_t>(std::find(row.layers.begin(), row.layers.end(), true) -
                                                     row.layers.begin());
        auto at = [&](std::size_t layer) { return value.is_array() ? value[layer % value.size()] : value; };
        one = at(first);
        for (std::size_t i = 0; i < std::lcm(row.layers.size(), value.is_array() ? value.size() : 1); i++)
            if (row.layers[i % row.layers.size()] && at(i) != one) return nullptr;
    }
    if (one.is_array() && row.largest) one = *std::max_element(one.begin(), one.end());
    if (one.is_array() && !row.per_layer) return nullptr;
    if (row.positive && one.is_number() && one.get<double>() <= 0) return nullptr;
    bool known = row.values.is_null();
    if (!row.unit.empty()) {
        std::int64_t unit = values[row.unit].get<std::int64_t>();
        if (unit == 0 || one.get<std::int64_t>() % unit != 0) return nullptr;
    }
    for (const json& word : row.values) known |= word == one;
    return known ? one : json();
}

std::optional<ModelConfig> through(const Architecture& a, const ModelConfig& config) {
    ModelConfig kept;
    std::vector<Field> fields = model_fields(kept);
    const json wanted = values_of(config);
    for (const auto& [field, value] : a.constants.items())
        if (!value.is_object()) set_field(fields, field, value, a.name);
    auto presence = [&](bool each) {
        for (const TensorPresence& row : a.presence) {
            if (row.each != each || !row.written) continue;
            const json& value = wanted[row.field];
            bool some = row.present.is_null();
            for (const json& one : value.is_array() && each ? value : json::array({value})) {
                if (one != row.present && one != row.absent && !row.present.is_null()) return false;
                some |= one == row.present;
            }
            if (each && !some) return false;  // a hybrid without what makes it one
            set_field(fields, row.field, value, a.name);
        }
        return true;
    };
    if (!presence(false)) return std::nullopt;
    for (const ArchitectureKey& row : a.keys) {
        if (row.field.empty()) continue;
        json value = told(row, wanted);
        if (value.is_null()) return std::nullopt;
        set_field(fields, row.field, placed(row, values_of(kept)[row.field], value), a.name);
    }
    if (!presence(true)) return std::nullopt;
    try {
        for (const auto& [field, value] : a.constants.items()) {
            json result = value.is_object() ? derived(value, values_of(kept)) : json();
            if (!result.is_null()) set_field(fields, field, result, a.name);
        }
    } catch (const Error&) {  // of another family's numbers
        return std::nullopt;
    }
    kept.vocabulary = config.vocabulary;
    const json own = values_of(config);
    for (const auto& [key, value] : own.items())
        if (of_training(key)) set_field(fields, key, value, a.name);
    if (config.position.kind.at(0) != "rope" && !config.position.kind.is_list()) {  // of rope alone
        auto kind = kept.position.kind;
        kept.position = config.position, kept.position.kind = kind;
    }
    shorten_lists(kept);
    try {
        resolve(kept, a.name);
    } catch (const Error&) {  // a value that the rows cannot say was needed
        return std::nullopt;
    }
    return kept;
}

namespace {

/// The key's whole name: those of the vocabulary, which some families add to, have no architecture's before
/// them.
std::string whole_key(const Architecture& a, const ArchitectureKey& row) {
    return row.key.starts_with("tokenizer.") ? row.key : a.name + "." + row.key;
}

/// A value of the metadata as JSON.
json read_value(const Gguf& file, const std::string& key, const GgufValue& value) {
    const auto* array = std::get_if<GgufArray>(&value);
    if (!array)
        return std::visit(
            [](const auto& v) -> json {
                if constexpr (std::is_same_v<std::decay_t<decltype(v)>, GgufArray>)
                    return json();
                else
                    return v;
            },
            value);
    if (array->count > most_layers)
        fail_input(file.path(), key, "at most " + std::to_string(most_layers) + " values, one per layer",
                   std::to_string(array->count));
    if (array->kind == GgufKind::string) return array->strings;
    if (array->kind == GgufKind::f32 || array->kind == GgufKind::f64) return *file.numbers(key);
    return *file.integers(key);
}

/// The field's value for what the key says.
json mapped(const Gguf& file, const std::string& key, const ArchitectureKey& row, const json& value) {
    if (row.values.is_null()) return value;
    std::string says = value.is_string() ? value.get<std::string>() : value.dump(), known;
    if (row.values.contains(says)) return row.values[says];
    for (const auto& [one, meaning] : row.values.items()) known += (known.empty() ? "" : ", ") + one;
    fail_input(file.path(), key, "one of " + known, says, "others are not supported");
}

/// Reads the keys of one file into a config.
class KeyReader {
  public:
    KeyReader(const Gguf& file, const Architecture& a, ModelConfig& config)
        : file_(file), a_(a), config_(config), fields_(model_fields(config)) {}

    void read() {
        for (const auto& [field, value] : a_.constants.items())
            if (!value.is_object()) set_field(fields_, field, value, file_.path());
        std::map<std::string_view, const ArchitectureKey*> rows;
        for (const ArchitectureKey& row : a_.keys) rows[row.key] = &row;
        std::string prefix = a_.name + ".";
        for (const auto& [name, value] : file_.values()) {
            if (!name.starts_with(prefix)) continue;
            auto row = rows.find(name.substr(prefix.size()));
            if (row == rows.end())
                fail_input(file_.path(), name, "metadata that this program understands", "an unknown key");
            take(std::string(name), *row->second, value);
        }
        for (const ArchitectureKey& row : a_.keys) {
            std::string key = whole_key(a_, row);
            if (const GgufValue* value = file_.find(key)) {
                if (!key.starts_with(prefix)) take(key, row, *value);
                continue;
            }
            if (row.required) fail_input(file_.path(), key, "a value", "no such key");
            if (!row.missing.is_null() && !seen_.contains({row.field, row.layers}))
                derive(row.field, row.missing, &row);
        }
        for (const auto& [row, count] : units_) {
            json unit = values_of(config_)[row->unit];
            auto whole = checked_mul(count, unit.get<std::int64_t>());
            if (!whole)
                fail_input(file_.path(), prefix + row->key, "a smaller number", std::to_string(count));
            set_field(fields_, row->field, *whole, file_.path() + ": " + prefix + row->key);
        }
        for (const auto& [field, value] : a_.constants.items())
            if (value.is_object()) derive(field, value);
        for (const auto& [key, length] : lists_)
            if (length != static_cast<std::size_t>(config_.layers))
                fail_input(file_.path(), key, std::to_string(config_.layers) + " values, one per layer",
                           std::to_string(length));
        shorten_lists(config_);  // constants' lists are longer than a model of few layers
    }

  private:
    void take(const std::string& key, const ArchitectureKey& row, const GgufValue& value) {
        if (row.ignored) return;
        json says = read_value(file_, key, value);
        if (says.is_array()) {
            lists_.emplace_back(key, says.size());
            if (!row.per_layer) says = alike(key, says);
        }
        if (!row.equals.is_null()) {
            if (says != row.equals)
                fail_input(file_.path(), key, row.equals.dump(), shown(says), "others are not supported");
            return;
        }
        says = mapped(file_, key, row, says);
        if (row.positive && !(says.is_number() && says.get<double>() > 0))
            fail_input(file_.path(), key, "a positive number", shown(says));
        if (row.inverse) {
            if (!says.is_number() || says.get<double>() == 0)
                fail_input(file_.path(), key, "a number other than 0", shown(says));
            says = 1 / says.get<double>();
        }
        if (!row.unit.empty()) {  // told once the unit has been read
            if (!says.is_number_integer() || says.get<std::int64_t>() < 0)
                fail_input(file_.path(), key, "a whole number", shown(says));
            units_.emplace_back(&row, says.get<std::int64_t>());
            return;
        }
        auto [before, first] = seen_.emplace(std::pair(row.field, row.layers), says);
        if (!first && before->second != says)
            fail_input(file_.path(), key, shown(before->second) + " as said before", shown(says));
        says = placed(row, values_of(config_)[row.field], says);
        set_field(fields_, row.field, says, file_.path() + ": " + key);
    }

    void derive(const std::string& field, const json& value, const ArchitectureKey* row = nullptr) {
        const json values = values_of(config_);
        json result = derived(value, values);
        if (result.is_null()) return;
        if (row) result = placed(*row, values[field], result);
        set_field(fields_, field, result, file_.path());
    }

    /// The one value that an array repeats for every layer.
    json alike(const std::string& key, const json& list) const {
        for (const json& one : list)
            if (one != list[0]) fail_input(file_.path(), key, "the same value for all layers", shown(list));
        if (list.empty()) fail_input(file_.path(), key, "a value", "an empty array");
        return list[0];
    }

    static std::string shown(const json& value) { return dumped(value); }

    const Gguf& file_;
    const Architecture& a_;
    ModelConfig& config_;
    std::vector<Field> fields_;
    std::map<std::pair<std::string, std::vector<bool>>, json> seen_;  // by field and layers
    std::vector<std::pair<std::string, std::size_t>> lists_;
    std::vector<std::pair<const ArchitectureKey*, std::int64_t>> units_;  // rows with a unit, what keys say
};

/// A field whose value in a layer is told by that layer's tensor.
void read_each_presence(const Gguf& file, const TensorPresence& row, ModelConfig& config) {
    const json now = values_of(config)[row.field];
    json list = json::array();
    for (std::int64_t layer = 0; layer < config.layers; layer++) {
        const json& said = row.present.is_null() ? now : row.present;
        const bool there = file.tensor(with_layer(row.tensor, std::to_string(layer)));
        list.push_back(there ? said : row.absent);
    }
    std::vector<Field> fields = model_fields(config);
    set_field(fields, row.field, list, file.path());
    shorten_lists(config);
}

void read_presence(const Gguf& file, const Architecture& a, ModelConfig& config) {
    std::vector<Field> fields = model_fields(config);
    std::set<std::string> present;
    for (const TensorPresence& row : a.presence) {
        if (row.each) {
            read_each_presence(file, row, config);
            continue;
        }
        bool each = row.tensor.find(layer_mark) != std::string::npos;
        bool there = file.tensor(with_layer(row.tensor, "0"));
        for (std::int64_t layer = 1; each && layer < config.layers; layer++) {
            const std::string name = with_layer(row.tensor, std::to_string(layer));
            const bool here = file.tensor(name);
            if (here != there && !row.is_bias())
                fail_input(file.path(), name, "in every layer or in none", there ? "none here" : "one here");
            there |= here;
        }
        if (there) present.insert(row.field);
        if (there || !present.contains(row.field))
            set_field(fields, row.field, there ? row.present : row.absent, file.path());
    }
}

/// What the key says, with 0 in the layers for which the row has it.
json with_zeros(const ArchitectureKey& row, const json& value, const json& fields, std::int64_t layers) {
    if (row.zero_where.is_null()) return value;
    auto at = [](const json& one, std::int64_t layer) {
        return one.is_array() ? one[static_cast<std::size_t>(layer) % one.size()] : one;
    };
    json list = json::array();
    for (std::int64_t layer = 0; layer < layers; layer++) {
        bool zero = true;
        for (const auto& [field, wanted] : row.zero_where.items()) zero &= at(fields[field], layer) == wanted;
        list.push_back(zero ? json(0) : at(value, layer));
    }
    return list;
}

void write_value(GgufWriter& out, const std::string& key, const json& value, std::int64_t layers) {
    if (value.is_array()) {
        std::vector<float> numbers;
        std::vector<std::int32_t> integers;
        for (std::int64_t layer = 0; layer < layers; layer++) {
            const json& one = value[static_cast<std::size_t>(layer) % value.size()];
            one.is_number_float() ? numbers.push_back(one) : integers.push_back(one);
        }
        numbers.empty() ? out.add(key, integers) : out.add(key, numbers);
    } else if (value.is_string()) {
        out.add(key, value.get<std::string>());
    } else if (value.is_boolean()) {
        out.add(key, value.get<bool>());
    } else if (value.is_number_float()) {
        out.add(key, value.get<float>());
    } else {
        out.add(key, value.get<std::uint32_t>());
    }
}

}  // namespace

json said(const ArchitectureKey& row, const json& fields) {
    json value = row.field.empty() ? json() : told(row, fields);
    if (!row.unit.empty()) return value.get<std::int64_t>() / fields[row.unit].get<std::int64_t>();
    if (!row.zero_means.empty() && value == 0) value = fields[row.zero_means];
    if (row.inverse) return 1 / value.get<double>();
    if (row.values.is_null()) return value;
    for (const auto& [says, meaning] : row.values.items()) {
        if (meaning != value) continue;
        json plain = json::parse(says, nullptr, false);
        return plain.is_primitive() && !plain.is_discarded() && !plain.is_null() ? plain : json(says);
    }
    return value;
}

NameParts parts_of(std::string_view name) {
    NameParts parts;
    for (std::string_view suffix : {".weight", ".bias"})
        if (name.ends_with(suffix)) {
            parts.suffix = suffix;
            name.remove_suffix(suffix.size());
            break;
        }
    for (std::size_t begin = 0; begin < name.size();) {
        std::size_t end = std::min(name.find('.', begin), name.size());
        std::string_view piece = name.substr(begin, end - begin);
        bool number = !piece.empty() && piece.find_first_not_of("0123456789") == std::string_view::npos;
        if (number && parts.layer.empty())
            parts.layer = piece, parts.stem += layer_mark;
        else
            parts.stem += piece;
        if (end < name.size()) parts.stem += '.';
        begin = end + 1;
    }
    return parts;
}

const Architecture& architecture_of(const ModelConfig& config) {
    const json wanted = values_of(config);
    for (const Architecture& a : architectures()) {
        if (!a.config_key.empty()) continue;
        auto kept = through(a, config);
        if (kept && values_of(*kept) == wanted) return a;
    }
    return architectures().back();
}

bool has_standard_architecture(const ModelConfig& config) {
    return &architecture_of(config) != &architectures().back();
}

json derived(const json& value, const json& values) {
    if (!value.is_object()) return value;
    auto field = [&](const char* key) { return values[value[key].get<std::string>()].get<double>(); };
    if (value.contains("only"))
        for (const auto& [key, wanted] : value["only"].items())
            if (values[key] != wanted) return nullptr;
    double from = field("from") / (value.contains("over") ? field("over") : 1);
    return value["times"].get<double>() * std::pow(from, value["power"].get<double>());
}

ModelConfig read_config(const Gguf& file, const Architecture*& architecture) {
    auto name = file.string("general.architecture");
    if (!name) fail_input(file.path(), "general.architecture", "a string", "no such key");
    architecture = nullptr;
    std::string known;
    for (const Architecture& a : architectures()) {
        if (a.name == *name) architecture = &a;
        known += (known.empty() ? "" : ", ") + a.name;
    }
    if (!architecture) fail_input(file.path(), "general.architecture", "one of " + known, *name);
    return read_config(file, *architecture);
}

ModelConfig read_config(const Gguf& file, const Architecture& architecture) {
    ModelConfig config;
    if (architecture.config_key.empty()) {
        KeyReader(file, architecture, config).read();
    } else {
        const std::string& key = architecture.config_key;
        auto text = file.string(key);
        if (!text) fail_input(file.path(), key, "a JSON config", "no such key");
        std::vector<Field> fields = model_fields(config);
        apply_json(fields, parse_json(*text, file.path() + ": " + key), file.path());
    }
    const GgufTensor* table = file.tensor("token_embd.weight");
    if (!table && !config.reads_patches())
        fail_input(file.path(), "token_embd.weight", "a tensor", "none (a vocabulary without a model?)");
    config.vocabulary = table ? table->shape.dim[0] : 0;
    read_presence(file, architecture, config);
    resolve(config, file.path());
    return config;
}

void write_config(GgufWriter& out, const Architecture& a, ModelConfig config) {
    out.add("general.architecture", a.name);
    if (!a.config_key.empty()) {
        out.add(a.config_key, to_json(model_fields(config)).dump());
        return;
    }
    const json values = values_of(config);
    for (const ArchitectureKey& row : a.keys) {
        std::string key = whole_key(a, row);
        bool silent = !row.missing.is_null() && told(row, values) == derived(row.missing, values);
        if (!row.field.empty() && !silent)
            write_value(out, key, with_zeros(row, said(row, values), values, config.layers), config.layers);
        else if (row.required && !row.equals.is_null())
            write_value(out, key, row.equals, config.layers);
    }
}

TensorPlace place_of(const Architecture& a, const std::string& parameter) {
    NameParts name = parts_of(parameter);
    auto part = a.parts.find(name.stem);
    if (part == a.parts.end()) return {.tensor = parameter};
    const ArchitectureTensor& row = a.tensors[part->second.first];
    return {with_layer(row.tensor, name.layer) + name.suffix, part->second.second, &row,
            with_layer(row.beside, name.layer)};
}

std::vector<std::string> own_names(const TensorPlace& place, const std::string& parameter) {
    NameParts name = parts_of(parameter);
    std::vector<std::string> names;
    for (const std::string& part : place.row->holds)
        names.push_back(with_layer(part, name.layer) + name.suffix);
    return names;
}

bool is_ignored(const Architecture& a, std::string_view tensor) {
    return !a.ignored_tensors.empty() && a.ignored_tensors.contains(parts_of(tensor).stem);
}

}  // namespace linnet
