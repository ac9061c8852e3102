// Folders of the families whose classes in transformers have names of their own, many with fused tensors.
#include "model/convert/folder_parts.h"

namespace linnet::test {
namespace {

class Maker : public FolderParts {
  public:
    using FolderParts::FolderParts;

    PlainFolder make() {
        return made_by<Maker>({
            {"phi2", &Maker::phi2},
            {"phi3", &Maker::phi3},
            {"gpt2", &Maker::gpt2},
            {"gptneox", &Maker::gptneox},
            {"falcon", &Maker::falcon},
            {"bloom", &Maker::bloom},
            {"mpt", &Maker::mpt},
            {"exaone", &Maker::exaone},
            {"starcoder", &Maker::starcoder},
            {"internlm2", &Maker::internlm2},
            {"chatglm", &Maker::chatglm},
            {"codeshell", &Maker::codeshell},
            {"refact", &Maker::refact},
            {"dbrx", &Maker::dbrx},
        });
    }

  private:
    void phi2() {
        if (!f_.fused_qkv) return;
        settings("phi", "PhiForCausalLM");
        out_.config["layer_norm_eps"] = 1e-5, out_.config["hidden_act"] = "gelu_new";
        out_.config["partial_rotary_factor"] = rotary_share();
        matrix("model.embed_tokens.weight", "token_embd.weight", f_.width);
        norm("model.final_layernorm", "output_norm"), linear("lm_head", "output", f_.width);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
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
        });
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
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            out_.tensors.erase(m + "mlp.up_proj.weight");
            linear(m + "self_attn.qkv_proj", b + "attn_qkv", f_.width);
            linear(m + "mlp.gate_up_proj", b + "ffn_up", f_.width);
        });
    }
    void exaone() {
        if (f_.q_bias || has("rope_freqs.weight")) return;  // of no scaling that has a name
        settings("exaone", "ExaoneForCausalLM");
        Json& c = out_.config;
        c.erase("num_hidden_layers"), c["num_layers"] = f_.layers;
        c["layer_norm_epsilon"] = 1e-5, c["activation_function"] = "silu";
        matrix("transformer.wte.weight", "token_embd.weight", f_.width);
        norm("transformer.ln_f", "output_norm");
        if (!f_.tied) linear("lm_head", "output", f_.width);
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            norm(m + "ln_1", b + "attn_norm"), norm(m + "ln_2", b + "ffn_norm");
            for (const std::string part : {"q", "k", "v"})
                linear(m + "attn.attention." + part + "_proj", b + "attn_" + part, f_.width);
            linear(m + "attn.attention.out_proj", b + "attn_output", f_.heads * d_);
            linear(m + "mlp.c_fc_0", b + "ffn_gate", f_.width),
                linear(m + "mlp.c_fc_1", b + "ffn_up", f_.width);
            linear(m + "mlp.c_proj", b + "ffn_down", f_.ffn);
        });
    }
    void starcoder() {
        Json& c = out_.config;
        c = {{"architectures", {"GPTBigCodeForCausalLM"}}, {"model_type", "gpt_bigcode"}};
        c["n_embd"] = f_.width, c["n_head"] = f_.heads, c["n_layer"] = f_.layers;
        c["n_positions"] = f_.context, c["n_inner"] = f_.ffn, c["layer_norm_epsilon"] = 1e-5;
        c["activation_function"] = "gelu_pytorch_tanh", c["multi_query"] = true, c["vocab_size"] = 256;
        c["attention_softmax_in_fp32"] = true;
        if (!f_.tied) c["tie_word_embeddings"] = false;
        matrix("transformer.wte.weight", "token_embd.weight", f_.width);
        matrix("transformer.wpe.weight", "position_embd.weight", f_.width);
        norm("transformer.ln_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            norm(m + "ln_1", b + "attn_norm"), norm(m + "ln_2", b + "ffn_norm");
            linear(m + "attn.c_attn", b + "attn_qkv", f_.width);
            linear(m + "attn.c_proj", b + "attn_output", f_.width);
            linear(m + "mlp.c_fc", b + "ffn_up", f_.width), linear(m + "mlp.c_proj", b + "ffn_down", f_.ffn);
        });
    }
    void internlm2() {
        if (f_.q_bias) return;  // its class has one of the output, too
        rms("internlm2", "InternLM2ForCausalLM");
        out_.config["bias"] = false, out_.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
        matrix("model.tok_embeddings.weight", "token_embd.weight", f_.width);
        norm("model.norm", "output_norm"), linear("output", "output", f_.width);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "attention_norm", b + "attn_norm"), norm(m + "ffn_norm", b + "ffn_norm");
            Values all = unpermuted(values(b + "attn_q.weight"), f_.heads);
            for (const Values& more :
                 {unpermuted(values(b + "attn_k.weight"), f_.kv_heads), values(b + "attn_v.weight")})
                all.insert(all.end(), more.begin(), more.end());
            put(m + "attention.wqkv.weight", {(f_.heads + 2 * f_.kv_heads) * d_, f_.width},
                grouped(all, f_.kv_heads));
            linear(m + "attention.wo", b + "attn_output", f_.width);
            linear(m + "feed_forward.w1", b + "ffn_gate", f_.width);
            linear(m + "feed_forward.w2", b + "ffn_down", f_.ffn);
            linear(m + "feed_forward.w3", b + "ffn_up", f_.width);
        });
    }
    void chatglm() {
        if (f_.name == "chatglm-glm") return glm();
        Json& c = out_.config;
        c = {{"architectures", {"ChatGLMModel"}}, {"model_type", "chatglm"}, {"hidden_size", f_.width}};
        c["num_layers"] = f_.layers, c["num_attention_heads"] = f_.heads, c["ffn_hidden_size"] = f_.ffn;
        c["multi_query_attention"] = true, c["multi_query_group_num"] = f_.kv_heads, c["kv_channels"] = d_;
        c["seq_length"] = f_.context, c["padded_vocab_size"] = 256, c["layernorm_epsilon"] = 1e-5;
        c["rope_ratio"] = 1, c["original_rope"] = true, c["rmsnorm"] = true, c["post_layer_norm"] = true;
        c["add_qkv_bias"] = true, c["add_bias_linear"] = false, c["tie_word_embeddings"] = false;
        c["apply_residual_connection_post_layernorm"] = false, c["fp32_residual_connection"] = false;
        matrix("transformer.embedding.word_embeddings.weight", "token_embd.weight", f_.width);
        norm("transformer.encoder.final_layernorm", "output_norm");
        linear("transformer.output_layer", "output", f_.width);
        each_layer("transformer.encoder.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "input_layernorm", b + "attn_norm"),
                norm(m + "post_attention_layernorm", b + "ffn_norm");
            linear(m + "self_attention.query_key_value", b + "attn_qkv", f_.width);
            linear(m + "self_attention.dense", b + "attn_output", f_.width);
            linear(m + "mlp.dense_h_to_4h", b + "ffn_up", f_.width);  // gate, then up
            linear(m + "mlp.dense_4h_to_h", b + "ffn_down", f_.ffn);
        });
    }
    void glm() {
        rms("glm", "GlmForCausalLM");
        out_.config["attention_bias"] = true, out_.config["partial_rotary_factor"] = rotary_share();
        out_.config["head_dim"] = d_;
        llama_tensors(false);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            out_.tensors.erase(m + "mlp.up_proj.weight");
            linear(m + "mlp.gate_up_proj", b + "ffn_up", f_.width);
            std::int64_t first = 0;
            for (const std::string part : {"q", "k", "v"}) {
                const std::int64_t rows = (part == "q" ? f_.heads : f_.kv_heads) * d_;
                const auto piece = [&](const std::string& suffix, std::int64_t columns) {
                    const Values all = values(b + "attn_qkv" + suffix);
                    return Values(all.begin() + first * columns, all.begin() + (first + rows) * columns);
                };
                put(m + "self_attn." + part + "_proj.weight", {rows, f_.width}, piece(".weight", f_.width));
                put(m + "self_attn." + part + "_proj.bias", {rows}, piece(".bias", 1));
                first += rows;
            }
        });
    }
    /// Keys and names that GPT-2's descendants have kept.
    void gpt2_like(const std::string& type, const std::string& architecture) {
        Json& c = out_.config;
        c = {{"architectures", {architecture}}, {"model_type", type}};
        c["n_embd"] = f_.width, c["n_head"] = f_.heads, c["n_layer"] = f_.layers;
        c["n_positions"] = f_.context, c["layer_norm_epsilon"] = 1e-5, c["vocab_size"] = 256;
        c["attention_softmax_in_fp32"] = true, c["tie_word_embeddings"] = f_.tied;
        matrix("transformer.wte.weight", "token_embd.weight", f_.width);
        norm("transformer.ln_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            norm(m + "ln_1", b + "attn_norm"), norm(m + "ln_2", b + "ffn_norm");
            linear(m + "attn.c_proj", b + "attn_output", f_.width);
            linear(m + "mlp.c_proj", b + "ffn_down", f_.ffn);
        });
    }
    void codeshell() {
        gpt2_like("codeshell", "CodeShellForCausalLM");
        Json& c = out_.config;
        c["n_inner"] = f_.ffn, c["activation_function"] = "gelu_pytorch_tanh", c["rope_scaling"] = nullptr;
        c["group_query_attention"] = true, c["num_query_groups"] = f_.kv_heads,
        c["position_embedding_type"] = "rope";
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            linear(m + "attn.c_attn", b + "attn_qkv", f_.width);
            linear(m + "mlp.c_fc", b + "ffn_up", f_.width);
        });
    }
    void refact() {
        if (f_.ffn != 256) return;  // no key says so
        gpt2_like("gpt_refact", "GPTRefactForCausalLM");
        out_.config["multi_query"] = true, out_.config["attention_bias_in_fp32"] = true;
        out_.config["n_inner"] = nullptr;
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            const auto both = [&](const std::string& name, const char* one, const char* other) {
                Values all = values(b + one + ".weight");
                const Values more = values(b + other + ".weight");
                all.insert(all.end(), more.begin(), more.end());
                put(m + name, {static_cast<std::int64_t>(all.size()) / f_.width, f_.width}, all);
            };
            linear(m + "attn.q", b + "attn_q", f_.width);
            both("attn.kv.weight", "attn_k", "attn_v"), both("mlp.gate_up_proj.weight", "ffn_gate", "ffn_up");
        });
    }
    void dbrx() {
        Json& c = out_.config;
        c = {{"architectures", {"DbrxForCausalLM"}}, {"model_type", "dbrx"}, {"d_model", f_.width}};
        c["n_heads"] = f_.heads, c["n_layers"] = f_.layers, c["max_seq_len"] = f_.context;
        c["attn_config"] = {{"clip_qkv", key("attention.clamp_kqv", 0)},
                            {"kv_n_heads", f_.kv_heads},
                            {"model_type", ""},
                            {"rope_theta", f_.theta}};
        c["ffn_config"] = {{"ffn_hidden_size", f_.ffn}, {"moe_num_experts", f_.experts},
                           {"moe_top_k", f_.used},      {"moe_normalize_expert_weights", 1},
                           {"moe_loss_weight", 0.05},   {"ffn_act_fn", {{"name", "silu"}}}};
        c["tie_word_embeddings"] = false, c["vocab_size"] = 256, c["resid_pdrop"] = 0.0;
        matrix("transformer.wte.weight", "token_embd.weight", f_.width);
        norm("transformer.norm_f", "output_norm"), linear("lm_head", "output", f_.width);
        each_layer("transformer.blocks.", [&](const std::string& b, const std::string& m) {
            const std::string a = m + "norm_attn_norm.", e = m + "ffn.experts.mlp.";
            norm(a + "norm_1", b + "attn_norm"), norm(a + "norm_2", b + "attn_output_norm");
            linear(a + "attn.Wqkv", b + "attn_qkv", f_.width);
            linear(a + "attn.out_proj", b + "attn_output", f_.width);
            linear(m + "ffn.router.layer", b + "ffn_gate_inp", f_.width);
            matrix(e + "w1", b + "ffn_gate_exps.weight", f_.width);
            matrix(e + "v1", b + "ffn_up_exps.weight", f_.width);
            Values all;  // [in, out] of each expert
            const Values down = values(b + "ffn_down_exps.weight");
            for (auto at = down.begin(); at < down.end(); at += f_.width * f_.ffn) {
                const Values one = transposed(Values(at, at + f_.width * f_.ffn), f_.width, f_.ffn);
                all.insert(all.end(), one.begin(), one.end());
            }
            put(e + "w2", {f_.experts * f_.ffn, f_.width}, all);
        });
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
        each_layer(prefix + "h.", [&](const std::string& b, const std::string& m) {
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
        });
    }
    /// A layer but for its norms, with q, k and v in so many groups.
    void grouped_layer(const std::string& m, const std::string& attention, const std::string& b,
                       std::int64_t groups) {
        const std::int64_t rows = (f_.heads + 2 * groups) * d_;
        put(attention + ".query_key_value.weight", {rows, f_.width},
            grouped(values(b + "attn_qkv.weight"), groups));
        if (has(b + "attn_qkv.bias"))
            put(attention + ".query_key_value.bias", {rows}, grouped(values(b + "attn_qkv.bias"), groups));
        linear(attention + ".dense", b + "attn_output", f_.width);
        linear(m + "mlp.dense_h_to_4h", b + "ffn_up", f_.width);
        linear(m + "mlp.dense_4h_to_h", b + "ffn_down", f_.ffn);
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
        each_layer("gpt_neox.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "input_layernorm", b + "attn_norm"),
                norm(m + "post_attention_layernorm", b + "ffn_norm");
            grouped_layer(m, m + "attention", b, f_.heads);
        });
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
        each_layer("transformer.h.", [&](const std::string& b, const std::string& m) {
            if (two_norms)
                norm(m + "ln_attn", b + "attn_norm_2"), norm(m + "ln_mlp", b + "attn_norm");
            else
                norm(m + "input_layernorm", b + "attn_norm");
            grouped_layer(m, m + "self_attention", b, f_.kv_heads);
        });
    }
    void bloom() {
        if (f_.ffn != 4 * f_.width) return;  // no key says so
        Json& c = out_.config;
        const bool old = f_.tied;  // the first folders have other keys, and no prefix
        c = {{"architectures", {"BloomForCausalLM"}}, {"model_type", "bloom"}, {"n_layer", f_.layers}};
        c[old ? "n_embed" : "hidden_size"] = f_.width;
        c[old ? "num_attention_heads" : "n_head"] = f_.heads;
        c["seq_length"] = f_.context, c["layer_norm_epsilon"] = 1e-5, c["vocab_size"] = 256;
        c["apply_residual_connection_post_layernorm"] = false, c["n_inner"] = nullptr;
        if (!f_.tied) c["tie_word_embeddings"] = false;
        const std::string prefix = old ? "" : "transformer.";
        matrix(prefix + "word_embeddings.weight", "token_embd.weight", f_.width);
        norm(prefix + "word_embeddings_layernorm", "token_embd_norm"), norm(prefix + "ln_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        each_layer(prefix + "h.", [&](const std::string& b, const std::string& m) {
            norm(m + "input_layernorm", b + "attn_norm"),
                norm(m + "post_attention_layernorm", b + "ffn_norm");
            grouped_layer(m, m + "self_attention", b, f_.heads);
        });
    }
    void mpt() {
        const float alibi = key("attention.max_alibi_bias", 0), clip = key("attention.clamp_kqv", 0);
        Json& c = out_.config;
        c = {{"architectures", {"MPTForCausalLM"}}, {"model_type", "mpt"}, {"d_model", f_.width}};
        c["n_heads"] = f_.heads, c["n_layers"] = f_.layers, c["max_seq_len"] = f_.context;
        c["expansion_ratio"] = static_cast<double>(f_.ffn) / static_cast<double>(f_.width);
        c["no_bias"] = !f_.q_bias, c["learned_pos_emb"] = f_.position_embd, c["vocab_size"] = 256;
        c["norm_type"] = "low_precision_layernorm", c["logit_scale"] = nullptr;
        c["embedding_fraction"] = 1.0, c["init_config"] = {{"name", "kaiming_normal_"}};
        Json& a = c["attn_config"];
        a = {{"alibi", alibi != 0}, {"alibi_bias_max", alibi == 0 ? 8 : alibi}, {"attn_impl", "torch"}};
        a["clip_qkv"] = clip == 0 ? Json() : Json(clip);
        for (const char* name : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"}) a[name] = false;
        a["softmax_scale"] = nullptr;
        a["attn_type"] = f_.kv_heads == f_.heads ? "multihead_attention"
                         : f_.kv_heads == 1      ? "multiquery_attention"
                                                 : "grouped_query_attention";
        if (f_.kv_heads > 1 && f_.kv_heads < f_.heads) a["kv_n_heads"] = f_.kv_heads;
        if (!f_.tied) c["tie_word_embeddings"] = false;
        matrix("transformer.wte.weight", "token_embd.weight", f_.width);
        if (f_.position_embd) matrix("transformer.wpe.weight", "position_embd.weight", f_.width);
        norm("transformer.norm_f", "output_norm");
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        each_layer("transformer.blocks.", [&](const std::string& b, const std::string& m) {
            norm(m + "norm_1", b + "attn_norm"), norm(m + "norm_2", b + "ffn_norm");
            linear(m + "attn.Wqkv", b + "attn_qkv", f_.width);
            linear(m + "attn.out_proj", b + "attn_output", f_.width);
            linear(m + "ffn.up_proj", b + "ffn_up", f_.width);
            linear(m + "ffn.down_proj", b + "ffn_down", f_.ffn);
        });
    }
};

}  // namespace

PlainFolder fused_folder(const FamilyFile& file, const std::string& gguf) {
    return Maker(file, gguf).make();
}

}  // namespace linnet::test
