#include "model/convert/family_folders.h"

#include <cstring>
#include <functional>

#include "base/file.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "support.h"
#include "text/encode/vocabulary.h"
#include "text/files/json.h"

namespace linnet::test {
namespace {

using Json = nlohmann::ordered_json;

/// One folder being made.
class Maker {
  public:
    Maker(const FamilyFile& f, const std::string& path)
        : f_(f), file_(path), d_(f.head ? f.head : f.width / std::max<std::int64_t>(f.heads, 1)) {}

    PlainFolder make() {
        using Make = void (Maker::*)();
        const std::map<std::string, Make> makers = {
            {"llama", &Maker::llama},
            {"qwen2", &Maker::qwen2},
            {"qwen3", &Maker::qwen3},
            {"smollm3", &Maker::smollm3},
            {"arcee", &Maker::arcee},
            {"granite", &Maker::granite},
            {"gemma", &Maker::gemma},
            {"gemma3", &Maker::gemma3},
            {"olmo", &Maker::olmo},
            {"olmo2", &Maker::olmo2},
            {"phi2", &Maker::phi2},
            {"phi3", &Maker::phi3},
            {"gpt2", &Maker::gpt2},
            {"gptneox", &Maker::gptneox},
            {"falcon", &Maker::falcon},
            {"stablelm", &Maker::stablelm},
            {"starcoder2", &Maker::starcoder2},
            {"command-r", &Maker::cohere},
            {"cohere2", &Maker::cohere},
            {"nemotron", &Maker::nemotron},
            {"qwen2moe", &Maker::qwen2moe},
            {"qwen3moe", &Maker::qwen3moe},
            {"olmoe", &Maker::olmoe},
            {"granitemoe", &Maker::granitemoe},
        };
        auto found = makers.find(f_.arch);
        if (found == makers.end()) return {};
        (this->*found->second)();
        return std::move(out_);
    }

  private:
    // What the GGUF file has.

    std::vector<float> values(const std::string& name) const {
        const GgufTensor* t = file_.tensor(name);
        if (!t) return {};
        std::vector<float> v(t->bytes.size() / 4);
        std::memcpy(v.data(), t->bytes.data(), t->bytes.size());
        return v;
    }
    bool has(const std::string& name) const { return file_.tensor(name) != nullptr; }
    float key(const std::string& name, float otherwise) const {
        return static_cast<float>(file_.number(f_.arch + "." + name).value_or(otherwise));
    }

    // Changes of order.

    using Values = std::vector<float>;
    /// GGUF's rows (2i, 2i + 1) of a head are transformers' (i, i + D/2).
    Values unpermuted(const Values& v, std::int64_t heads) const {
        Values out(v.size());
        const std::int64_t rows = heads * d_, columns = static_cast<std::int64_t>(v.size()) / rows;
        for (std::int64_t h = 0; h < heads; h++)
            for (std::int64_t i = 0; i < d_ / 2; i++)
                for (std::int64_t j = 0; j < 2; j++)
                    std::copy_n(v.begin() + (h * d_ + 2 * i + j) * columns, columns,
                                out.begin() + (h * d_ + j * (d_ / 2) + i) * columns);
        return out;
    }
    static Values transposed(const Values& v, std::int64_t rows, std::int64_t columns) {
        Values out(v.size());
        for (std::int64_t r = 0; r < rows; r++)
            for (std::int64_t c = 0; c < columns; c++)
                out[static_cast<std::size_t>(c * rows + r)] = v[static_cast<std::size_t>(r * columns + c)];
        return out;
    }
    static Values less_one(Values v) {
        for (float& x : v) x -= 1;
        return v;
    }
    /// Rows [q; k; v] to so many groups, each with its share of q, of k and of v.
    Values grouped(const Values& v, std::int64_t groups, std::int64_t kv) const {
        const std::int64_t rows = (f_.heads + 2 * kv) * d_,
                           columns = static_cast<std::int64_t>(v.size()) / rows;
        Values out;
        auto put = [&](std::int64_t first, std::int64_t count) {
            out.insert(out.end(), v.begin() + first * columns, v.begin() + (first + count) * columns);
        };
        for (std::int64_t g = 0; g < groups; g++) {
            put(g * f_.heads / groups * d_, f_.heads / groups * d_);
            put((f_.heads + g * kv / groups) * d_, kv / groups * d_);
            put((f_.heads + kv + g * kv / groups) * d_, kv / groups * d_);
        }
        return out;
    }

    // What goes into the folder.

    void put(const std::string& name, std::vector<std::int64_t> shape, Values v) {
        if (!v.empty()) out_.tensors[name] = {std::move(shape), std::move(v)};
    }
    void vector(const std::string& name, const std::string& from, bool one_less = false) {
        Values v = values(from);
        const auto n = static_cast<std::int64_t>(v.size());
        put(name, {n}, one_less ? less_one(std::move(v)) : std::move(v));
    }
    void matrix(const std::string& name, const std::string& from, std::int64_t columns) {
        Values v = values(from);
        const auto n = static_cast<std::int64_t>(v.size());
        put(name, {n / columns, columns}, std::move(v));
    }
    void linear(const std::string& name, const std::string& from, std::int64_t columns) {
        matrix(name + ".weight", from + ".weight", columns);
        vector(name + ".bias", from + ".bias");
    }
    void norm(const std::string& name, const std::string& from, bool one_less = false) {
        vector(name + ".weight", from + ".weight", one_less);
        vector(name + ".bias", from + ".bias");
    }
    void permuted(const std::string& name, const std::string& from, std::int64_t heads) {
        put(name + ".weight", {heads * d_, f_.width}, unpermuted(values(from + ".weight"), heads));
        if (has(from + ".bias")) put(name + ".bias", {heads * d_}, unpermuted(values(from + ".bias"), heads));
    }

    /// The layout of LLaMA's class, which most have.
    void llama_tensors(bool permute, bool one_less = false) {
        matrix("model.embed_tokens.weight", "token_embd.weight", f_.width);
        norm("model.norm", "output_norm", one_less);
        if (!f_.tied) linear("lm_head", "output", f_.width);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            norm(m + "input_layernorm", b + "attn_norm", one_less);
            norm(m + "post_attention_layernorm", b + "ffn_norm", one_less);
            if (permute) {
                permuted(m + "self_attn.q_proj", b + "attn_q", f_.heads);
                permuted(m + "self_attn.k_proj", b + "attn_k", f_.kv_heads);
            } else if (has(b + "attn_q.weight")) {
                linear(m + "self_attn.q_proj", b + "attn_q", f_.width);
                linear(m + "self_attn.k_proj", b + "attn_k", f_.width);
            }
            if (has(b + "attn_v.weight")) linear(m + "self_attn.v_proj", b + "attn_v", f_.width);
            linear(m + "self_attn.o_proj", b + "attn_output", f_.heads * d_);
            if (f_.qk_norm == "head" || f_.qk_norm == "full") {
                vector(m + "self_attn.q_norm.weight", b + "attn_q_norm.weight", one_less);
                vector(m + "self_attn.k_norm.weight", b + "attn_k_norm.weight", one_less);
            }
            if (has(b + "ffn_gate.weight")) linear(m + "mlp.gate_proj", b + "ffn_gate", f_.width);
            if (has(b + "ffn_up.weight")) linear(m + "mlp.up_proj", b + "ffn_up", f_.width);
            if (has(b + "ffn_down.weight")) linear(m + "mlp.down_proj", b + "ffn_down", f_.ffn);
        }
    }

    /// Settings that most have.
    void settings(const std::string& type, const std::string& architecture) {
        Json& c = out_.config;
        c["architectures"] = {architecture}, c["model_type"] = type;
        c["hidden_size"] = f_.width, c["intermediate_size"] = f_.ffn, c["num_hidden_layers"] = f_.layers;
        c["num_attention_heads"] = f_.heads, c["num_key_value_heads"] = f_.kv_heads;
        c["max_position_embeddings"] = f_.context, c["vocab_size"] = 256;
        c["rope_theta"] = f_.theta, c["tie_word_embeddings"] = f_.tied;
        if (f_.head) c["head_dim"] = f_.head;
        c["torch_dtype"] = "float32", c["transformers_version"] = "4.46.0", c["use_cache"] = true;
        c["initializer_range"] = 0.02, c["bos_token_id"] = nullptr;
    }
    void rms(const std::string& type, const std::string& architecture) {
        settings(type, architecture);
        out_.config["rms_norm_eps"] = 1e-5, out_.config["hidden_act"] = "silu";
    }
    void scaling() {
        const std::string kind(file_.string(f_.arch + ".rope.scaling.type").value_or(""));
        if (kind.empty() || kind == "none") return;
        Json& s = out_.config["rope_scaling"];
        s[f_.arch == "llama" ? "type" : "rope_type"] = kind;
        s["factor"] = key("rope.scaling.factor", 1);
        if (kind == "yarn")
            s["original_max_position_embeddings"] =
                static_cast<std::int64_t>(key("rope.scaling.original_context_length", 0));
    }
    double rotary_share() const {
        return static_cast<double>(f_.rotary < 0 ? d_ : f_.rotary) / static_cast<double>(d_);
    }

    void experts(const std::string& gate, const std::string& names, const char* g, const char* d,
                 const char* u) {
        const std::int64_t ffn = f_.expert_ffn ? f_.expert_ffn : f_.ffn;
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            matrix(m + gate + ".weight", b + "ffn_gate_inp.weight", f_.width);
            for (std::int64_t e = 0; e < f_.experts; e++) {
                auto one = [&](const char* name, const char* from, std::int64_t rows, std::int64_t columns) {
                    const Values all = values(b + from);
                    put(m + names + "." + std::to_string(e) + "." + name + ".weight", {rows, columns},
                        Values(all.begin() + e * rows * columns, all.begin() + (e + 1) * rows * columns));
                };
                one(g, "ffn_gate_exps.weight", ffn, f_.width), one(u, "ffn_up_exps.weight", ffn, f_.width);
                one(d, "ffn_down_exps.weight", f_.width, ffn);
            }
        }
    }

    // The families.

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
    void gemma() {
        settings("gemma", "GemmaForCausalLM");
        out_.config["rms_norm_eps"] = 1e-5, out_.config["hidden_act"] = "gelu_pytorch_tanh",
        out_.config["head_dim"] = d_;
        llama_tensors(false, true);
    }
    void gemma3() {
        settings("gemma3_text", "Gemma3ForCausalLM");
        Json& c = out_.config;
        c["rms_norm_eps"] = 1e-5, c["hidden_activation"] = "gelu_pytorch_tanh", c["head_dim"] = d_;
        c["query_pre_attn_scalar"] = d_, c["rope_local_base_freq"] = 10000.0, c["sliding_window_pattern"] = 6;
        c["sliding_window"] = static_cast<std::int64_t>(key("attention.sliding_window", 0));
        if (float cap = key("final_logit_softcapping", 0); cap != 0) c["final_logit_softcapping"] = cap;
        scaling();
        llama_tensors(false, true);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            norm(m + "post_attention_layernorm", b + "post_attention_norm", true);
            norm(m + "pre_feedforward_layernorm", b + "ffn_norm", true);
            norm(m + "post_feedforward_layernorm", b + "post_ffw_norm", true);
        }
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
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            norm(m + "post_attention_layernorm", b + "post_attention_norm");
            norm(m + "post_feedforward_layernorm", b + "post_ffw_norm");
        }
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
    void phi2() {
        if (!f_.fused_qkv) return;
        settings("phi", "PhiForCausalLM");
        out_.config["layer_norm_eps"] = 1e-5, out_.config["hidden_act"] = "gelu_new";
        out_.config["partial_rotary_factor"] = rotary_share();
        matrix("model.embed_tokens.weight", "token_embd.weight", f_.width);
        norm("model.final_layernorm", "output_norm"), linear("lm_head", "output", f_.width);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            norm(m + "input_layernorm", b + "attn_norm");
            for (const char* suffix : {".weight", ".bias"}) {
                const Values all = values(b + "attn_qkv" + suffix);
                const auto third = static_cast<std::int64_t>(all.size()) / 3;
                for (std::int64_t p = 0; p < 3; p++)
                    put(m + "self_attn." + "qkv"[p] + "_proj" + suffix,
                        suffix[1] == 'w' ? std::vector<std::int64_t>{f_.width, f_.width}
                                         : std::vector<std::int64_t>{f_.width},
                        Values(all.begin() + p * third, all.begin() + (p + 1) * third));
            }
            linear(m + "self_attn.dense", b + "attn_output", f_.width);
            linear(m + "mlp.fc1", b + "ffn_up", f_.width), linear(m + "mlp.fc2", b + "ffn_down", f_.ffn);
        }
    }
    void phi3() {
        if (!f_.fused_qkv) return;
        rms("phi3", "Phi3ForCausalLM");
        out_.config["partial_rotary_factor"] = rotary_share();
        out_.config["original_max_position_embeddings"] = static_cast<std::int64_t>(
            key("rope.scaling.original_context_length", static_cast<float>(f_.context)));
        if (has("rope_factors_long.weight"))
            out_.config["rope_scaling"] = {{"type", "longrope"},
                                           {"attention_factor", key("rope.scaling.attn_factor", 1)},
                                           {"short_factor", values("rope_factors_short.weight")},
                                           {"long_factor", values("rope_factors_long.weight")}};
        llama_tensors(false);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            out_.tensors.erase(m + "mlp.up_proj.weight");
            linear(m + "self_attn.qkv_proj", b + "attn_qkv", f_.width);
            linear(m + "mlp.gate_up_proj", b + "ffn_up", f_.width);
        }
    }
    void gpt2() {
        Json& c = out_.config;
        c = {{"architectures", {"GPT2LMHeadModel"}},
             {"model_type", "gpt2"},
             {"n_embd", f_.width},
             {"n_head", f_.heads}};
        c["n_layer"] = f_.layers, c["n_positions"] = f_.context, c["n_ctx"] = f_.context,
        c["n_inner"] = f_.ffn;
        c["layer_norm_epsilon"] = 1e-5, c["activation_function"] = "gelu_new", c["vocab_size"] = 256;
        if (!f_.tied) c["tie_word_embeddings"] = false;
        // Old folders have no prefix.
        const std::string prefix = f_.tied ? "" : "transformer.";
        matrix(prefix + "wte.weight", "token_embd.weight", f_.width);
        matrix(prefix + "wpe.weight", "position_embd.weight", f_.width);
        norm(prefix + "ln_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = prefix + "h." + std::to_string(i) + ".";
            norm(m + "ln_1", b + "attn_norm"), norm(m + "ln_2", b + "ffn_norm");
            auto conv = [&](const std::string& name, const std::string& from, std::int64_t in,
                            std::int64_t out) {
                put(name + ".weight", {in, out}, transposed(values(from + ".weight"), out, in));
                vector(name + ".bias", from + ".bias");
            };
            conv(m + "attn.c_attn", b + "attn_qkv", f_.width, 3 * f_.width);
            conv(m + "attn.c_proj", b + "attn_output", f_.width, f_.width);
            conv(m + "mlp.c_fc", b + "ffn_up", f_.width, f_.ffn),
                conv(m + "mlp.c_proj", b + "ffn_down", f_.ffn, f_.width);
            put(m + "attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1});  // the mask, which old files hold
        }
    }
    void grouped_qkv(const std::string& name, const std::string& from, std::int64_t groups, std::int64_t kv) {
        put(name + ".weight", {(f_.heads + 2 * kv) * d_, f_.width},
            grouped(values(from + ".weight"), groups, kv));
        if (has(from + ".bias"))
            put(name + ".bias", {(f_.heads + 2 * kv) * d_}, grouped(values(from + ".bias"), groups, kv));
    }
    void gptneox() {
        settings("gpt_neox", "GPTNeoXForCausalLM");
        Json& c = out_.config;
        c.erase("num_key_value_heads"), c.erase("rope_theta");
        c["rotary_emb_base"] = f_.theta, c["rotary_pct"] = rotary_share(), c["layer_norm_eps"] = 1e-5;
        c["use_parallel_residual"] = *file_.boolean("gptneox.use_parallel_residual"),
        c["hidden_act"] = "gelu";
        matrix("gpt_neox.embed_in.weight", "token_embd.weight", f_.width);
        norm("gpt_neox.final_layer_norm", "output_norm"), linear("embed_out", "output", f_.width);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "gpt_neox.layers." + std::to_string(i) + ".";
            norm(m + "input_layernorm", b + "attn_norm"),
                norm(m + "post_attention_layernorm", b + "ffn_norm");
            grouped_qkv(m + "attention.query_key_value", b + "attn_qkv", f_.heads, f_.heads);
            linear(m + "attention.dense", b + "attn_output", f_.width);
            linear(m + "mlp.dense_h_to_4h", b + "ffn_up", f_.width),
                linear(m + "mlp.dense_4h_to_h", b + "ffn_down", f_.ffn);
        }
    }
    void falcon() {
        settings("falcon", "FalconForCausalLM");
        Json& c = out_.config;
        const bool two_norms = has("blk.0.attn_norm_2.weight");
        c.erase("num_key_value_heads"), c.erase("intermediate_size");
        c["ffn_hidden_size"] = f_.ffn, c["layer_norm_epsilon"] = 1e-5, c["alibi"] = false, c["bias"] = false;
        c["parallel_attn"] = true, c["multi_query"] = true, c["new_decoder_architecture"] = two_norms;
        c["num_kv_heads"] = two_norms ? f_.kv_heads : 71;  // as falcon-7b's says, where it means nothing
        matrix("transformer.word_embeddings.weight", "token_embd.weight", f_.width);
        norm("transformer.ln_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "transformer.h." + std::to_string(i) + ".";
            if (two_norms)
                norm(m + "ln_attn", b + "attn_norm_2"), norm(m + "ln_mlp", b + "attn_norm");
            else
                norm(m + "input_layernorm", b + "attn_norm");
            grouped_qkv(m + "self_attention.query_key_value", b + "attn_qkv", f_.kv_heads, f_.kv_heads);
            linear(m + "self_attention.dense", b + "attn_output", f_.width);
            linear(m + "mlp.dense_h_to_4h", b + "ffn_up", f_.width),
                linear(m + "mlp.dense_4h_to_h", b + "ffn_down", f_.ffn);
        }
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

    const FamilyFile& f_;
    Gguf file_;
    std::int64_t d_;
    PlainFolder out_;
};

}  // namespace

PlainFolder family_folder(const FamilyFile& file, const std::string& gguf) {
    return Maker(file, gguf).make();
}

void write_plain_folder(const PlainFolder& folder, const std::string& path) {
    make_directories(path);
    write_text(path + "/config.json", folder.config.dump(2));
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : folder.tensors) {
        Shape shape;
        shape.rank = static_cast<int>(tensor.shape.size());
        for (std::size_t i = 0; i < tensor.shape.size(); i++) shape.dim[i] = tensor.shape[i];
        writer.add_tensor(name, DType::f32, shape, [&](const SafetensorsWriter::Sink& sink) {
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

}  // namespace linnet::test
