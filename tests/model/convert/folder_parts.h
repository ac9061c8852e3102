// What folders of all families are made of: the values of a GGUF file, changes of their order, the layout
// that most classes of transformers have.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf.h"
#include "model/convert/family_folders.h"

namespace linnet::test {

/// One folder being made.
class FolderParts {
  public:
    FolderParts(const FamilyFile& f, const std::string& path)
        : f_(f), file_(path), d_(f.head ? f.head : f.width / std::max<std::int64_t>(f.heads, 1)) {}

  protected:
    using Json = nlohmann::ordered_json;

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

    std::int64_t kv_heads(std::int64_t layer) const {
        return f_.kv_by_layer.empty()
                   ? f_.kv_heads
                   : f_.kv_by_layer[static_cast<std::size_t>(layer) % f_.kv_by_layer.size()];
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
    /// Rows [q; k; v] to so many groups, each with its share of q and a head of k and of v.
    Values grouped(const Values& v, std::int64_t groups) const {
        const std::int64_t rows = (f_.heads + 2 * groups) * d_,
                           columns = static_cast<std::int64_t>(v.size()) / rows;
        Values out;
        auto put = [&](std::int64_t first, std::int64_t count) {
            out.insert(out.end(), v.begin() + first * columns, v.begin() + (first + count) * columns);
        };
        for (std::int64_t g = 0; g < groups; g++) {
            put(g * f_.heads / groups * d_, f_.heads / groups * d_);
            put((f_.heads + g) * d_, d_);
            put((f_.heads + groups + g) * d_, d_);
        }
        return out;
    }

    // What goes into the folder.

    /// What the family's member of `makers` makes; nothing where it has none.
    template <class Maker>
    PlainFolder made_by(const std::map<std::string, void (Maker::*)()>& makers) {
        const auto found = makers.find(f_.arch);
        if (found == makers.end()) return {};
        (static_cast<Maker*>(this)->*found->second)();
        return std::move(out_);
    }
    /// Calls visit(what its tensors' names begin with in GGUF, and here) for every layer.
    template <class Visit>
    void each_layer(const std::string& prefix, const Visit& visit) const {
        for (std::int64_t i = 0; i < f_.layers; i++)
            visit("blk." + std::to_string(i) + ".", prefix + std::to_string(i) + ".");
    }
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
                permuted(m + "self_attn.k_proj", b + "attn_k", kv_heads(i));
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
        for (std::int64_t i = f_.dense; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".",
                              m = "model.layers." + std::to_string(i) + ".";
            if (!has(b + "ffn_gate_inp.weight")) continue;
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

    const FamilyFile& f_;
    Gguf file_;
    std::int64_t d_;
    PlainFolder out_;
};

/// Of the families with fused tensors and names of their own (fused_folders.cpp); no tensors for others.
PlainFolder fused_folder(const FamilyFile& file, const std::string& gguf);

}  // namespace linnet::test
