#include "family_files.h"

#include <cmath>

#include "formats/gguf.h"
#include "text/tokenizer.h"

namespace linnet::test {
namespace {

class Maker {
  public:
    Maker(const FamilyFile& file, const std::string& leave_out)
        : f_(file), d_(file.head ? file.head : file.width / file.heads), leave_out_(leave_out) {
        for (char c : f_.name) state_ = state_ * 31 + static_cast<unsigned char>(c);
    }

    void write(const std::string& path) {
        keys();
        auto tokenizer = train_tokenizer("byte", "text", 256, 1);
        tokenizer->write(out_);
        std::int64_t v = tokenizer->size();
        tensor("token_embd.weight", v, f_.width, 0, 1);
        if (f_.arch == "gpt2") tensor("position_embd.weight", f_.context, f_.width, 0, 1);
        for (std::int64_t i = 0; i < f_.layers; i++) layer(i);
        norm("output_norm");
        if (!f_.tied) tensor("output.weight", v, f_.width, 0, 0.3F);
        if (f_.output_bias) tensor("output.bias", v, 0, 0, 1);
        for (const ExtraTensor& t : f_.tensors)
            if (t.name.find("{}") == std::string::npos)
                tensor(t.name, t.rows, t.columns, t.mean, t.deviation);
        out_.write(path);
    }

  private:
    void key(const std::string& name, const KeyValue& value) {
        if (name == leave_out_) return;
        std::visit(
            [&](const auto& v) {
                if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::vector<std::int32_t>>)
                    out_.add(f_.arch + "." + name, std::span<const std::int32_t>(v));
                else
                    out_.add(f_.arch + "." + name, v);
            },
            value);
    }

    void keys() {
        auto number = [&](const char* name, std::int64_t n) { key(name, static_cast<std::uint32_t>(n)); };
        out_.add("general.architecture", f_.arch);
        number("context_length", f_.context), number("embedding_length", f_.width);
        number("feed_forward_length", f_.ffn), number("block_count", f_.layers);
        number("attention.head_count", f_.heads);
        key(f_.norm == "rms" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5F);
        if (!f_.kv_by_layer.empty())
            key("attention.head_count_kv",
                std::vector<std::int32_t>(f_.kv_by_layer.begin(), f_.kv_by_layer.end()));
        else if (f_.arch != "gpt2")
            number("attention.head_count_kv", f_.kv_heads);
        if (f_.arch != "gpt2") key("rope.freq_base", f_.theta);
        if (f_.rotary != 0 && f_.arch != "gpt2")
            number("rope.dimension_count", f_.rotary < 0 ? d_ : f_.rotary);
        if (f_.head) number("attention.key_length", d_), number("attention.value_length", d_);
        if (f_.experts) number("expert_count", f_.experts), number("expert_used_count", f_.used);
        if (f_.expert_ffn) number("expert_feed_forward_length", f_.expert_ffn);
        if (f_.shared_ffn) number("expert_shared_feed_forward_length", f_.shared_ffn);
        for (const auto& [name, value] : f_.keys) key(name, value);
    }

    /// Numbers between mean ± 1.7 deviations, the same on every machine.
    void tensor(const std::string& name, std::int64_t rows, std::int64_t columns, float mean, float deviation,
                const Shape* shape = nullptr) {
        std::vector<float> values(static_cast<std::size_t>(rows * std::max<std::int64_t>(columns, 1)));
        for (float& x : values) {
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
            x = mean + deviation * 1.7F * (static_cast<float>(state_ >> 40) / 8388608.0F - 1);
        }
        if (name == leave_out_) return;
        out_.add_tensor(name, DType::f32,
                        shape     ? *shape
                        : columns ? Shape(rows, columns)
                                  : Shape(rows),
                        [values](const GgufWriter::Sink& sink) { sink(values.data(), values.size() * 4); });
    }
    void linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool bias) {
        tensor(name + ".weight", rows, columns, 0, 1.5F / std::sqrt(static_cast<float>(columns)));
        if (bias) tensor(name + ".bias", rows, 0, 0, 0.3F);
    }
    void norm(const std::string& name) {
        if (f_.norm == "none") return;
        tensor(name + ".weight", f_.width, 0, 1, 0.3F);
        if (f_.norm == "layer") tensor(name + ".bias", f_.width, 0, 0, 0.3F);
    }
    void heads_norm(const std::string& name, std::int64_t heads) {
        if (f_.qk_norm == "head") tensor(name + ".weight", d_, 0, 1, 0.3F);
        if (f_.qk_norm == "heads") tensor(name + ".weight", heads, d_, 1, 0.3F);
        if (f_.qk_norm == "full") tensor(name + ".weight", heads * d_, 0, 1, 0.3F);
    }

    void layer(std::int64_t i) {
        std::string b = "blk." + std::to_string(i) + ".";
        std::int64_t kv = f_.kv_by_layer.empty()
                              ? f_.kv_heads
                              : f_.kv_by_layer[static_cast<std::size_t>(i) % f_.kv_by_layer.size()];
        for (const std::string& name : f_.norms) norm(b + name);
        if (f_.fused_qkv) {
            linear(b + "attn_qkv", (f_.heads + 2 * kv) * d_, f_.width, f_.q_bias);
        } else {
            linear(b + "attn_q", f_.heads * d_, f_.width, f_.q_bias);
            linear(b + "attn_k", kv * d_, f_.width, f_.q_bias);
            linear(b + "attn_v", kv * d_, f_.width, f_.q_bias);
        }
        heads_norm(b + "attn_q_norm", f_.heads), heads_norm(b + "attn_k_norm", kv);
        linear(b + "attn_output", f_.width, f_.heads * d_, f_.o_bias);
        f_.experts ? mixture(b) : feed_forward(b);
        for (const ExtraTensor& t : f_.tensors)
            if (std::size_t at = t.name.find("{}"); at != std::string::npos)
                tensor(std::string(t.name).replace(at, 2, std::to_string(i)), t.rows, t.columns, t.mean,
                       t.deviation);
    }

    void feed_forward(const std::string& b) {
        if (f_.gated && !f_.fused_ffn) linear(b + "ffn_gate", f_.ffn, f_.width, f_.ffn_bias);
        linear(b + "ffn_up", f_.fused_ffn ? 2 * f_.ffn : f_.ffn, f_.width, f_.ffn_bias);
        linear(b + "ffn_down", f_.width, f_.ffn, f_.ffn_bias);
    }

    void mixture(const std::string& b) {
        std::int64_t ffn = f_.expert_ffn ? f_.expert_ffn : f_.ffn;
        linear(b + "ffn_gate_inp", f_.experts, f_.width, false);
        matrices(b + "ffn_gate_exps.weight", ffn, f_.width),
            matrices(b + "ffn_up_exps.weight", ffn, f_.width);
        matrices(b + "ffn_down_exps.weight", f_.width, ffn);
        if (!f_.shared_ffn) return;
        linear(b + "ffn_gate_shexp", f_.shared_ffn, f_.width, false);
        linear(b + "ffn_up_shexp", f_.shared_ffn, f_.width, false);
        linear(b + "ffn_down_shexp", f_.width, f_.shared_ffn, false);
        if (f_.shared_gate) tensor(b + "ffn_gate_inp_shexp.weight", f_.width, 0, 0, 0.2F);
    }

    /// One for each expert.
    void matrices(const std::string& name, std::int64_t rows, std::int64_t columns) {
        Shape shape(f_.experts * rows, columns);
        shape.dim = {f_.experts, rows, columns, 1}, shape.rank = 3;
        tensor(name, f_.experts * rows, columns, 0, 1.5F / std::sqrt(static_cast<float>(columns)), &shape);
    }

    const FamilyFile& f_;
    std::int64_t d_;
    std::string leave_out_;
    GgufWriter out_;
    std::uint64_t state_ = 1;
};

using Keys = std::vector<std::pair<std::string, KeyValue>>;
using Names = std::vector<std::string>;

/// RoPE's factors are at least 1.
ExtraTensor factors(const char* name, std::int64_t count) {
    return {name, count, 0, 4, 1.7F};
}
const Keys yarn = {{"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 4.0F},
                   {"rope.scaling.original_context_length", 64U}};

/// Adds variants of one family.
void add(std::vector<FamilyFile>& all, std::initializer_list<FamilyFile> files) {
    all.insert(all.end(), files.begin(), files.end());
}

void llamas(std::vector<FamilyFile>& all) {
    add(all,
        {{.name = "llama-grouped", .arch = "llama"},
         {.name = "llama-tied-multi-query", .arch = "llama", .kv_heads = 1, .tied = true, .theta = 500000},
         {.name = "llama-wide-heads", .arch = "llama", .layers = 5, .head = 80},
         {.name = "llama-biases", .arch = "llama", .q_bias = true, .o_bias = true},
         {.name = "llama-qkv-biases", .arch = "llama", .q_bias = true},
         {.name = "llama-all-biases", .arch = "llama", .q_bias = true, .o_bias = true, .ffn_bias = true},
         {.name = "llama-window", .arch = "llama", .keys = {{"attention.sliding_window", 16U}}},
         {.name = "llama-linear",
          .arch = "llama",
          .keys = {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 4.0F}}},
         {.name = "llama-linear-old", .arch = "llama", .keys = {{"rope.scale_linear", 2.0F}}},
         {.name = "llama-unscaled",
          .arch = "llama",
          .keys = {{"rope.scaling.type", "none"}, {"rope.scaling.factor", 4.0F}}},
         {.name = "llama-factors",
          .arch = "llama",
          .tied = true,
          .theta = 500000,
          .tensors = {factors("rope_freqs.weight", 8)}},
         {.name = "llama-yarn", .arch = "llama", .keys = yarn},
         {.name = "llama-no-dimensions", .arch = "llama", .rotary = 0},
         {.name = "deci-kv-heads-by-layer", .arch = "deci", .kv_by_layer = {2, 1, 4}},
         {.name = "deci-alike", .arch = "deci", .kv_heads = 1},
         {.name = "mistral3", .arch = "mistral3", .head = 64},
         {.name = "qwen2-tied", .arch = "qwen2", .tied = true, .q_bias = true, .theta = 1000000},
         {.name = "qwen2-untied", .arch = "qwen2", .kv_heads = 1, .q_bias = true, .rotary = 0},
         {.name = "qwen2-yarn", .arch = "qwen2", .width = 256, .q_bias = true, .keys = yarn},
         {.name = "qwen3", .arch = "qwen3", .head = 32, .qk_norm = "head", .theta = 1000000},
         {.name = "qwen3-tied", .arch = "qwen3", .kv_heads = 1, .head = 64, .tied = true, .qk_norm = "head"},
         {.name = "smollm3-tied", .arch = "smollm3", .layers = 5, .tied = true, .theta = 2000000},
         {.name = "smollm3-untied", .arch = "smollm3", .layers = 7},
         {.name = "minicpm", .arch = "minicpm"},
         {.name = "minicpm-keys",
          .arch = "minicpm",
          .tied = true,
          .keys = {{"embedding_scale", 3.0F}, {"residual_scale", 0.5F}, {"logit_scale", 2.0F}}}});
}

void granites(std::vector<FamilyFile>& all) {
    const Names gemma_norms = {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"};
    add(all,
        {{.name = "granite",
          .arch = "granite",
          .tied = true,
          .keys = {{"attention.scale", 0.0625F},
                   {"embedding_scale", 12.0F},
                   {"residual_scale", 0.22F},
                   {"logit_scale", 8.0F}}},
         {.name = "granite-biases",
          .arch = "granite",
          .q_bias = true,
          .o_bias = true,
          .ffn_bias = true,
          .keys = {{"logit_scale", 1.5F}}},
         {.name = "granite-without-positions",
          .arch = "granite",
          .keys = {{"logit_scale", 4.0F}, {"rope.scaling.finetuned", false}}},
         {.name = "gemma", .arch = "gemma", .kv_heads = 1, .head = 256, .tied = true},
         {.name = "gemma-narrow", .arch = "gemma", .layers = 2, .kv_heads = 4, .tied = true},
         {.name = "gemma3",
          .arch = "gemma3",
          .layers = 7,
          .kv_heads = 1,
          .head = 32,
          .tied = true,
          .norms = gemma_norms,
          .qk_norm = "head",
          .theta = 1000000,
          .keys = {{"attention.sliding_window", 16U},
                   {"rope.scaling.type", "linear"},
                   {"rope.scaling.factor", 8.0F}}},
         {.name = "gemma3-wide",
          .arch = "gemma3",
          .layers = 6,
          .head = 256,
          .tied = true,
          .norms = gemma_norms,
          .qk_norm = "head",
          .theta = 1000000,
          .keys = {{"attention.sliding_window", 64U}, {"final_logit_softcapping", 5.0F}}},
         {.name = "olmo2",
          .arch = "olmo2",
          .kv_heads = 4,
          .norms = {"post_attention_norm", "post_ffw_norm"},
          .qk_norm = "full",
          .theta = 500000},
         {.name = "olmo2-grouped",
          .arch = "olmo2",
          .width = 320,
          .norms = {"post_attention_norm", "post_ffw_norm"},
          .qk_norm = "full"},
         {.name = "phi3", .arch = "phi3", .kv_heads = 4, .fused_qkv = true, .fused_ffn = true},
         {.name = "phi3-grouped-scaled",
          .arch = "phi3",
          .width = 384,
          .fused_qkv = true,
          .fused_ffn = true,
          .keys = {{"rope.scaling.attn_factor", 1.19F},
                   {"rope.scaling.original_context_length", 64U},
                   {"attention.sliding_window", 32U}},
          .tensors = {factors("rope_factors_short.weight", 48), factors("rope_factors_long.weight", 48)}},
         {.name = "phi3-short",
          .arch = "phi3",
          .context = 1024,
          .fused_qkv = true,
          .fused_ffn = true,
          .rotary = 12,
          .keys = {{"rope.scaling.attn_factor", 1.1F}, {"rope.scaling.original_context_length", 512U}},
          .tensors = {factors("rope_factors_short.weight", 6), factors("rope_factors_long.weight", 6)}},
         {.name = "phi3-apart", .arch = "phi3", .fused_ffn = true}});
}

void layer_norms(std::vector<FamilyFile>& all) {
    const Names one = {"attn_norm"};
    add(all, {{.name = "gpt2-tied",
               .arch = "gpt2",
               .kv_heads = 4,
               .norm = "layer",
               .gated = false,
               .tied = true,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .fused_qkv = true},
              {.name = "gpt2-untied",
               .arch = "gpt2",
               .kv_heads = 4,
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .fused_qkv = true},
              {.name = "phi2",
               .arch = "phi2",
               .kv_heads = 4,
               .head = 0,
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .output_bias = true,
               .fused_qkv = true,
               .norms = one,
               .rotary = 6},
              {.name = "phi2-apart",
               .arch = "phi2",
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .output_bias = true,
               .norms = one,
               .rotary = 8},
              {.name = "gptneox-parallel",
               .arch = "gptneox",
               .kv_heads = 4,
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .fused_qkv = true,
               .rotary = 4,
               .keys = {{"use_parallel_residual", true}}},
              {.name = "gptneox-sequential",
               .arch = "gptneox",
               .kv_heads = 4,
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .fused_qkv = true,
               .keys = {{"use_parallel_residual", false}}},
              {.name = "falcon-7b",
               .arch = "falcon",
               .kv_heads = 1,
               .norm = "layer",
               .gated = false,
               .tied = true,
               .fused_qkv = true,
               .norms = one,
               .keys = {{"tensor_data_layout", "jploski"}}},
              {.name = "falcon-40b",
               .arch = "falcon",
               .norm = "layer",
               .gated = false,
               .fused_qkv = true,
               .norms = {"attn_norm", "attn_norm_2"}},
              {.name = "stablelm",
               .arch = "stablelm",
               .kv_heads = 4,
               .norm = "layer",
               .rotary = 4,
               .keys = {{"use_parallel_residual", false}}},
              {.name = "stablelm-biases",
               .arch = "stablelm",
               .norm = "layer",
               .q_bias = true,
               .rotary = 4,
               .keys = {{"use_parallel_residual", false}}},
              {.name = "stablelm-12b",
               .arch = "stablelm",
               .norm = "layer",
               .norms = one,
               .qk_norm = "heads",
               .rotary = 4,
               .keys = {{"use_parallel_residual", true}}},
              {.name = "starcoder2-tied",
               .arch = "starcoder2",
               .norm = "layer",
               .gated = false,
               .tied = true,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .theta = 100000},
              {.name = "olmo", .arch = "olmo", .kv_heads = 4, .norm = "none"},
              {.name = "olmo-clamped-tied",
               .arch = "olmo",
               .norm = "none",
               .tied = true,
               .keys = {{"attention.clamp_kqv", 0.8F}}},
              {.name = "command-r",
               .arch = "command-r",
               .kv_heads = 4,
               .norm = "plain",
               .tied = true,
               .norms = one,
               .keys = {{"logit_scale", 0.0625F}}},
              {.name = "command-r-plus",
               .arch = "command-r",
               .layers = 64,  // llama.cpp looks for norms of heads from there on
               .width = 32,
               .ffn = 32,
               .norm = "plain",
               .tied = true,
               .norms = one,
               .qk_norm = "heads",
               .keys = {{"logit_scale", 0.8F}}},
              {.name = "cohere2",
               .arch = "cohere2",
               .layers = 5,
               .norm = "plain",
               .tied = true,
               .norms = one,
               .keys = {{"logit_scale", 0.25F}, {"attention.sliding_window", 24U}}},
              {.name = "nemotron", .arch = "nemotron", .norm = "layer", .gated = false, .rotary = 8},
              {.name = "nemotron-biases",
               .arch = "nemotron",
               .kv_heads = 1,
               .norm = "layer",
               .gated = false,
               .q_bias = true,
               .o_bias = true,
               .ffn_bias = true,
               .rotary = 8}});
}

void mixtures(std::vector<FamilyFile>& all) {
    add(all, {{.name = "mixtral", .arch = "llama", .experts = 8, .used = 2},
              {.name = "qwen2moe",
               .arch = "qwen2moe",
               .q_bias = true,
               .experts = 6,
               .used = 4,
               .expert_ffn = 32,
               .shared_ffn = 64,
               .shared_gate = true},
              {.name = "qwen3-moe",
               .arch = "qwen3moe",
               .head = 32,
               .qk_norm = "head",
               .experts = 16,
               .used = 4,
               .expert_ffn = 32},
              {.name = "olmoe", .arch = "olmoe", .kv_heads = 4, .qk_norm = "full", .experts = 8, .used = 3},
              {.name = "granitemoe",
               .arch = "granitemoe",
               .keys = {{"attention.scale", 0.1F},
                        {"embedding_scale", 12.0F},
                        {"residual_scale", 0.22F},
                        {"logit_scale", 6.0F}},
               .experts = 8,
               .used = 2}});
}

}  // namespace

const std::vector<FamilyFile>& family_files() {
    static const std::vector<FamilyFile> all = [] {
        std::vector<FamilyFile> list;
        llamas(list), granites(list), layer_norms(list), mixtures(list);
        return list;
    }();
    return all;
}

void write_family_file(const FamilyFile& file, const std::string& path, const std::string& leave_out) {
    Maker(file, leave_out).write(path);
}

std::vector<std::int32_t> family_tokens() {
    std::vector<std::int32_t> tokens;
    for (std::int32_t i = 0; i < 110; i++) tokens.push_back(3 + (i * i * 7 + i * 31) % 250);
    return tokens;
}

std::vector<std::int32_t> family_probes(std::int64_t position, std::int64_t vocabulary) {
    std::vector<std::int32_t> ids;
    for (std::int64_t k = 0; k < 4; k++)
        ids.push_back(static_cast<std::int32_t>((position * 7 + k * 61) % vocabulary));
    return ids;
}

}  // namespace linnet::test
