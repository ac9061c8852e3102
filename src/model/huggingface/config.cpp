// config.json read into a config, and written from one, by a family's rows.
#include "model/huggingface/config.h"

#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/json_line.h"
#include "model/architecture_rows.h"

namespace linnet {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using When = std::map<std::string, std::vector<std::string>>;

/// A scalar as `values` and `when` spell it.
std::string text_of(const json& value) {
    return value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
}

bool applies(const When& when, const std::map<std::string, json>& values) {
    for (const auto& [key, texts] : when) {
        auto found = values.find(key);
        const std::string text = found == values.end() ? "" : text_of(found->second);
        const bool listed = std::find(texts.begin(), texts.end(), text) != texts.end();
        if (!listed && (!texts[0].starts_with('!') || texts[0].substr(1) == text)) return false;
    }
    return true;
}

/// The number that a key's share is of: of 0, which stands for a default, the default.
double whole_of(const json& fields, const std::string& field) {
    const double value = fields[field].get<double>();
    if (value != 0 || field != "model.head_width") return value;
    const json& heads = fields["model.heads"];
    const double h = heads.is_array() ? heads[0].get<double>() : heads.get<double>();
    return h == 0 ? 0 : std::floor(fields["model.width"].get<double>() / h);
}

/// What the key's number is multiplied by.
double factor_of(const HuggingFaceKey& row, const json& fields) {
    if (row.times.is_null()) return 1;
    return row.times.is_string() ? whole_of(fields, row.times) : derived(row.times, fields).get<double>();
}

// Values that config.json has as lists or by formulas.

struct MadeInput {
    const std::map<std::string, json>& values;
    std::string path, from;
    const ModelConfig& config;

    double number(const std::string& key) const {
        auto found = values.find(from + "." + key);
        if (found == values.end() || !found->second.is_number())
            fail_input(path, from + "." + key, "a number",
                       found == values.end() ? "none" : dumped(found->second));
        return found->second.get<double>();
    }
};

std::int64_t turned_pairs(const ModelConfig& config) {
    return (config.position.rotary_width ? config.position.rotary_width : config.head_width) / 2;
}

std::vector<float> made_list(const MadeInput& in) {
    auto found = in.values.find(in.from);
    const auto pairs = static_cast<std::size_t>(turned_pairs(in.config));
    if (found == in.values.end() || !found->second.is_array() || found->second.size() != pairs)
        fail_input(in.path, in.from, "a list of " + std::to_string(pairs) + " numbers",
                   found == in.values.end()   ? "none"
                   : found->second.is_array() ? std::to_string(found->second.size())
                                              : found->second.type_name());
    std::vector<float> list;
    for (const json& one : found->second) {
        if (!one.is_number()) fail_input(in.path, in.from, "numbers", dumped(one));
        list.push_back(one.get<float>());
    }
    return list;
}

/// LLaMA 3.1's: long waves are `factor` times as long, short ones as they were, those between blended
/// (transformers, modeling_rope_utils.py, _compute_llama3_parameters).
std::vector<float> llama3_factors(const ModelConfig& config, double factor, double low, double high,
                                  double original) {
    std::vector<float> list;
    const double width = 2.0 * static_cast<double>(turned_pairs(config));
    for (std::int64_t i = 0; i < turned_pairs(config); i++) {
        const double frequency = std::pow(config.position.theta.at(0), -2.0 * static_cast<double>(i) / width);
        const double wave = 2 * std::numbers::pi / frequency;
        double divisor = 1;
        if (wave > original / low) {
            divisor = factor;
        } else if (wave >= original / high) {
            const double smooth = (original / wave - low) / (high - low);
            divisor = 1 / ((1 - smooth) / factor + smooth);
        }
        list.push_back(static_cast<float>(divisor));
    }
    return list;
}

std::vector<float> made_llama3(const MadeInput& in) {
    const double low = in.number("low_freq_factor"), high = in.number("high_freq_factor"),
                 factor = in.number("factor"), original = in.number("original_max_position_embeddings");
    if (!(low > 0 && high > low && factor > 0 && original > 0))
        fail_input(in.path, in.from, "0 < low_freq_factor < high_freq_factor, 0 < factor", "others");
    return llama3_factors(in.config, factor, low, high, original);
}

/// LongRoPE's scale of turned queries and keys (transformers, _compute_longrope_parameters).
std::vector<float> made_longrope(const MadeInput& in) {
    if (auto given = in.values.find(in.from + ".attention_factor"); given != in.values.end())
        return {static_cast<float>(in.number("attention_factor"))};
    const double original = static_cast<double>(in.config.original_context());
    const double factor = static_cast<double>(in.config.context) / original;
    return {static_cast<float>(factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original)))};
}

using Put = std::function<void(const std::string& key, const ordered_json& value)>;

}  // namespace

double shortest(double value) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
    double back = value;
    std::from_chars(text, end, back);
    return back;
}

namespace {

bool write_list(const std::vector<float>& list, const std::string& key, const ModelConfig&, const Put& put) {
    ordered_json values = ordered_json::array();
    for (float one : list) values.push_back(shortest(one));
    put(key, values);
    return true;
}

bool write_attention(const std::vector<float>& value, const std::string& key, const ModelConfig&,
                     const Put& put) {
    put(key + ".attention_factor", shortest(value.at(0)));
    return true;
}

/// By the settings of the models that are known; others have no way back from the factors.
bool write_llama3(const std::vector<float>& list, const std::string& key, const ModelConfig& config,
                  const Put& put) {
    const double factor = list.empty() ? 0 : *std::max_element(list.begin(), list.end());
    constexpr double low = 1, high = 4, original = 8192;
    const std::vector<float> known = llama3_factors(config, factor, low, high, original);
    for (std::size_t i = 0; i < list.size(); i++)
        if (i >= known.size() || std::abs(list[i] - known[i]) > 1e-5F * known[i]) return false;
    put(key + ".factor", shortest(factor));
    put(key + ".low_freq_factor", low), put(key + ".high_freq_factor", high);
    put(key + ".original_max_position_embeddings", static_cast<std::int64_t>(original));
    return true;
}

struct MadeBy {
    std::string_view name;
    std::vector<float> (*read)(const MadeInput&);
    /// False where no keys give these values.
    bool (*write)(const std::vector<float>&, const std::string&, const ModelConfig&, const Put&);
    const char* members[4];  // that `read` asks for
};
constexpr MadeBy made_by[] = {
    {"list", made_list, write_list, {}},
    {"llama3",
     made_llama3,
     write_llama3,
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"longrope-attention", made_longrope, write_attention, {"attention_factor"}},
};

const MadeBy& made_row(const std::string& name) {
    for (const MadeBy& row : made_by)
        if (row.name == name) return row;
    throw std::logic_error("huggingface.made: " + name);
}

}  // namespace

bool made_reads(const std::string& by, const std::string& member) {
    const MadeBy& row = made_row(by);
    return std::any_of(std::begin(row.members), std::end(row.members),
                       [&](const char* name) { return name && member == name; });
}

namespace {

json as_float(const json& value) {
    if (value.is_number_float()) return static_cast<float>(value.get<double>());
    if (!value.is_array()) return value;
    json list = json::array();
    for (const json& one : value) list.push_back(as_float(one));
    return list;
}

}  // namespace

std::string differing_field(const ModelConfig& a, const ModelConfig& b) {
    const json one = values_of(a), other = values_of(b);
    for (const auto& [key, value] : one.items())
        if (as_float(value) != as_float(other[key]) && !of_training(key)) return key;
    return "";
}

bool same_settings(const ModelConfig& a, const ModelConfig& b) {
    return a.vocabulary == b.vocabulary && differing_field(a, b).empty();
}

bool HuggingFaceConfig::applies(const When& when) const {
    return linnet::applies(when, values_);
}

/// One reading of one file.
class HuggingFaceConfigReader {
  public:
    HuggingFaceConfigReader(const HuggingFaceConfig& file, ModelConfig& config)
        : file_(file), family_(file.family()), config_(config), fields_(model_fields(config)) {}

    void read() {
        constants(false);
        for (const bool reckoned : {false, true}) {  // rows with "offset" are neither's
            auto each = [&](auto what) {
                for (const HuggingFaceKey& row : family_.keys)
                    if (row.reckoned() == reckoned && row.offset.empty() && file_.applies(row.when))
                        (this->*what)(row);
            };
            each(&HuggingFaceConfigReader::take), each(&HuggingFaceConfigReader::fall_back);
        }
        for (const HuggingFaceKey& row : family_.keys)
            if (!row.offset.empty()) mark(row);
        for (const auto& [key, length] : lists_) require_one_per_layer(file_.path(), key, length, config_);
        constants(true);
        shorten_lists(config_);
    }

    /// Those that other values decide, at the end.
    void made() {
        for (const HuggingFaceMade& made : family_.made)
            if (!made.field.empty() && file_.applies(made.when))
                set_field(fields_, made.field,
                          made_row(made.by).read({file_.values_, file_.path(), made.from, config_}).at(0),
                          file_.path());
    }

  private:
    void constants(bool of_others) {
        for (const auto& [field, value] : family_.constants.items())
            if (value.is_object() == of_others)
                set_field(fields_, field, derived(value, fields_), file_.path());
    }

    void set(const HuggingFaceKey& row, json value) {
        if (!row.zero.is_null()) {  // as near as GGUF's floats tell
            const double zero = derived(row.zero, fields_);
            if (std::isfinite(zero) && std::abs(value.get<double>() - zero) <= 6e-8 * zero) value = 0;
        }
        set_field(fields_, row.field, placed(row, value_of(fields_, row.field), value),
                  file_.path() + ": " + row.key);
    }

    void check_equal(const HuggingFaceKey& row, const json& says) const {
        bool same = says == row.equals;
        if (row.equals.is_array() && says.is_array() && !row.equals.empty()) {  // a pattern over the layers
            same = true;
            for (std::size_t i = 0; i < says.size(); i++)
                same &= says[i] == row.equals[i % row.equals.size()];
        }
        if (!same)
            fail_input(file_.path(), row.key, row.equals.dump(), dumped(says), "others are not supported");
    }

    /// Layers i with i % period == offset have one value, the others another.
    void mark(const HuggingFaceKey& row) {
        std::int64_t numbers[2];
        for (const int i : {0, 1}) {
            const std::string& key = i == 0 ? row.key : row.offset;
            const json says = file_.value(key), number = says.is_null() ? row.missing[i] : says;
            const std::int64_t most = i == 0 ? 1 << 16 : numbers[0] - 1;
            if (!number.is_number_integer() || number < 1 - i || number > most)
                fail_input(file_.path(), key,
                           "a whole number from " + std::to_string(1 - i) + " to " + std::to_string(most),
                           dumped(number));
            numbers[i] = number;
        }
        const json marked = row.marked.is_null() ? value_of(fields_, row.field) : row.marked;
        json list = json::array();
        for (std::int64_t layer = 0; layer < config_.layers; layer++)
            list.push_back(layer % numbers[0] == numbers[1] ? marked : row.unmarked);
        set_field(fields_, row.field, list, file_.path() + ": " + row.key);
    }

    /// Of a row that no key has told.
    void fall_back(const HuggingFaceKey& row) {
        if (!file_.value(row.key).is_null() || seen_.contains({row.field, row.layers})) return;
        const bool null = !row.if_null.is_null() && file_.nulls_.contains(row.key);
        if (const json& value = null ? row.if_null : row.missing; !value.is_null())
            set(row, derived(value, fields_));
    }

    void take(const HuggingFaceKey& row) {
        json says = file_.value(row.key);
        if (says.is_null()) {
            if (row.equals == "none" && file_.has_members(row.key))
                fail_input(file_.path(), row.key, "none", "an object");
            if (row.required && row.equals.is_null())
                fail_input(file_.path(), row.key, "a value", "no such key");
            return;
        }
        if (row.ignored) return;
        if (!row.equals.is_null()) return check_equal(row, says);
        if (says.is_array() && !row.per_layer)
            fail_input(file_.path(), row.key, "one value for all layers", dumped(says));
        if (says.is_array()) lists_.emplace_back(row.key, says.size());
        if (!row.values.is_null()) says = meaning_of(row, text_of(says), file_.path(), row.key);
        if (row.inverse) says = 1 / number(row, says);
        if (!row.times.is_null() || row.power != 1) says = reckon(row, says);
        auto [before, first] = seen_.emplace(std::pair(row.field, row.layers), says);
        if (!first && before->second != says)
            fail_input(file_.path(), row.key, dumped(before->second) + ", as another key says", dumped(says));
        set(row, says);
    }

    double number(const HuggingFaceKey& row, const json& says, bool zero = false) const {
        if (!says.is_number() || (says.get<double>() == 0 && !zero))
            fail_input(file_.path(), row.key, zero ? "a number" : "a number other than 0", dumped(says));
        return says.get<double>();
    }

    /// key ^ power · times; a whole number as transformers takes it: int(…).
    json reckon(const HuggingFaceKey& row, const json& says) const {
        constexpr double most = 1 << 24;
        const json fields = values_of(config_);
        const bool share = row.times.is_string();
        const double factor = factor_of(row, fields);
        const double value = std::pow(number(row, says, row.power == 1 && !share), row.power) * factor;
        if (!is_whole(fields[row.field])) return value;
        if (!(value >= 0 && value <= most))
            fail_input(file_.path(), row.key,
                       "a share from 0 to " + dumped(json(share ? 1 : std::floor(most / factor))),
                       dumped(says));
        return row.power == 1 ? static_cast<std::int64_t>(value) : std::llround(value);
    }

    const HuggingFaceConfig& file_;
    const HuggingFaceFamily& family_;
    ModelConfig& config_;
    std::vector<Field> fields_;
    std::map<std::pair<std::string, std::vector<bool>>, json> seen_;
    std::vector<std::pair<std::string, std::size_t>> lists_;  // keys with a value for each layer
};

ModelConfig HuggingFaceConfig::read(const std::function<bool(const std::string&)>& there,
                                    std::int64_t vocabulary) const {
    ModelConfig config;
    HuggingFaceConfigReader reader(*this, config);
    reader.read();
    std::vector<Field> fields = model_fields(config);
    for (const TensorPresence& row : family_->presence)
        set_field(fields, row.field, there(with_layer(row.tensor, "0")) ? row.present : row.absent, path_);
    for (const std::string& key : {family_->vocabulary, std::string("vocab_size")})
        if (const json told = value(key); !told.is_null() && told != vocabulary)
            fail_input(path_, key, std::to_string(vocabulary) + ", as many as the embedding has rows",
                       dumped(told));
    config.vocabulary = vocabulary;
    resolve(config, path_);
    reader.made();
    return config;
}

std::map<std::string, std::vector<float>> HuggingFaceConfig::vectors(const ModelConfig& config) const {
    std::map<std::string, std::vector<float>> all;
    for (const HuggingFaceMade& made : family_->made)
        if (!made.parameter.empty() && applies(made.when))
            all[made.parameter] = made_row(made.by).read({values_, path_, made.from, config});
    return all;
}

namespace {

/// Collects config.json.
class ConfigWriter {
  public:
    ConfigWriter(const HuggingFaceFamily& family, const ModelConfig& config)
        : family_(family), config_(config), fields_(values_of(config)) {}

    /// Null where a row has no word for its field's value.
    ordered_json write(const std::map<std::string, std::vector<float>>& vectors) {
        put("architectures", ordered_json::array({family_.class_name}));
        put("model_type", family_.model_type);
        for (const HuggingFaceKey& row : family_.keys)
            if (row.written && linnet::applies(row.when, flat_) && !flat_.contains(row.key) && !write(row))
                return {};
        for (const auto& [name, values] : vectors)
            if (!make(name, values)) return {};
        for (const HuggingFaceMade& made : family_.made)
            if (!made.field.empty() && linnet::applies(made.when, flat_))
                write_made(made, {fields_[made.field].get<float>()});
        put(family_.vocabulary, config_.vocabulary);
        return out_;
    }

  private:
    void put(const std::string& key, const ordered_json& value) {
        const std::size_t dot = key.find('.');
        (dot == key.npos ? out_[key] : out_[key.substr(0, dot)][key.substr(dot + 1)]) = value;
        flat_[key] = json(value);
    }

    bool write_made(const HuggingFaceMade& made, const std::vector<float>& values) {
        return made_row(made.by).write(values, made.from, config_,
                                       [&](const auto& key, const auto& value) { put(key, value); });
    }

    /// Whether a row says this parameter's values.
    bool make(const std::string& parameter, const std::vector<float>& values) {
        for (const HuggingFaceMade& made : family_.made)
            if (made.parameter == parameter && linnet::applies(made.when, flat_) && write_made(made, values))
                return true;
        return false;
    }

    ordered_json expanded(const json& value) const {
        if (!value.is_array()) return value.is_number_float() ? json(shortest(value.get<double>())) : value;
        ordered_json list = ordered_json::array();
        for (std::int64_t layer = 0; layer < config_.layers; layer++)
            list.push_back(expanded(value[static_cast<std::size_t>(layer) % value.size()]));
        return list;
    }

    /// Whether the row says of itself that it is not written beside such values.
    bool silent(const HuggingFaceKey& row) const {
        bool all = !row.silent.is_null();
        for (const auto& [field, same] : row.silent.items()) all &= fields_[field] == same;
        return all;
    }

    /// What the key says of a field that is reckoned from it; null where it cannot.
    ordered_json unreckoned(const HuggingFaceKey& row, double value) const {
        const double factor = factor_of(row, fields_);
        if (value == 0 && !row.zero.is_null()) value = derived(row.zero, fields_);
        double says = std::pow(value / factor, 1 / row.power);
        if (!std::isfinite(says)) return {};
        auto back = [&](double key) { return std::pow(key, row.power) * factor; };
        if (is_whole(fields_[row.field]))
            while (static_cast<std::int64_t>(back(says)) < static_cast<std::int64_t>(value))
                says = std::nextafter(says, HUGE_VAL);
        else if (static_cast<float>(back(shortest(says))) == static_cast<float>(value))
            says = shortest(says);
        const bool share = row.times.is_string();
        return !share && std::floor(says) == says && std::abs(says) < 1e9
                   ? ordered_json(static_cast<std::int64_t>(says))
                   : ordered_json(says);
    }

    /// False where no period and offset give the field's values.
    bool write_marks(const HuggingFaceKey& row) {
        if (silent(row)) return true;
        const json value = fields_[row.field];
        const auto at = [&](std::int64_t layer) {
            return value.is_array() ? value[static_cast<std::size_t>(layer) % value.size()] : value;
        };
        json marked = row.marked;
        std::vector<bool> marks;
        for (std::int64_t layer = 0; layer < config_.layers; layer++) {
            marks.push_back(at(layer) != row.unmarked);
            if (marks.back() && marked.is_null()) marked = at(layer);
            if (marks.back() && at(layer) != marked) return false;
        }
        const auto mark = [&](std::int64_t from) {
            return std::find(marks.begin() + from, marks.end(), true) - marks.begin();
        };
        // The offset is the first mark; the least period puts the next one where it stands, or behind all
        // layers.
        const std::int64_t offset = mark(0),
                           next = offset < config_.layers ? mark(offset + 1) : config_.layers;
        const std::int64_t period =
            next < config_.layers ? next - offset : std::max(offset + 1, config_.layers - offset);
        if (offset >= period) return false;
        for (std::int64_t layer = 0; layer < config_.layers; layer++)
            if (marks[static_cast<std::size_t>(layer)] != (layer % period == offset)) return false;
        put(row.key, period), put(row.offset, offset);
        return true;
    }

    bool write(const HuggingFaceKey& row) {
        if (!row.offset.empty()) return write_marks(row);
        if (row.ignored) {
            if ((row.writes_null || !row.write.is_null()) && !silent(row)) put(row.key, row.write);
            return true;
        }
        if (!row.equals.is_null()) {
            if (row.required) put(row.key, expanded(row.equals));
            return true;
        }
        json value = key_value(row, fields_);
        if (row.write.is_string() &&
            row.values.value(row.write.get<std::string>(), json()) == fields_[row.field])
            value = row.write;
        if (value.is_null() || (!row.never.is_null() && fields_[row.field] == row.never)) return false;
        if (silent(row)) return true;
        if (!row.if_null.is_null() && fields_[row.field] == row.if_null) {
            put(row.key, nullptr);
            return true;
        }
        const bool nested = row.key.find('.') != row.key.npos;
        if (nested && !row.missing.is_null() && field_value(row, fields_) == derived(row.missing, fields_))
            return true;
        if (!row.times.is_null() || row.power != 1) {
            const ordered_json says = unreckoned(row, value.get<double>());
            if (!says.is_null()) put(row.key, says);
            return !says.is_null();
        }
        put(row.key, expanded(row.per_layer && !value.is_array() ? json::array({value}) : value));
        return true;
    }

    const HuggingFaceFamily& family_;
    const ModelConfig& config_;
    json fields_;
    ordered_json out_ = ordered_json::object();
    std::map<std::string, json> flat_;
};

}  // namespace

ordered_json huggingface_config(const HuggingFaceFamily& family, const ModelConfig& config,
                                const std::map<std::string, std::vector<float>>& vectors) {
    return ConfigWriter(family, config).write(vectors);
}

}  // namespace linnet
