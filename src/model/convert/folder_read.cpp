// A Hugging Face folder: config.json, safetensors, tokenizer.json or tokenizer.model, and what lies beside
// them.
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/fields.h"
#include "base/split.h"
#include "base/terminal.h"
#include "data/utf8_check.h"
#include "model/convert/source.h"
#include "model/convert/tensor_rows.h"
#include "model/huggingface/config.h"
#include "model/huggingface/generation_config.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "text/chat/template.h"
#include "text/files/foreign.h"
#include "text/files/json.h"
#include "text/files/tokenizer_json.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t largest_config = std::size_t{1} << 20, largest_template = std::size_t{1} << 22;

bool there(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// What Python writes and JSON's readers refuse: Infinity becomes the largest f32, and an integer that 64
/// bits cannot hold (a model_max_length of 10^30 stands for none) a number with a point.
std::string readable_numbers(const std::string& text) {
    constexpr std::string_view infinity = "Infinity", of_numbers = "+-.0123456789eE";
    constexpr std::size_t most_digits = 19;
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); i++) {
        if (!quoted && text.compare(i, infinity.size(), infinity) == 0) {
            out += "3.4028234663852886e+38", i += infinity.size() - 1;
            continue;
        }
        if (!quoted && text[i] >= '0' && text[i] <= '9') {
            const std::string number = text.substr(i, text.find_first_not_of(of_numbers, i) - i);
            const bool whole = number.find_first_of(".eE") == number.npos;
            out += whole && number.size() > most_digits ? number + ".0" : number;
            i += number.size() - 1;
            continue;
        }
        if (text[i] == '"') quoted = !quoted;
        out += text[i];
        if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
    }
    return out;
}

/// config.json, and in it as the object `pooling_folder` what sentence-transformers say of pooling.
std::string config_text_of(const std::string& folder) {
    const std::string config_path = folder + "/config.json";
    std::string text = readable_numbers(read_file(config_path, largest_config));
    const std::string pooling_path = folder + "/" + std::string(pooling_folder) + "/config.json";
    if (!there(pooling_path)) return text;
    const auto parsed = [](const std::string& one, const std::string& path) {
        parse_json(one, path);  // its depth, and what is wrong by line
        return nlohmann::ordered_json::parse(one);
    };
    nlohmann::ordered_json config = parsed(text, config_path);
    if (!config.is_object()) return text;  // which is told of it alone
    config[pooling_folder] = parsed(read_file(pooling_path, largest_config), pooling_path);
    return config.dump();
}

/// What sentence-transformers do behind the model, as far as linnet does not.
void add_module_notes(const std::string& folder, std::vector<std::string>& notes) {
    const std::string path = folder + "/modules.json";
    if (!there(path)) return;
    const nlohmann::json modules = parse_json(read_file(path, largest_config), path);
    for (const nlohmann::json& one : modules.is_array() ? modules : nlohmann::json::array()) {
        const nlohmann::json type = one.is_object() ? one.value("type", nlohmann::json()) : nlohmann::json();
        if (!type.is_string()) continue;
        const std::string name = type.get<std::string>(), kind = name.substr(name.rfind('.') + 1);
        if (kind != "Transformer" && kind != "Pooling" && kind != "Normalize")
            notes.push_back(path + ": the module " + printable(kind) + " is left out");
    }
}

/// The weights; a folder that has PyTorch's, too, is read by its safetensors.
std::string weights_of(const std::string& folder, std::vector<std::string>& notes) {
    std::string found;
    bool pickled = false;
    for (const std::string& name : names_in(folder))
        pickled |= name.ends_with(".bin") ? name.starts_with("pytorch_model") : name.ends_with(".pth");
    // In this order, as transformers: one file may have taken the place of parts whose index is left.
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
        if (found.empty() && there(folder + "/" + name)) found = folder + "/" + name;
    constexpr std::string_view either = "model.safetensors or model.safetensors.index.json";
    if (found.empty() && pickled) refuse_pickle(folder, either);
    if (found.empty()) fail_input(folder, "", either, "neither");
    if (pickled) notes.push_back(folder + ": PyTorch's weights are there, too; the safetensors are read");
    return found;
}

/// A JSON file of the folder, where it is there.
class OptionalJson {
  public:
    explicit OptionalJson(const std::string& path) {
        if (!there(path)) return;
        text_ = readable_numbers(read_file(path));
        json_ = std::make_unique<Json>(text_, path);
    }
    std::optional<Json::Value> root() const { return json_ ? std::optional(json_->root()) : std::nullopt; }
    std::optional<Json::Value> operator[](std::string_view key) const {
        if (!json_) return std::nullopt;
        const Json::Value value = json_->root()[key];
        return value.is_null() ? std::nullopt : std::optional(value);
    }

  private:
    std::string text_;
    std::unique_ptr<Json> json_;
};

/// "…" or {"content": "…"}.
std::optional<std::string> spelling(const OptionalJson& file, std::string_view key) {
    const auto value = file[key];
    if (!value) return std::nullopt;
    return std::string(value->is(Json::Kind::object) ? (*value)["content"].string() : value->string());
}

std::optional<bool> flag(const OptionalJson& file, std::string_view key) {
    const auto value = file[key];
    return value ? std::optional(value->boolean()) : std::nullopt;
}

void take_ends(const std::string& path, TokenizerHints& hints) {
    if (!hints.ends.empty()) return;
    const OptionalJson file(path);
    const auto value = file["eos_token_id"];
    if (!value) return;
    auto take = [&](Json::Value id) { hints.ends.push_back(static_cast<TokenId>(id.integer(0, INT32_MAX))); };
    value->is(Json::Kind::array) ? value->elements(take) : take(*value);
    hints.ends_file = path;
}

/// The chat template that has a file of its own.
std::optional<ChosenTemplate> template_file(const std::string& folder) {
    const std::string path = folder + "/" + folder_template_name;
    if (!there(path)) return std::nullopt;
    std::string text = read_file(path, largest_template);
    if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size())
        fail_input(path, "byte " + std::to_string(valid), "UTF-8", utf8_fault_name(text, valid));
    return ChosenTemplate{std::move(text), path, ""};
}

constexpr std::string_view configured_key = "chat_template";

/// That of tokenizer_config.json: a text, or a list of named ones of which "default" is the model's.
std::string configured_template(const OptionalJson& settings) {
    const auto value = settings[configured_key];
    if (!value) return {};
    if (value->is(Json::Kind::string)) return std::string(value->string());
    std::string found;
    value->elements([&](Json::Value one) {
        if (found.empty() || one["name"].string() == "default") found = one["template"].string();
    });
    return found;
}

/// The one of the two that counts. `settings`: tokenizer_config.json; null: read where it is needed.
ChosenTemplate template_of(const std::string& folder, const OptionalJson* settings) {
    if (std::optional<ChosenTemplate> chat = template_file(folder)) return *std::move(chat);
    const std::string path = folder + "/" + folder_settings_name;
    return {settings ? configured_template(*settings) : configured_template(OptionalJson(path)), path,
            std::string(configured_key)};
}

/// Tokens that a folder adds to those of its tokenizer.model: {"<token>": id} in added_tokens.json, and with
/// what is special about them {"id": {"content": …}} in tokenizer_config.json.
std::vector<AddedToken> added_tokens(const std::string& folder, const OptionalJson& settings) {
    std::map<TokenId, AddedToken> by_id;
    const OptionalJson older(folder + "/added_tokens.json");
    if (const auto root = older.root())
        root->members([&](std::string_view content, Json::Value value) {
            const auto id = static_cast<TokenId>(value.integer(0, INT32_MAX));
            AddedToken& token = by_id[id];
            token.id = id, token.content = content;
            // It does not say whether a token is special, but some look so.
            token.special = content.starts_with("<|") && content.ends_with("|>");
        });
    if (const auto list = settings["added_tokens_decoder"])
        list->members([&](std::string_view number, Json::Value value) {
            TokenId id = -1;
            const char* end = number.data() + number.size();
            if (std::from_chars(number.data(), end, id).ptr != end || id < 0)
                value.fail("an id as its key", linnet::quoted(number));
            AddedToken token = added_token_from_json(value, id);
            if (value["special"].is_null()) token.special = by_id[id].special;
            token.normalized = false;  // a .model's normalizer is not for them
            by_id[id] = std::move(token);
        });
    std::vector<AddedToken> tokens;
    for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
    return tokens;
}

/// `size`: of the embedding; 0: not known. What is left out is added to `notes`.
TokenizerPtr tokenizer_of(const std::string& folder, TokenId size, const OptionalJson& settings,
                          std::vector<std::string>& notes) {
    TokenizerHints hints;
    hints.size = size;
    hints.bos = spelling(settings, "bos_token"), hints.eos = spelling(settings, "eos_token");
    hints.padding = spelling(settings, "pad_token"), hints.unknown = spelling(settings, "unk_token");
    hints.add_bos = flag(settings, "add_bos_token"), hints.add_eos = flag(settings, "add_eos_token");
    take_ends(folder + "/" + std::string(generation_name), hints);
    take_ends(folder + "/config.json", hints);
    const std::string json = folder + "/tokenizer.json", pieces = folder + "/tokenizer.model";
    if (there(json)) return tokenizer_from_json(read_file(json), json, hints);
    if (there(pieces)) {
        hints.added = added_tokens(folder, settings);
        std::erase_if(hints.added, [&](const AddedToken& token) {
            if (size == 0 || token.id < size) return false;
            notes.push_back(folder + ": added token " + linnet::quoted(printable(token.content)) + ", " +
                            std::to_string(token.id) + ", has no row in the embedding and is left out");
            return true;
        });
        return tokenizer_from_sentencepiece(read_file(pieces), pieces, hints);
    }
    fail_input(folder, "", "tokenizer.json or tokenizer.model", "neither");
}

std::string described(const ParameterRows& rows) {
    std::string out = rows.tensors[0];
    if (rows.tensors.size() > 1) out += " and " + std::to_string(rows.tensors.size() - 1) + " more, stacked";
    if (rows.transpose) out += ", transposed";
    if (rows.groups > 1) out += ", its rows regrouped";
    if (rows.head > 0) out += ", its heads' rows in turn";
    if (rows.transform == ValueTransform::less_one) out += ", plus 1";
    if (rows.transform == ValueTransform::log) out += ", its negative exponential";
    return out;
}

/// What the tensors need for as long as they are read.
struct Opened {
    Safetensors file;
    Graph graph;
    std::vector<std::unique_ptr<ParameterReader>> readers;  // null: from `vectors`
    std::map<std::string, std::vector<float>> vectors;
};

MadeRows made_rows(const ParameterReader& reader, DType type) {
    return {reader.rows().rows, reader.rows().columns,
            [&reader, type](const Window& window, std::byte* out) { reader.read(window, type, out); }};
}

/// The part of a tensor that is one parameter.
SourceTensor one_parameter(const Opened& opened, std::size_t index, const OpenOptions& options) {
    const Parameter& p = opened.graph.parameters()[index];
    SourceTensor t{p.name, DType::f32, p.stored(), {}, {}, {}, {}};
    if (const ParameterReader* reader = opened.readers[index].get()) {
        t.type = gguf_type(p, reader->type(), options);
        t.in_place = reader->in_place(t.type);
        t.from = described(reader->rows());
        t.made.push_back(made_rows(*reader, t.type));
    } else {
        t.in_place = std::as_bytes(std::span(opened.vectors.at(p.name)));
        t.from = "config.json";
    }
    return t;
}

SourceTensor whole_tensor(const Opened& opened, const StoredTensor& stored, const OpenOptions& options) {
    SourceTensor first = one_parameter(opened, stored.parts[0], options);
    first.name = stored.name, first.shape = stored.shape;
    if (stored.parts.size() == 1) return first;
    SourceTensor whole = first;
    std::vector<SourceTensor> parts;
    bool apart = true;
    for (std::size_t part : stored.parts) {
        SourceTensor one = one_parameter(opened, part, options);
        if (one.type != whole.type) whole.type = DType::f32;
        apart &= !one.in_place.empty();
        if (one.from != whole.from) whole.from += "; " + one.from;
        parts.push_back(std::move(one));
    }
    if (apart) {
        whole.apart = parts;
        // Of one tensor of the folder, in its order: the whole as it lies.
        const std::byte* at = parts[0].in_place.data();
        std::size_t bytes = 0;
        for (const SourceTensor& part : parts) {
            apart &= part.in_place.data() == at + bytes && part.type == whole.type;
            bytes += part.in_place.size();
        }
        whole.in_place = apart ? std::span(at, bytes) : std::span<const std::byte>();
    } else {
        whole.in_place = {};
    }
    whole.made.clear();
    for (std::size_t part : stored.parts) whole.made.push_back(made_rows(*opened.readers[part], whole.type));
    return whole;
}

/// What GGUF says beside the tensors; a tokenizer that it has no name for stays the source's own.
void add_metadata(const HuggingFaceConfig& file, const ModelConfig& config, ModelSource& source) {
    const std::string& path = source.path;
    write_config(source.metadata, *file.family().gguf, config);
    source.metadata.add("general.name", last_name(path));
    const OptionalJson settings(path + "/" + folder_settings_name);
    TokenizerPtr tokenizer =
        tokenizer_of(path, static_cast<TokenId>(config.vocabulary), settings, source.notes);
    try {
        tokenizer->write(source.metadata);
    } catch (const Error&) {  // no name for its pre-tokenizer
        source.tokenizer = tokenizer;
    }
    if (const std::string chat = template_of(path, &settings).source; !chat.empty())
        source.metadata.add(chat_template_key, std::string_view(chat));
    if (const std::string generation = path + "/" + std::string(generation_name); there(generation))
        add_generation_config(source.metadata, readable_numbers(read_file(generation, largest_generation)),
                              generation);
    source.metadata.add(kept_config, nlohmann::ordered_json::parse(file.text()).dump());
}

/// Every tensor of the file must be a parameter's, or mean nothing.
void refuse_others(const Safetensors& file, const HuggingFaceFamily& family, const Opened& opened,
                   bool prefixed) {
    std::set<std::string_view> used;
    for (const auto& reader : opened.readers)
        if (reader) used.insert(reader->rows().tensors.begin(), reader->rows().tensors.end());
    for (const SafetensorsTensor& t : file.tensors())
        if (!used.contains(t.name) && !is_spare(family, t.name, prefixed))
            fail_input(file.path_of(t), t.name, "a tensor of the family " + family.model_type,
                       "an unknown one");
}

void add_narrowing_note(const Opened& opened, ModelSource& source) {
    for (const auto& reader : opened.readers)
        if (reader && reader->type() == DType::f64) {
            source.notes.push_back(opened.file.path() + ": F64 tensors are narrowed to f32");
            return;
        }
}

/// Norms that were TensorFlow's have "gamma" and "beta" for weight and bias.
void take_old_names(const Safetensors& file, ParameterRows& rows) {
    for (std::string& name : rows.tensors)
        for (const auto& [now, old] : {std::pair(".weight", ".gamma"), std::pair(".bias", ".beta")})
            if (name.ends_with(now) && !file.tensor(name)) {
                const std::string before = name.substr(0, name.rfind('.')) + old;
                if (file.tensor(before)) name = before;
            }
}

/// The embedding's name with the family's prefix, or, where the files lack that, without.
const SafetensorsTensor& embedding_of(const Safetensors& file, const HuggingFaceFamily& family,
                                      bool& prefixed) {
    const auto row = family.places.find("token_embd");
    const std::string name = family.tensors.at(row->second.first).tensor + ".weight";
    const SafetensorsTensor* t = file.tensor(name);
    prefixed = t || family.prefix.empty() || !name.starts_with(family.prefix);
    if (!prefixed) t = file.tensor(name.substr(family.prefix.size()));
    if (!t) fail_input(file.path(), name, "a tensor", "none");
    if (t->rank != 2) fail_input(file.path_of(*t), name, "a matrix", std::to_string(t->rank) + " dimensions");
    return *t;
}

/// A setting that GGUF's family has no key for would be lost on the way.
void refuse_unsaid(const HuggingFaceConfig& file, const ModelConfig& config) {
    const HuggingFaceFamily& family = file.family();
    const std::string name = "GGUF's family " + family.gguf->name;
    const std::optional<ModelConfig> kept = through(*family.gguf, config);
    if (!kept) fail_input(file.path(), "", "a model that " + name + " can say", "another");
    const std::string field = differing_field(*kept, config);
    if (field.empty()) return;
    std::string place = field;
    for (const HuggingFaceKey& row : family.keys)
        if (row.field == field && !file.value(row.key).is_null()) place = row.key;
    fail_input(file.path(), place, field + " " + values_of(*kept)[field].dump() + ", as in " + name,
               values_of(config)[field].dump());
}

}  // namespace

ChosenTemplate folder_chat_template(const std::string& path) {
    return template_of(path, nullptr);
}

TokenizerPtr tokenizer_at(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return load_tokenizer(path);
    std::vector<std::string> none;
    return tokenizer_of(path, 0, OptionalJson(path + "/" + folder_settings_name), none);
}

ModelSource open_folder(const std::string& path, const OpenOptions& options) {
    ModelSource source;
    source.path = path;
    const std::string config_path = path + "/config.json";
    const std::string config_text = config_text_of(path);
    const HuggingFaceConfig file(config_text, config_path);
    const HuggingFaceFamily& family = file.family();
    auto opened =
        std::make_shared<Opened>(Opened{Safetensors::open(weights_of(path, source.notes)), {}, {}, {}});
    const HuggingFaceFamily& naming = file.around() ? *file.around() : family;
    if (const std::size_t others = opened->file.rename(naming.names, file.around() != nullptr))
        source.notes.push_back(opened->file.path() + ": " + std::to_string(others) + " tensors of " +
                               naming.model_type + " that are no part of its text model are left out");
    bool prefixed = true;
    const std::int64_t vocabulary = embedding_of(opened->file, family, prefixed).shape.dim[0];
    if (vocabulary < 1 || vocabulary > 1 << 24)
        fail_input(opened->file.path(), "embedding", "1 to 2^24 rows", std::to_string(vocabulary));
    const ModelConfig config = file.read(
        [&](const std::string& name) {
            return opened->file.tensor(prefixed || !name.starts_with(family.prefix)
                                           ? name
                                           : name.substr(family.prefix.size())) != nullptr;
        },
        vocabulary);
    refuse_unsaid(file, config);
    opened->graph = trace(config, false).graph;
    opened->vectors = file.vectors(config);
    std::vector<ParameterRows> rows = parameter_rows(family, config, opened->graph, prefixed);
    for (std::size_t i = 0; i < rows.size(); i++) {
        take_old_names(opened->file, rows[i]);
        const std::string& name = opened->graph.parameters()[i].name;
        if (rows[i].tensors.empty() && !opened->vectors.contains(name))
            fail_input(config_path, "", "a model that the family " + family.model_type + " can say",
                       "one with the parameter " + name);
        opened->readers.push_back(
            rows[i].tensors.empty() ? nullptr : std::make_unique<ParameterReader>(opened->file, rows[i]));
    }
    refuse_others(opened->file, family, *opened, prefixed);
    add_narrowing_note(*opened, source);
    add_module_notes(path, source.notes);
    const std::string unknown = joined(file.unknown());
    if (!unknown.empty())
        source.notes.push_back(config_path + ": keys that mean nothing here: " + printable(unknown));
    add_metadata(file, config, source);
    for (const StoredTensor& stored : stored_tensors(opened->graph, *family.gguf, nullptr))
        source.tensors.push_back(whole_tensor(*opened, stored, options));
    source.keep = opened;
    return source;
}

}  // namespace linnet
