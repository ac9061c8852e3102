// Configs read from a file's metadata and written to it, by the rows of the architectures.
#include <cmath>
#include <cstdint>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "base/json_line.h"
#include "base/split.h"
#include "model/architecture_rows.h"
#include "model/architectures.h"

namespace linnet {
namespace {

using nlohmann::json;

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
    if (array->count > static_cast<std::uint64_t>(most_layers))
        fail_input(file.path(), key, "at most " + std::to_string(most_layers) + " values, one per layer",
                   std::to_string(array->count));
    if (array->kind == GgufKind::string) return array->strings;
    if (array->kind == GgufKind::boolean) return *file.booleans(key);
    if (array->kind == GgufKind::f32 || array->kind == GgufKind::f64) return *file.numbers(key);
    return *file.integers(key);
}

/// The field's value for what the key says.
json mapped(const Gguf& file, const std::string& key, const ArchitectureKey& row, const json& value) {
    if (row.values.is_null()) return value;
    return meaning_of(row, value.is_string() ? value.get<std::string>() : dumped(value), file.path(), key);
}

/// Whether what the key may say are whole lists.
bool says_lists(const ArchitectureKey& row) {
    for (const auto& [says, meaning] : row.values.items())
        if (says.starts_with('[')) return true;
    return false;
}

/// The layers of a file's model that are marked, in turn: all but every n-th, where the key is a number.
std::vector<bool> marks_in(const Gguf& file, const Architecture& a) {
    const ArchitectureKey* marks = a.marks();
    if (!marks) return {};
    bool some = false;
    for (const ArchitectureKey& row : a.keys)
        some |= row.field == marks->marks && (file.find(whole_key(a, row)) || !row.missing.is_null());
    if (!some) return {false};
    const std::string key = whole_key(a, *marks);
    const GgufValue* value = file.find(key);
    const json says = value ? read_value(file, key, *value) : marks->missing;
    if (!says.is_array()) {
        const std::uint64_t period = file.integer(key, most_layers).value();
        std::vector<bool> marked(std::max<std::uint64_t>(period, 1), true);
        if (period > 0) marked.back() = false;
        return marked;
    }
    for (const json& one : says)
        if (!one.is_boolean())
            fail_input(file.path(), key, "a number, or true and false for each layer", dumped(says));
    if (says.empty()) fail_input(file.path(), key, "true and false for each layer", "an empty array");
    return says;
}

/// An error of a config that a file's keys say: it names the key, where one says the field.
Error in_words_of(const Architecture& a, const std::string& path, const Error& error) {
    std::string line = error.what();
    for (const ArchitectureKey& row : a.keys) {
        const std::string place = path + ": " + row.field + ":";
        if (!row.field.empty() && line.starts_with(place))
            return {error.exit(), path + ": " + whole_key(a, row) + line.substr(place.size() - 1)};
    }
    return error;
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
            if (!row.missing.is_null() && row.marks.empty() && !seen_.contains({row.field, row.layers}))
                derive(row.field, row.missing, &row);
        }
        for (const auto& [row, count] : units_) {
            json unit = value_of(fields_, row->unit);
            auto whole = checked_mul(count, unit.get<std::int64_t>());
            if (!whole)
                fail_input(file_.path(), prefix + row->key, "a smaller number", std::to_string(count));
            set_field(fields_, row->field, *whole, file_.path() + ": " + prefix + row->key);
        }
        for (const auto& [field, value] : a_.constants.items())
            if (value.is_object()) derive(field, value);
        for (const auto& [key, length] : lists_) require_one_per_layer(file_.path(), key, length, config_);
        shorten_lists(config_);  // constants' lists are longer than a model of few layers
    }

  private:
    void take(const std::string& key, const ArchitectureKey& row, const GgufValue& value) {
        if (row.ignored) return;
        json says = read_value(file_, key, value);
        if (says_lists(row))
            return set_field(fields_, row.field, mapped(file_, key, row, says), file_.path());
        if (says.is_array()) lists_.emplace_back(key, says.size());
        if (!row.marks.empty()) return;
        if (says.is_array() && !row.per_layer) says = alike(key, says);
        if (!row.equals.is_null()) {
            if (says != row.equals)
                fail_input(file_.path(), key, row.equals.dump(), dumped(says), "others are not supported");
            return;
        }
        says = mapped(file_, key, row, says);
        if (row.positive && !(says.is_number() && says.get<double>() > 0))
            fail_input(file_.path(), key, "a positive number", dumped(says));
        if (row.inverse) {
            if (!says.is_number() || says.get<double>() == 0)
                fail_input(file_.path(), key, "a number other than 0", dumped(says));
            says = 1 / says.get<double>();
        }
        if (!row.unit.empty()) {  // told once the unit has been read
            if (!says.is_number_integer() || says.get<std::int64_t>() < 0)
                fail_input(file_.path(), key, "a whole number", dumped(says));
            units_.emplace_back(&row, says.get<std::int64_t>());
            return;
        }
        auto [before, first] = seen_.emplace(std::pair(row.field, row.layers), says);
        if (!first && before->second != says)
            fail_input(file_.path(), key, dumped(before->second) + " as said before", dumped(says));
        says = placed(row, value_of(fields_, row.field), says);
        set_field(fields_, row.field, says, file_.path() + ": " + key);
    }

    void derive(const std::string& field, const json& value, const ArchitectureKey* row = nullptr) {
        json result = derived(value, fields_);
        if (result.is_null()) return;
        const json now = value_of(fields_, field);
        if (is_whole(now) && result.is_number_float()) {
            const auto number = result.get<double>();
            if (!(std::abs(number) < 1LL << 53)) return;  // of a 0 or a huge number, which resolve() names
            result = static_cast<std::int64_t>(number);
        }
        if (row) result = placed(*row, now, result);
        set_field(fields_, field, result, file_.path());
    }

    /// The one value that an array repeats for every layer.
    json alike(const std::string& key, const json& list) const {
        for (const json& one : list)
            if (one != list[0]) fail_input(file_.path(), key, "the same value for all layers", dumped(list));
        if (list.empty()) fail_input(file_.path(), key, "a value", "an empty array");
        return list[0];
    }

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
        bool each = row.tensor != with_layer(row.tensor, "0");
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
    if (value.is_array() && !value.empty() && value[0].is_string()) {
        const auto words = value.get<std::vector<std::string>>();
        out.add(key, words.size(), [&](std::size_t i) { return std::string_view(words[i]); });
    } else if (value.is_array()) {
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

/// Which layers are marked: nothing where it is as in every file of the family, a number where it can be one.
void write_marks(GgufWriter& out, const std::string& key, const ArchitectureKey& row,
                 const std::vector<bool>& marked) {
    const std::vector<bool> usual = row.missing;
    auto is = [&](auto at) {
        bool same = true;
        for (std::size_t i = 0; same && i < marked.size(); i++) same = marked[i] == at(i);
        return same;
    };
    if (is([&](std::size_t i) { return usual[i % usual.size()]; }) || is([](std::size_t) { return false; }))
        return;
    // The layer that ends each period is not marked; 0: all are.
    const auto first = static_cast<std::size_t>(std::ranges::find(marked, false) - marked.begin());
    const std::size_t period = first == marked.size() ? 0 : first + 1;
    if (period == 0 || (period > 1 && is([&](std::size_t i) { return i % period != period - 1; })))
        return out.add(key, static_cast<std::uint32_t>(period));
    out.add(key, marked);
}

/// The word for the field's value that is written beside such other fields; null: none.
json word_beside(const ArchitectureKey& row, const json& values) {
    for (const auto& [word, fields] : row.beside.items()) {
        bool so = row.values[word] == values[row.field];
        for (const auto& [field, value] : fields.items()) so &= values[field] == value;
        if (so) return word;
    }
    return nullptr;
}

}  // namespace

ModelConfig read_config(const Gguf& file, const Architecture*& architecture) {
    auto name = file.string("general.architecture");
    if (!name) fail_input(file.path(), "general.architecture", "a string", "no such key");
    architecture = architecture_named(*name);
    if (!architecture) {
        std::vector<std::string_view> known;
        for (const Architecture* a : architectures()) known.push_back(a->name);
        fail_input(file.path(), "general.architecture", "one of " + joined(known), *name);
    }
    return read_config(file, *architecture);
}

ModelConfig read_config(const Gguf& file, const Architecture& architecture) {
    ModelConfig config;
    if (architecture.config_key.empty()) {
        KeyReader(file, with_marks(architecture, marks_in(file, architecture)), config).read();
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
    try {
        resolve(config, file.path());
    } catch (const Error& error) {
        throw in_words_of(architecture, file.path(), error);
    }
    return config;
}

void write_config(GgufWriter& out, const Architecture& any, ModelConfig config) {
    out.add("general.architecture", any.name);
    if (!any.config_key.empty()) {
        out.add(any.config_key, to_json(model_fields(config)).dump());
        return;
    }
    const json values = values_of(config);
    const std::vector<bool> marked = marked_layers(any, values, config.layers);
    const Architecture a = with_marks(any, marked);
    for (const ArchitectureKey& row : a.keys) {
        std::string key = whole_key(a, row);
        if (!row.marks.empty()) write_marks(out, key, row, marked);
        if (!row.marks.empty() || row.for_no_layer()) continue;
        if (const json word = word_beside(row, values); !word.is_null()) {
            write_value(out, key, word, config.deepest());
            continue;
        }
        bool silent = !row.missing.is_null() && field_value(row, values) == derived(row.missing, values);
        if (!row.field.empty() && !silent)
            write_value(out, key, with_zeros(row, key_value(row, values), values, config.deepest()),
                        config.deepest());
        else if (row.required && !row.equals.is_null())
            write_value(out, key, row.equals, config.deepest());
    }
}

}  // namespace linnet
