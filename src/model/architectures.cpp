#include "model/architectures.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace linnet {
namespace {

using nlohmann::json;

constexpr std::string_view own_config = "linnet.config";

json config_json(ModelConfig config) {
    json j = to_json(model_fields(config));
    j["model"]["vocabulary"] = config.vocabulary;
    return j;
}

json at_path(const json& object, std::string_view dotted) {
    const json* at = &object;
    for (std::size_t begin = 0; begin <= dotted.size();) {
        std::size_t dot = std::min(dotted.find('.', begin), dotted.size());
        at = &at->at(std::string(dotted.substr(begin, dot - begin)));
        begin = dot + 1;
    }
    return *at;
}

/// What `config` would become if only this architecture's keys were kept of it.
ModelConfig through(const Architecture& a, const ModelConfig& config) {
    ModelConfig kept;
    std::vector<Field> fields = model_fields(kept);
    apply_json(fields, json::parse(a.fixed), a.name);
    json all = config_json(config);
    for (const ArchitectureKey& key : a.keys) set_field(fields, key.field, at_path(all, key.field), a.name);
    kept.tie_embeddings = config.tie_embeddings;  // told by whether output.weight is there
    kept.vocabulary = config.vocabulary;
    kept.dropout = config.dropout, kept.init_std = config.init_std;  // of training alone
    kept.position.theta = config.position.kind.at(0) == "rope" ? kept.position.theta : config.position.theta;
    resolve(kept, a.name);
    return kept;
}

json read_value(const Gguf& file, const std::string& key, const GgufValue& value) {
    if (std::holds_alternative<double>(value)) return *file.number(key);
    return *file.integer(key, INT64_MAX);  // names the key where the kind is wrong
}

void read_standard(const Gguf& file, const Architecture& a, ModelConfig& config) {
    std::vector<Field> fields = model_fields(config);
    apply_json(fields, json::parse(a.fixed), file.path());
    std::string prefix = std::string(a.name) + ".";
    json seen = json::object();
    for (const auto& [name, value] : file.values()) {
        if (!name.starts_with(prefix)) continue;
        std::string key(name), suffix = key.substr(prefix.size());
        if (suffix == "vocab_size") continue;  // the embedding's shape says it
        const ArchitectureKey* row = nullptr;
        for (const ArchitectureKey& k : a.keys)
            if (k.suffix == suffix) row = &k;
        if (!row) fail_input(file.path(), key, "metadata that this program understands", "an unknown key");
        json number = read_value(file, key, value);
        std::string field(row->field);
        if (seen.contains(field) && seen[field] != number)
            fail_input(file.path(), key, seen[field].dump() + " as said before", number.dump());
        seen[field] = number;
        set_field(fields, field, number, file.path() + ": " + key);
    }
    for (const ArchitectureKey& k : a.keys)
        if (k.required && !file.find(prefix + std::string(k.suffix)))
            fail_input(file.path(), prefix + std::string(k.suffix), "a number", "no such key");
}

}  // namespace

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> rows = {
        {"gpt2",
         R"({"model": {"norm": {"kind": "layer"}, "position": {"kind": "learned"}, "ffn": {"activation": "gelu-tanh"}}})",
         {{"context_length", "model.context", true},
          {"embedding_length", "model.width", true},
          {"feed_forward_length", "model.ffn.width", true},
          {"block_count", "model.layers", true},
          {"attention.head_count", "model.heads", true},
          {"attention.layer_norm_epsilon", "model.norm.epsilon", true}},
         {{"attn_qkv", {"attn_q", "attn_k", "attn_v"}}}},
        {"llama",
         R"({"model": {"norm": {"kind": "rms"}, "position": {"kind": "rope"}, "attention": {"bias": false},
             "ffn": {"activation": "silu", "gated": true, "bias": false}}})",
         {{"context_length", "model.context", true},
          {"embedding_length", "model.width", true},
          {"feed_forward_length", "model.ffn.width", true},
          {"block_count", "model.layers", true},
          {"attention.head_count", "model.heads", true},
          {"attention.head_count_kv", "model.kv_heads"},
          {"rope.dimension_count", "model.head_width"},
          {"attention.key_length", "model.head_width"},
          {"attention.value_length", "model.head_width"},
          {"rope.freq_base", "model.position.theta"},
          {"attention.layer_norm_rms_epsilon", "model.norm.epsilon", true}},
         {}},
        {"linnet", "{}", {}, {}},
    };
    return rows;
}

const Architecture& architecture_of(const ModelConfig& config) {
    json wanted = config_json(config);
    for (const Architecture& a : architectures())
        if (!a.keys.empty() && config_json(through(a, config)) == wanted) return a;
    return architectures().back();
}

bool has_standard_architecture(const ModelConfig& config) {
    return &architecture_of(config) != &architectures().back();
}

ModelConfig read_config(const Gguf& file, const Architecture*& architecture) {
    auto name = file.string("general.architecture");
    if (!name) fail_input(file.path(), "general.architecture", "a string", "no such key");
    architecture = nullptr;
    std::string known;
    for (const Architecture& a : architectures()) {
        if (a.name == *name) architecture = &a;
        known += (known.empty() ? "" : ", ") + std::string(a.name);
    }
    if (!architecture) fail_input(file.path(), "general.architecture", "one of " + known, *name);
    ModelConfig config;
    if (!architecture->keys.empty()) {
        read_standard(file, *architecture, config);
    } else {
        auto text = file.string(own_config);
        if (!text) fail_input(file.path(), own_config, "a JSON config", "no such key");
        std::vector<Field> fields = model_fields(config);
        apply_json(fields, parse_json(*text, file.path() + ": " + std::string(own_config)), file.path());
    }
    const GgufTensor* table = file.tensor("token_embd.weight");
    if (!table)
        fail_input(file.path(), "token_embd.weight", "a tensor", "none (a vocabulary without a model?)");
    config.vocabulary = table->shape.dim[0];
    config.tie_embeddings = file.tensor("output.weight") == nullptr;
    resolve(config, file.path());
    return config;
}

void write_config(GgufWriter& out, const Architecture& a, ModelConfig config) {
    out.add("general.architecture", a.name);
    if (a.keys.empty()) {
        out.add(std::string(own_config), to_json(model_fields(config)).dump());
        return;
    }
    json all = config_json(config);
    for (const ArchitectureKey& key : a.keys) {
        json value = at_path(all, key.field);
        std::string name = std::string(a.name) + "." + std::string(key.suffix);
        if (value.is_number_float())
            out.add(name, value.get<float>());
        else
            out.add(name, value.get<std::uint32_t>());
    }
}

TensorPlace place_of(const Architecture& a, const std::string& parameter) {
    for (const FusedTensor& f : a.fused)
        for (std::size_t part = 0; part < f.parts.size(); part++) {
            std::string middle = "." + std::string(f.parts[part]) + ".";
            std::size_t at = parameter.find(middle);
            if (at == std::string::npos) continue;
            std::string tensor = parameter;
            tensor.replace(at, middle.size(), "." + std::string(f.name) + ".");
            return {tensor, static_cast<int>(part), &f};
        }
    return {parameter, -1, nullptr};
}

}  // namespace linnet
