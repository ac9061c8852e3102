#include "model/convert/family_folders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "formats/safetensors.h"
#include "model/convert/folder_parts.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/engine/engine.h"
#include "support.h"
#include "text/encode/vocabulary.h"
#include "text/files/json.h"

namespace linnet::test {
namespace {

/// Of the families that name their tensors as LLaMA's class does.
class Maker : public FolderParts {
  public:
    using FolderParts::FolderParts;

    PlainFolder make() {
        if (without_class()) return {};
        return made_by<Maker>({
            {"llama", &Maker::llama},
            {"qwen2", &Maker::qwen2},
            {"qwen3", &Maker::qwen3},
            {"smollm3", &Maker::smollm3},
            {"arcee", &Maker::arcee},
            {"granite", &Maker::granite},
            {"gemma", &Maker::gemma},
            {"gemma2", &Maker::gemma2},
            {"gemma3", &Maker::gemma3},
            {"olmo", &Maker::olmo},
            {"olmo2", &Maker::olmo2},
            {"stablelm", &Maker::stablelm},
            {"starcoder2", &Maker::starcoder2},
            {"command-r", &Maker::cohere},
            {"cohere2", &Maker::cohere},
            {"nemotron", &Maker::nemotron},
            {"qwen2moe", &Maker::qwen2moe},
            {"qwen3moe", &Maker::qwen3moe},
            {"olmoe", &Maker::olmoe},
            {"granitemoe", &Maker::granitemoe},
            {"minicpm", &Maker::minicpm},
            {"deepseek", &Maker::deepseek},
            {"deci", &Maker::deci},
            {"seed_oss", &Maker::seed_oss},
            {"ernie4_5", &Maker::ernie},
            {"orion", &Maker::orion},
            {"xverse", &Maker::xverse},
            {"glm4", &Maker::glm4},
        });
    }

  private:
    /// Biases, windows and factors that GGUF files may have and no class of transformers has.
    bool without_class() const {
        const bool none = f_.arch == "gemma2" || f_.arch == "olmo2";
        const bool window = file_.find(f_.arch + ".attention.sliding_window");
        if (file_.find(f_.arch + ".attention.sliding_window_pattern") || (f_.arch == "olmo2" && window) ||
            (f_.arch == "gemma3" && !window) || (f_.arch == "minicpm" && f_.experts) ||
            (f_.arch == "granite" && has("rope_factors_long.weight")))
            return true;
        return (f_.o_bias && !f_.q_bias) || (f_.q_bias && none) ||
               std::ranges::any_of(f_.tensors, [](const auto& t) { return t.name.ends_with(".bias"); });
    }

    void llama() {
        if (has("rope_freqs.weight")) return;  // of no scaling that has a name
        const bool window = file_.find("llama.attention.sliding_window") != nullptr;
        if (f_.q_bias && !f_.o_bias) return;
        if (f_.experts) {
            rms("mixtral", "MixtralForCausalLM");
            out_.config["num_local_experts"] = f_.experts, out_.config["num_experts_per_tok"] = f_.used;
        } else if (window) {
            rms("mistral", "MistralForCausalLM");
            out_.config["sliding_window"] = 16;
        } else {
            rms("llama", "LlamaForCausalLM");
            out_.config["attention_bias"] = f_.q_bias, out_.config["mlp_bias"] = f_.ffn_bias;
        }
        if (file_.find("llama.rope.scale_linear"))
            out_.config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
        scaling();
        llama_tensors(true);
        if (f_.experts) experts("block_sparse_moe.gate", "block_sparse_moe.experts", "w1", "w2", "w3");
    }
    void qwen2() {
        rms("qwen2", "Qwen2ForCausalLM");
        out_.config["use_sliding_window"] = false, out_.config["sliding_window"] = 128,
        out_.config["max_window_layers"] = 3;
        scaling();
        llama_tensors(false);
    }
    void qwen3() {
        rms("qwen3", "Qwen3ForCausalLM");
        out_.config["attention_bias"] = false;
        llama_tensors(false);
    }
    void smollm3() {
        rms("smollm3", "SmolLM3ForCausalLM");
        for (std::int64_t i = 0; i < f_.layers; i++)
            out_.config["no_rope_layers"].push_back(i % 4 == 3 ? 0 : 1);
        llama_tensors(true);
    }
    void arcee() {
        rms("arcee", "ArceeForCausalLM");
        out_.config["hidden_act"] = "relu2";
        scaling();
        llama_tensors(true);
    }
    void granite_settings() {
        Json& c = out_.config;
        c["attention_multiplier"] = key("attention.scale", 0),
        c["embedding_multiplier"] = key("embedding_scale", 1);
        c["residual_multiplier"] = key("residual_scale", 1), c["logits_scaling"] = key("logit_scale", 1);
    }
    void granite() {
        if (!file_.find("granite.attention.scale")) return;  // transformers has no default of this meaning
        rms("granite", "GraniteForCausalLM");
        granite_settings();
        llama_tensors(true);
    }
    void granitemoe() {
        rms("granitemoe", "GraniteMoeForCausalLM");
        granite_settings();
        out_.config["num_local_experts"] = f_.experts, out_.config["num_experts_per_tok"] = f_.used;
        llama_tensors(true);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".block_sparse_moe.";
            matrix(m + "router.layer.weight", b + "ffn_gate_inp.weight", f_.width);
            const Values gate = values(b + "ffn_gate_exps.weight"), up = values(b + "ffn_up_exps.weight");
            Values both;
            const std::int64_t size = f_.ffn * f_.width;
            for (std::int64_t e = 0; e < f_.experts; e++)
                for (const Values* v : {&gate, &up})
                    both.insert(both.end(), v->begin() + e * size, v->begin() + (e + 1) * size);
            put(m + "input_linear.weight", {f_.experts, 2 * f_.ffn, f_.width}, both);
            put(m + "output_linear.weight", {f_.experts, f_.width, f_.ffn},
                values(b + "ffn_down_exps.weight"));
        }
    }
    void minicpm() {
        rms("minicpm", "MiniCPMForCausalLM");
        Json& c = out_.config;
        const double layers = static_cast<double>(f_.layers), width = static_cast<double>(f_.width);
        c["scale_emb"] = key("embedding_scale", 12);
        c["scale_depth"] = file_.find("minicpm.residual_scale")
                               ? static_cast<double>(key("residual_scale", 1)) * std::sqrt(layers)
                               : 1.4;
        c["dim_model_base"] = static_cast<std::int64_t>(
            width / static_cast<double>(key("logit_scale", 256 / static_cast<float>(f_.width))));
        if (has("rope_factors_long.weight"))
            c["rope_scaling"] = {{"type", "longrope"},
                                 {"original_max_position_embeddings", 64},
                                 {"short_factor", values("rope_factors_short.weight")},
                                 {"long_factor", values("rope_factors_long.weight")}};
        if (f_.tied)
            c.erase("model_type"), c["auto_map"]["AutoConfig"] = "configuration_minicpm.MiniCPMConfig";
        llama_tensors(true);
    }
    void deepseek() {
        if (f_.q_bias || key("expert_weights_scale", 1) != 1) return;  // no key says so
        rms("deepseek", "DeepseekForCausalLM");
        Json& c = out_.config;
        c["attention_bias"] = false, c["n_routed_experts"] = f_.experts, c["num_experts_per_tok"] = f_.used;
        c["moe_intermediate_size"] = f_.expert_ffn, c["first_k_dense_replace"] = f_.dense;
        c["n_shared_experts"] = f_.shared_ffn ? Json(f_.shared_ffn / f_.expert_ffn) : Json();
        c["moe_layer_freq"] = 1, c["norm_topk_prob"] = false, c["scoring_func"] = "softmax";
        llama_tensors(true);
        experts("mlp.gate", "mlp.experts", "gate_proj", "down_proj", "up_proj");
        for (std::int64_t i = f_.dense; i < f_.layers && f_.shared_ffn; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".mlp.shared_experts.";
            linear(m + "gate_proj", b + "ffn_gate_shexp", f_.width);
            linear(m + "up_proj", b + "ffn_up_shexp", f_.width);
            linear(m + "down_proj", b + "ffn_down_shexp", f_.shared_ffn);
        }
    }
    void deci() {
        rms("deci", "DeciLMForCausalLM");
        Json& c = out_.config;
        c.erase("num_key_value_heads");
        for (std::int64_t i = 0; i < f_.layers; i++)
            c["num_key_value_heads_per_layer"].push_back(kv_heads(i));
        if (!f_.kv_by_layer.empty()) c["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
        llama_tensors(true);
    }
    void seed_oss() {
        rms("seed_oss", "SeedOssForCausalLM");
        out_.config["attention_bias"] = f_.q_bias, out_.config["attention_out_bias"] = false;
        llama_tensors(false);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "post_attention_layernorm", b + "post_attention_norm");
        });
    }
    void ernie() {
        rms("ernie4_5", "Ernie4_5ForCausalLM");
        out_.config["use_bias"] = false;
        llama_tensors(false);  // its class turns (2i, 2i + 1), too
    }
    void orion() {
        rms("orion", "OrionForCausalLM");
        llama_tensors(false);
    }
    void xverse() {
        rms("xverse", "XverseForCausalLM");
        llama_tensors(true);
    }
    void glm4() {
        rms("glm4", "Glm4ForCausalLM");
        out_.config["attention_bias"] = f_.q_bias, out_.config["partial_rotary_factor"] = rotary_share();
        llama_tensors(false);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "post_self_attn_layernorm", b + "post_attention_norm");
            norm(m + "post_mlp_layernorm", b + "post_ffw_norm");
            out_.tensors.erase(m + "mlp.up_proj.weight");
            linear(m + "mlp.gate_up_proj", b + "ffn_up", f_.width);
        });
    }
    void gemma() {
        settings("gemma", "GemmaForCausalLM");
        out_.config["rms_norm_eps"] = 1e-5, out_.config["hidden_act"] = "gelu_pytorch_tanh",
        out_.config["head_dim"] = d_;
        llama_tensors(false, true);
    }
    /// Four norms in a layer.
    void sandwich() {
        llama_tensors(false, true);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "post_attention_layernorm", b + "post_attention_norm", true);
            norm(m + "pre_feedforward_layernorm", b + "ffn_norm", true);
            norm(m + "post_feedforward_layernorm", b + "post_ffw_norm", true);
        });
    }
    void gemma2() {
        settings("gemma2", "Gemma2ForCausalLM");
        Json& c = out_.config;
        c["rms_norm_eps"] = 1e-5;
        for (const char* name : {"hidden_act", "hidden_activation"}) c[name] = "gelu_pytorch_tanh";
        c["head_dim"] = d_, c["cache_implementation"] = "hybrid";
        c["query_pre_attn_scalar"] = f_.layers == 46 ? f_.width / f_.heads : d_;  // of 27b
        c["sliding_window"] = static_cast<std::int64_t>(key("attention.sliding_window", 4096));
        for (const auto& [name, missing] :
             {std::pair("attn_logit_softcapping", 50.0F), {"final_logit_softcapping", 30.0F}}) {
            const float cap = key(name, missing);
            c[name] = cap == 0 ? Json() : Json(cap);
        }
        if (f_.tensors.empty() && f_.layers % 2)  // newer files list the layers
            for (std::int64_t i = 0; i < f_.layers; i++)
                c["layer_types"].push_back(i % 2 ? "full_attention" : "sliding_attention");
        sandwich();
    }
    void gemma3() {
        settings("gemma3_text", "Gemma3ForCausalLM");
        Json& c = out_.config;
        c["rms_norm_eps"] = 1e-5, c["hidden_activation"] = "gelu_pytorch_tanh", c["head_dim"] = d_;
        c["query_pre_attn_scalar"] = f_.layers == 62 ? f_.width / f_.heads : d_;  // of 27b
        c["rope_local_base_freq"] = 10000.0, c["sliding_window_pattern"] = 6;
        c["sliding_window"] = static_cast<std::int64_t>(key("attention.sliding_window", 0));
        if (float cap = key("final_logit_softcapping", 0); cap != 0) c["final_logit_softcapping"] = cap;
        scaling();
        sandwich();
    }
    void olmo() {
        settings("olmo", "OlmoForCausalLM");
        out_.config["hidden_act"] = "silu";
        if (float clamp = key("attention.clamp_kqv", 0); clamp != 0) out_.config["clip_qkv"] = clamp;
        llama_tensors(true);
    }
    void olmo2() {
        rms("olmo2", "Olmo2ForCausalLM");
        llama_tensors(false);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "post_attention_layernorm", b + "post_attention_norm");
            norm(m + "post_feedforward_layernorm", b + "post_ffw_norm");
        });
    }
    void olmoe() {
        rms("olmoe", "OlmoeForCausalLM");
        out_.config["num_experts"] = f_.experts, out_.config["num_experts_per_tok"] = f_.used;
        out_.config["norm_topk_prob"] = false;
        llama_tensors(false);
        experts("mlp.gate", "mlp.experts", "gate_proj", "down_proj", "up_proj");
    }
    void qwen_mixture(bool renormalize) {
        Json& c = out_.config;
        c["num_experts"] = f_.experts, c["num_experts_per_tok"] = f_.used,
        c["moe_intermediate_size"] = f_.expert_ffn;
        c["norm_topk_prob"] = renormalize, c["decoder_sparse_step"] = 1, c["mlp_only_layers"] = Json::array();
        llama_tensors(false);
        experts("mlp.gate", "mlp.experts", "gate_proj", "down_proj", "up_proj");
    }
    void qwen2moe() {
        rms("qwen2_moe", "Qwen2MoeForCausalLM");
        out_.config["shared_expert_intermediate_size"] = f_.shared_ffn;
        qwen_mixture(false);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".mlp.";
            linear(m + "shared_expert.gate_proj", b + "ffn_gate_shexp", f_.width);
            linear(m + "shared_expert.up_proj", b + "ffn_up_shexp", f_.width);
            linear(m + "shared_expert.down_proj", b + "ffn_down_shexp", f_.shared_ffn);
            matrix(m + "shared_expert_gate.weight", b + "ffn_gate_inp_shexp.weight", f_.width);
        }
    }
    void qwen3moe() {
        rms("qwen3_moe", "Qwen3MoeForCausalLM");
        qwen_mixture(true);
    }
    void stablelm() {
        settings("stablelm", "StableLmForCausalLM");
        Json& c = out_.config;
        c["layer_norm_eps"] = 1e-5, c["hidden_act"] = "silu", c["use_qkv_bias"] = f_.q_bias;
        c["qk_layernorm"] = f_.qk_norm == "heads", c["use_parallel_residual"] = f_.norms.size() == 1;
        c["partial_rotary_factor"] = rotary_share();
        llama_tensors(false);
        for (std::int64_t i = 0; i < f_.layers && f_.qk_norm == "heads"; i++) {
            auto norms = [&](const char* name, const char* from, std::int64_t heads) {
                const Values all = values("blk." + std::to_string(i) + "." + from + ".weight");
                for (std::int64_t h = 0; h < heads; h++)
                    put("model.layers." + std::to_string(i) + ".self_attn." + name + ".norms." +
                            std::to_string(h) + ".weight",
                        {d_}, Values(all.begin() + h * d_, all.begin() + (h + 1) * d_));
            };
            norms("q_layernorm", "attn_q_norm", f_.heads), norms("k_layernorm", "attn_k_norm", f_.kv_heads);
        }
    }
    void starcoder2() {
        settings("starcoder2", "Starcoder2ForCausalLM");
        out_.config["norm_epsilon"] = 1e-5, out_.config["hidden_act"] = "gelu_pytorch_tanh",
        out_.config["use_bias"] = f_.q_bias;
        llama_tensors(false);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".mlp.";
            for (const char* name : {"up_proj", "down_proj"})
                for (const char* suffix : {".weight", ".bias"}) out_.tensors.erase(m + name + suffix);
            linear(m + "c_fc", b + "ffn_up", f_.width), linear(m + "c_proj", b + "ffn_down", f_.ffn);
        }
    }
    void cohere() {
        const bool second = f_.arch == "cohere2";
        settings(second ? "cohere2" : "cohere", second ? "Cohere2ForCausalLM" : "CohereForCausalLM");
        Json& c = out_.config;
        c["layer_norm_eps"] = 1e-5, c["hidden_act"] = "silu", c["logit_scale"] = key("logit_scale", 0);
        if (second)
            c["sliding_window"] = static_cast<std::int64_t>(key("attention.sliding_window", 0)),
            c["sliding_window_pattern"] = 4;
        else
            c["use_qk_norm"] = f_.qk_norm == "heads";
        llama_tensors(false);
        for (std::int64_t i = 0; i < f_.layers && f_.qk_norm == "heads"; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".self_attn.";
            matrix(m + "q_norm.weight", b + "attn_q_norm.weight", d_),
                matrix(m + "k_norm.weight", b + "attn_k_norm.weight", d_);
        }
    }
    void nemotron() {
        settings("nemotron", "NemotronForCausalLM");
        Json& c = out_.config;
        c["norm_eps"] = 1e-5, c["hidden_act"] = "relu2", c["attention_bias"] = f_.q_bias,
        c["mlp_bias"] = f_.ffn_bias;
        c["partial_rotary_factor"] = rotary_share();
        llama_tensors(false, true);
    }
};

}  // namespace

PlainFolder family_folder(const FamilyFile& file, const std::string& gguf) {
    PlainFolder folder = fused_folder(file, gguf);
    return folder.tensors.empty() ? Maker(file, gguf).make() : folder;
}

std::vector<FamilyFile> folder_files() {
    std::vector<FamilyFile> files = family_files();
    auto changed = [&](const std::string& name, const std::string& as, const auto& change) {
        FamilyFile file = family_file(name);
        file.name = as;
        change(file);
        files.push_back(std::move(file));
    };
    for (const char* name : {"bloom", "bloom-odd-heads", "bloom-wide-heads"})
        changed(name, name + std::string("-four-times"), [](FamilyFile& f) { f.ffn = 4 * f.width; });
    changed("mpt", "mpt-grouped", [](FamilyFile& f) { f.kv_heads = 2; });
    changed("exaone-tied", "exaone-plain", [](FamilyFile& f) { f.q_bias = false; });
    changed("gemma2", "gemma2-without-caps", [](FamilyFile& f) {
        f.keys = {{"attn_logit_softcapping", 0.0F}, {"final_logit_softcapping", 0.0F}};
    });
    changed("deepseek", "deepseek-without-shared", [](FamilyFile& f) {
        f.shared_ffn = 0, f.keys = {{"expert_shared_count", 0U}, {"expert_weights_scale", 1.0F}};
    });
    changed("refact", "refact-multiple", [](FamilyFile& f) { f.ffn = 256; });
    changed("chatglm", "chatglm-glm", [](FamilyFile&) {});
    changed("minicpm", "minicpm-longrope", [](FamilyFile& f) {
        const auto scale = static_cast<float>(std::sqrt(1 + std::log(4.0) / std::log(64.0)));
        f.keys = {{"rope.scaling.attn_factor", scale}, {"rope.scaling.original_context_length", 64U}};
        f.tensors = {{"rope_factors_short.weight", 8, 0, 4, 1.7F},
                     {"rope_factors_long.weight", 8, 0, 4, 1.7F}};
    });
    return files;
}

std::vector<float> logits_of(const std::string& path) {
    Engine engine(Model::open(path), {.context = 64, .threads = 1});
    Sequence sequence = engine.start();
    std::vector<TokenId> ids = family_tokens();
    ids.resize(20);
    std::span<const float> last = sequence.append(ids, Phase::read);
    return {last.begin(), last.end()};
}

void write_plain_folder(const PlainFolder& folder, const std::string& path) {
    make_folders(path);
    write_text(path + "/config.json", folder.config.dump(2));
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : folder.tensors) {
        Shape shape;
        shape.rank = static_cast<int>(tensor.shape.size());
        for (std::size_t i = 0; i < tensor.shape.size(); i++) shape.dim[i] = tensor.shape[i];
        writer.add_tensor(name, DType::f32, shape, [&tensor = tensor](const SafetensorsWriter::Sink& sink) {
            sink(tensor.values.data(), tensor.values.size() * sizeof(float));
        });
    }
    writer.write(path, "model");
    std::string vocabulary;
    for (int byte = 0; byte < 256; byte++)
        vocabulary += (byte ? ", " : "") +
                      json_quoted(byte_alphabet::spell(static_cast<std::uint8_t>(byte))) + ": " +
                      std::to_string(byte);
    write_text(path + "/tokenizer.json",
               R"({"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "vocab": {)" +
                   vocabulary + R"(}, "merges": []}})");
}

void check_straight(const std::string& path, const std::string& around) {
    Scratch scratch;
    const ModelSource source = open_folder(path, {});
    write_folder(OutgoingModel(source), source.tokenizer, scratch / "straight", {});
    for (const char* name : {"/config.json", "/model.safetensors", "/tokenizer.json"})
        CHECK(read_text(scratch / "straight" + name) == read_text(around + name));
}

}  // namespace linnet::test
