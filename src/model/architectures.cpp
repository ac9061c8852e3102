// What the rows of the architectures say of configs and of tensors' names.
#include "model/architectures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/fields.h"

namespace linnet {
namespace {

using nlohmann::json;

constexpr std::string_view layer_mark = "{layer}";

}  // namespace

bool of_training(std::string_view key) {
    constexpr std::string_view keys[] = {
        "model.dropout",   "model.attention.dropout",    "model.label_smoothing", "model.init_std",
        "model.zero_init", "model.experts.balance_loss", "model.experts.z_loss"};
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool is_whole(const json& value) {
    return (value.is_array() ? value.at(0) : value).is_number_integer();
}

void require_one_per_layer(const std::string& file, const std::string& key, std::size_t values,
                           const ModelConfig& config) {
    if (values != static_cast<std::size_t>(config.layers))
        fail_input(file, key, std::to_string(config.layers) + " values, one per layer",
                   std::to_string(values));
}

namespace {

json values_of(const std::vector<Field>& fields) {
    json values = json::object();
    for (const Field& field : fields) values[field.key] = value_of(field);
    return values;
}

}  // namespace

json values_of(ModelConfig config) {
    return values_of(model_fields(config));
}

json value_of(const std::vector<Field>& fields, const std::string& key) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
    return field == fields.end() ? json() : json(value_of(*field));
}

json derived(const json& value, const std::vector<Field>& fields) {
    return value.is_object() ? derived(value, values_of(fields)) : value;
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

Architecture with_marks(Architecture a, const std::vector<bool>& marked) {
    for (auto& [field, value] : a.constants.items()) {
        if (!value.is_object() || !value.contains("marked")) continue;
        json list = json::array();
        for (bool mark : marked) list.push_back(value[mark ? "marked" : "unmarked"]);
        value = list;
    }
    for (ArchitectureKey& row : a.keys) {
        if (row.marked.empty()) continue;
        for (bool mark : marked) row.layers.push_back(mark == (row.marked == "marked"));
        row.marked.clear();
    }
    return a;
}

bool ArchitectureKey::for_no_layer() const {
    return !layers.empty() && std::find(layers.begin(), layers.end(), true) == layers.end();
}

const ArchitectureKey* Architecture::marks() const {
    for (const ArchitectureKey& row : keys)
        if (!row.marks.empty()) return &row;
    return nullptr;
}

json field_value(const ArchitectureKey& row, const json& values) {
    const json& value = values[row.field];
    json one = value;
    if (!row.layers.empty()) {
        std::size_t first = static_cast<std::size_t>(std::find(row.layers.begin(), row.layers.end(), true) -
                                                     row.layers.begin());
        auto at = [&](std::size_t layer) { return value.is_array() ? value[layer % value.size()] : value; };
        one = at(first);
        const auto layers = values["model.layers"].get<std::size_t>();
        for (std::size_t i = 0; i < layers; i++)
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

std::vector<bool> marked_layers(const Architecture& a, const json& values, std::int64_t layers) {
    const ArchitectureKey* row = a.marks();
    std::vector<bool> marked;
    if (!row) return marked;
    const json& value = values[row->marks];
    for (std::size_t i = 0; i < static_cast<std::size_t>(layers); i++)
        marked.push_back((value.is_array() ? value[i % value.size()] : value) != 0);
    return marked;
}

namespace {

/// Whether a file of the architecture can have no layer with what is marked.
bool may_mark_none(const Architecture& a) {
    const ArchitectureKey* marks = a.marks();
    return !marks || std::none_of(a.keys.begin(), a.keys.end(), [&](const ArchitectureKey& row) {
        return row.field == marks->marks && (row.required || !row.missing.is_null());
    });
}

}  // namespace

std::optional<ModelConfig> through(const Architecture& any, const ModelConfig& config) {
    ModelConfig kept;
    std::vector<Field> fields = model_fields(kept);
    const json wanted = values_of(config);
    const std::vector<bool> marked = marked_layers(any, wanted, config.layers);
    const Architecture a = with_marks(any, marked);
    if (std::find(marked.begin(), marked.end(), true) == marked.end() && !may_mark_none(a))
        return std::nullopt;
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
        if (row.field.empty() || row.for_no_layer()) continue;
        json value = field_value(row, wanted);
        if (value.is_null()) return std::nullopt;
        set_field(fields, row.field, placed(row, value_of(fields, row.field), value), a.name);
    }
    if (!presence(true)) return std::nullopt;
    try {
        for (const auto& [field, value] : a.constants.items()) {
            json result = value.is_object() ? derived(value, fields) : json();
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

json key_value(const ArchitectureKey& row, const json& fields) {
    json value = row.field.empty() ? json() : field_value(row, fields);
    if (!row.unit.empty()) return value.get<std::int64_t>() / fields[row.unit].get<std::int64_t>();
    if (!row.zero_means.empty() && value == 0) value = fields[row.zero_means];
    if (row.inverse) return 1 / value.get<double>();
    if (row.values.is_null()) return value;
    for (const auto& [says, meaning] : row.values.items()) {
        if (meaning != value) continue;
        json plain = parse_or_discard(says);
        const bool kept =
            plain.is_array() || (plain.is_primitive() && !plain.is_discarded() && !plain.is_null());
        return kept ? plain : json(says);
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
    for (const Architecture* a : architectures()) {
        if (!a->config_key.empty()) continue;
        auto kept = through(*a, config);
        if (kept && values_of(*kept) == wanted) return *a;
    }
    return *architectures().back();
}

bool has_standard_architecture(const ModelConfig& config) {
    return &architecture_of(config) != architectures().back();
}

json derived(const json& value, const json& values) {
    if (!value.is_object()) return value;
    auto field = [&](const char* key) { return values[value[key].get<std::string>()].get<double>(); };
    if (value.contains("only"))
        for (const auto& [key, wanted] : value["only"].items())
            if (values[key] != wanted) return nullptr;
    double from = field("from") / (value.contains("over") ? field("over") : 1);
    const double product = value["times"].get<double>() * std::pow(from, value["power"].get<double>());
    if (!value.contains("multiple")) return product;
    const double unit = value["multiple"].get<double>();
    return std::ceil(product / unit - 1e-9) * unit;
}

std::int64_t depth_of(std::string_view parameter, const ModelConfig& config) {
    const bool decodes = parameter.starts_with("dec.") && config.decoder_layers > 0;
    const std::int64_t layers = decodes ? config.decoder_layers : config.layers;
    if (const std::string layer = parts_of(parameter).layer; !layer.empty())
        return layers - std::stoll(layer);
    if (parameter.starts_with("enc.output") && config.has_decoder()) return 1;
    for (std::string_view last : {"output", "cls.", "enc.output", "dec.output"})
        if (parameter.starts_with(last)) return 0;
    return layers + 1;
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
