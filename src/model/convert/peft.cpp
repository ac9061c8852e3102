#include "model/convert/peft.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "formats/safetensors.h"
#include "model/convert/new_folder.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/convert/tensor_rows.h"
#include "model/narrow.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* config_name = "adapter_config.json";
constexpr const char* weights_name = "adapter_model";
constexpr std::string_view prefix = "base_model.model.", mark_a = ".lora_A.weight", mark_b = ".lora_B.weight";

const NewFolder::Names folder_names{
    config_name,
    [](std::string_view name) { return name == std::string(weights_name) + ".safetensors"; },
    {folder_template_name},
    "config.json"};

/// Where the rows of the model's parameters stand in the modules of its family.
struct Modules {
    const HuggingFaceFamily* family;
    std::map<std::string, ParameterRows> rows;  // by parameter

    /// `prefixed`: names begin with the family's prefix, as in a class with a head ("model.", "bert.").
    Modules(const Model& base, bool prefixed) : family(folder_family(*base.file())) {
        if (!family)
            fail_input(base.path(), "",
                       "a model that a family of transformers has, as PEFT's names are theirs", "another");
        const Graph& graph = base.traced().graph;
        const std::vector<ParameterRows> all = parameter_rows(*family, base.config(), graph, prefixed);
        for (std::size_t i = 0; i < all.size(); i++) rows[graph.parameters()[i].name] = all[i];
    }
    /// The module that holds a parameter; empty where that is not one matrix.
    std::string module_of(const std::string& parameter) const {
        const ParameterRows& r = rows.at(parameter);
        constexpr std::string_view weight = ".weight";
        if (r.tensors.size() != 1 || r.shape.rank != 2 || !r.tensors[0].ends_with(weight)) return "";
        return r.tensors[0].substr(0, r.tensors[0].size() - weight.size());
    }
};

/// Encoders are their family's bare class.
bool has_head(const Model& base) {
    return base.config().kind != "encoder";
}

struct Settings {
    double alpha = 0;
    bool root = false;  // the scale is alpha / √rank
    double scale(std::int64_t rank) const {
        const auto r = static_cast<double>(rank);
        return alpha / (root ? std::sqrt(r) : r);
    }
};

Settings read_settings(const std::string& path) {
    const json config = parse_json(read_file(path), path);
    if (!config.is_object()) fail_input(path, "", "a JSON object", config.type_name());
    if (config.value("peft_type", json()) != "LORA")
        fail_input(path, "peft_type", "LORA", config.value("peft_type", json()).dump());
    const auto off = [&](const char* key, const std::vector<json>& allowed) {
        const json value = config.value(key, json());
        if (!value.is_null() && std::find(allowed.begin(), allowed.end(), value) == allowed.end())
            fail_input(path, key, allowed[0].dump(), value.dump(), "others are not supported");
    };
    off("bias", {"none"});
    off("use_dora", {false});
    off("modules_to_save", {json::array()});
    off("alpha_pattern", {json::object()});
    off("trainable_token_indices", {json::array()});
    off("layer_replication", {json::array()});
    off("alora_invocation_tokens", {json::array()});
    // Others (PiSSA, OLoRA, …) are relative to weights that they change.
    off("init_lora_weights", {true, false, "gaussian", "orthogonal", "eva"});
    const json alpha = config.value("lora_alpha", json()), root = config.value("use_rslora", json(false));
    if (!alpha.is_number())
        fail_input(path, "lora_alpha", "a number", alpha.is_null() ? "none" : alpha.dump());
    if (!is_alpha(alpha.get<double>())) fail_input(path, "lora_alpha", expected_alpha, alpha.dump());
    return {alpha.get<double>(), root == true};
}

/// The matrices of a folder, looked up by module, each as float.
class PeftFile {
  public:
    explicit PeftFile(const std::string& path) : file_(MappedFile(path)) {}

    struct Pair {
        std::vector<float> a, b;
        std::int64_t rank = 0;
    };
    /// Whether a tensor's module begins with `start`.
    bool has(const std::string& start) const {
        return std::any_of(file_.tensors().begin(), file_.tensors().end(), [&](const SafetensorsTensor& t) {
            return t.name.starts_with(std::string(prefix) + start);
        });
    }
    /// Null where the folder does not have the module.
    const Pair* find(const std::string& module, std::int64_t columns, std::int64_t rows) {
        auto [at, first] = pairs_.try_emplace(module);
        if (!first) return at->second.rank > 0 ? &at->second : nullptr;
        const std::string name = std::string(prefix) + module;
        const SafetensorsTensor *a = file_.tensor(name + std::string(mark_a)),
                                *b = file_.tensor(name + std::string(mark_b));
        if (!a && !b) return nullptr;
        if (!a || !b)
            fail_input(file_.path(), name, "lora_A and lora_B", a ? "lora_A alone" : "lora_B alone");
        const std::int64_t rank = a->rank == 2 ? a->shape.dim[0] : 0;
        check(*a, std::max<std::int64_t>(rank, 1), columns);
        check(*b, rows, rank);
        at->second = {load(*a), load(*b), rank};
        used_ += 2;
        return &at->second;
    }
    /// Error where a tensor was never asked for.
    void check_used(const Model& base) const {
        if (used_ == file_.tensors().size() && used_ > 0) return;
        for (const SafetensorsTensor& t : file_.tensors()) {
            const bool known = std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& one) {
                const std::string name = std::string(prefix) + one.first;
                return one.second.rank > 0 &&
                       (t.name == name + std::string(mark_a) || t.name == name + std::string(mark_b));
            });
            if (!known)
                fail_input(file_.path(), t.name,
                           "lora_A or lora_B of a linear layer of " + base.path() + "'s blocks",
                           "another tensor", "made for another model?");
        }
        fail_input(file_.path(), "", "lora_A and lora_B of some modules", "none");
    }

  private:
    void check(const SafetensorsTensor& t, std::int64_t rows, std::int64_t columns) const {
        if (t.rank != 2 || t.shape.dim[0] != rows || t.shape.dim[1] != columns)
            fail_input(file_.path(), t.name, "shape " + shape_text({rows, columns}),
                       t.rank == 2 ? "shape " + shape_text(t.shape) : std::to_string(t.rank) + " dimensions",
                       "made for another model?");
        if (!t.type->type || (!info(*t.type->type).is_weight && *t.type->type != DType::f64))
            fail_input(file_.path(), t.name, "F32, F16, BF16 or F64", std::string(t.type->name));
    }
    std::vector<float> load(const SafetensorsTensor& t) const {
        const std::int64_t count = t.shape.count();
        std::vector<float> values(static_cast<std::size_t>(count));
        const std::int64_t lost =
            convert_elements(count, *t.type->type, t.bytes.data(), DType::f32, values.data());
        if (lost < count) refuse_narrowed(file_.path(), t.name, lost / t.shape.dim[1], DType::f32);
        return values;
    }

    Safetensors file_;
    std::map<std::string, Pair> pairs_;  // of rank 0: not there
    std::size_t used_ = 0;
};

/// Pieces of matrices that make one: of each, its A, and which rows of the whole its B gives.
struct Piece {
    const float *a, *b;
    std::int64_t rank;
    double scale;
    std::vector<std::pair<std::int64_t, std::int64_t>> rows;  // of the whole, of B
};

/// Pieces as one pair: A one over the other, B side by side, zeros where a row has no part in a piece. Pieces
/// with the same A share it.
struct Joined {
    std::vector<float> a, b;
    std::int64_t rank = 0;
    double scale = 1;

    Joined(const std::vector<Piece>& pieces, std::int64_t rows, std::int64_t columns)
        : scale(pieces[0].scale) {
        std::vector<std::int64_t> at;
        std::vector<const Piece*> firsts;
        for (const Piece& piece : pieces) {
            auto same = std::find_if(firsts.begin(), firsts.end(), [&](const Piece* other) {
                return other->rank == piece.rank && other->scale == piece.scale &&
                       std::equal(piece.a, piece.a + piece.rank * columns, other->a);
            });
            if (same != firsts.end()) {
                at.push_back(at[static_cast<std::size_t>(*same - pieces.data())]);
                continue;
            }
            firsts.push_back(&piece);
            at.push_back(rank);
            a.insert(a.end(), piece.a, piece.a + piece.rank * columns);
            rank += piece.rank;
        }
        b.assign(static_cast<std::size_t>(rows * rank), 0);
        for (std::size_t i = 0; i < pieces.size(); i++) {
            const Piece& piece = pieces[i];
            // Where alpha is 0 so are all of them.
            const float factor = piece.scale == scale ? 1.0f : static_cast<float>(piece.scale / scale);
            for (const auto& [to, from] : piece.rows)
                for (std::int64_t k = 0; k < piece.rank; k++)
                    b[static_cast<std::size_t>(to * rank + at[i] + k)] =
                        factor * piece.b[from * piece.rank + k];
        }
    }
};

}  // namespace

bool is_peft_folder(const std::string& path) {
    std::error_code ignored;
    return is_folder(path) && fs::exists(path + "/" + config_name, ignored);
}

Adapter adapter_of_folder(const std::string& path, const Model& base, double scale) {
    const Settings settings = read_settings(path + "/" + config_name);
    const std::string weights = path + "/" + weights_name;
    std::error_code ignored;
    if (!fs::exists(weights + ".safetensors", ignored) && fs::exists(weights + ".bin", ignored))
        refuse_pickle(path, weights_name + std::string(".safetensors"));
    PeftFile file(weights + ".safetensors");
    const HuggingFaceFamily* family = folder_family(*base.file());
    const Modules modules(base, family && file.has(family->prefix));
    Adapter adapter;
    adapter.alpha = settings.alpha;
    auto values = std::make_shared<std::vector<std::vector<float>>>();
    for (AdapterTarget& target : adaptable_tensors(base)) {
        std::vector<Piece> pieces;
        std::int64_t first = 0, columns = 0;
        for (const std::string& part : target.parameters) {
            const ParameterRows& rows = modules.rows.at(part);
            const std::string module = modules.module_of(part);
            columns = rows.columns;
            if (const auto* pair = module.empty() ? nullptr : file.find(module, columns, rows.all)) {
                Piece piece{pair->a.data(), pair->b.data(), pair->rank, settings.scale(pair->rank), {}};
                for (std::int64_t r = 0; r < rows.rows; r++)
                    piece.rows.emplace_back(first + r, rows.at(r).row);
                pieces.push_back(std::move(piece));
            }
            first += rows.rows;
        }
        if (pieces.empty()) continue;
        Joined joined(pieces, first, columns);
        target.rank = joined.rank, target.scale = scale * joined.scale;
        float* a = values->emplace_back(std::move(joined.a)).data();
        float* b = values->emplace_back(std::move(joined.b)).data();
        adapter.pairs.push_back(
            {{a, DType::f32, Shape(target.rank, columns)}, {b, DType::f32, Shape(first, target.rank)}});
        adapter.shape.targets.push_back(std::move(target));
    }
    file.check_used(base);
    adapter.keep = values;
    adapter.chat_template = {[path] { return folder_chat_template(path); }};
    return adapter;
}

namespace {

/// A module of the folder.
struct OutModule {
    std::vector<Piece> pieces;
    std::int64_t rows = 0, columns = 0;
    bool transposed = false;
};

std::map<std::string, OutModule> out_modules(const Adapter& adapter, const Model& base,
                                             const Modules& modules) {
    std::map<std::string, OutModule> out;
    for (std::size_t t = 0; t < adapter.shape.targets.size(); t++) {
        const AdapterTarget& target = adapter.shape.targets[t];
        const float* b = adapter.pairs[t].b.as<float>();
        for (const std::string& part : target.parameters) {
            const ParameterRows& rows = modules.rows.at(part);
            const std::string module = modules.module_of(part);
            if (module.empty())
                fail_input(base.path(), target.tensor, "one matrix in the folder", "several",
                           "experts stay in GGUF");
            OutModule& to = out[module];
            to.rows = rows.all, to.columns = rows.columns, to.transposed = rows.transpose;
            Piece piece{adapter.pairs[t].a.as<float>(), b, target.rank, target.scale, {}};
            for (std::int64_t r = 0; r < rows.rows; r++) piece.rows.emplace_back(rows.at(r).row, r);
            to.pieces.push_back(std::move(piece));
            b += rows.rows * target.rank;
        }
    }
    return out;
}

std::string last_name(const std::string& module) {
    return module.substr(module.rfind('.') + 1);
}

/// The modules' last names where the adapter has all of the model's with such a name; else whole names.
std::vector<std::string> target_modules(const std::map<std::string, OutModule>& out, const Modules& modules) {
    std::map<std::string, std::set<std::string>> all;
    for (const auto& [parameter, rows] : modules.rows)
        if (const std::string module = modules.module_of(parameter); !module.empty())
            all[last_name(module)].insert(module);
    std::set<std::string> names;
    for (const auto& [module, pieces] : out) {
        const std::set<std::string>& same = all[last_name(module)];
        const bool whole =
            std::all_of(same.begin(), same.end(), [&](const auto& m) { return out.contains(m); });
        names.insert(whole ? last_name(module) : module);
    }
    return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> peft_modules(const Adapter& adapter, const Model& base) {
    const Modules modules(base, has_head(base));
    std::vector<std::pair<std::string, std::string>> names;
    for (const AdapterTarget& target : adapter.shape.targets)
        for (const std::string& part : target.parameters)
            names.emplace_back(target.tensor, modules.module_of(part));
    return names;
}

std::uint64_t write_peft_folder(const Adapter& adapter, const Model& base, const std::string& path,
                                Existing existing) {
    const Modules modules(base, has_head(base));
    const std::map<std::string, OutModule> out = out_modules(adapter, base, modules);
    const std::string chat_template = adapter.chat_template.source();
    NewFolder folder(path, existing, folder_names);
    std::map<std::string, Joined> joined;
    for (const auto& [name, module] : out)
        joined.emplace(name, Joined(module.pieces, module.rows, module.columns));
    const std::int64_t rank = joined.begin()->second.rank;
    const double alpha = adapter.alpha != 0 ? adapter.alpha : static_cast<double>(rank);
    bool transposed = false;
    ordered_json ranks = ordered_json::object();
    SafetensorsWriter writer;
    for (auto& [name, pair] : joined) {
        const OutModule& module = out.at(name);
        transposed |= module.transposed;
        if (pair.rank != rank) ranks[name] = pair.rank;
        // PEFT's scale is alpha / rank.
        const auto factor = static_cast<float>(pair.scale * static_cast<double>(pair.rank) / alpha);
        if (factor != 1)
            for (float& value : pair.b) value *= factor;
        const auto add = [&, &name = name](std::string_view mark, const std::vector<float>& values,
                                           Shape shape) {
            writer.add_tensor(std::string(prefix) + name + std::string(mark), DType::f32, shape,
                              [&values](const SafetensorsWriter::Sink& sink) {
                                  sink(values.data(), values.size() * sizeof(float));
                              });
        };
        add(mark_a, pair.a, Shape(pair.rank, module.columns));
        add(mark_b, pair.b, Shape(module.rows, pair.rank));
    }
    const std::string& kind = base.config().kind;
    const ordered_json config = {{"peft_type", "LORA"},
                                 {"task_type", kind == "decoder"   ? "CAUSAL_LM"
                                               : kind == "encoder" ? "FEATURE_EXTRACTION"
                                                                   : "SEQ_2_SEQ_LM"},
                                 {"base_model_name_or_path", base.path()},
                                 {"r", rank},
                                 {"lora_alpha", alpha},
                                 {"lora_dropout", 0.0},
                                 {"target_modules", target_modules(out, modules)},
                                 {"rank_pattern", ranks},
                                 {"alpha_pattern", ordered_json::object()},
                                 {"bias", "none"},
                                 {"fan_in_fan_out", transposed},
                                 {"modules_to_save", nullptr},
                                 {"use_rslora", false},
                                 {"use_dora", false},
                                 {"inference_mode", true}};
    writer.write(folder.path(), weights_name);
    if (!chat_template.empty()) write_file(folder.path() + "/" + folder_template_name, chat_template);
    write_file(folder.path() + "/" + config_name,
               config.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    return folder.finish();
}

}  // namespace linnet
