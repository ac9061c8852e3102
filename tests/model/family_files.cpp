#include "family_files.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "formats/gguf.h"
#include "recurrent_files.h"
#include "support.h"
#include "text/tokenizer.h"

namespace linnet::test {
namespace {

class Maker {
  public:
    Maker(const FamilyFile& file, const std::string& leave_out)
        : f_(file),
          d_(file.head ? file.head : file.width / std::max<std::int64_t>(file.heads, 1)),
          leave_out_(leave_out) {
        for (char c : f_.name) state_ = state_ * 31 + static_cast<unsigned char>(c);
    }

    void write(const std::string& path) {
        keys();
        auto tokenizer = train_tokenizer("byte", "text", 256, 1);
        tokenizer->write(out_);
        std::int64_t v = tokenizer->size();
        tensor("token_embd.weight", v, f_.width, 0, 1);
        if (f_.embd_norm) norm("token_embd_norm");
        if (f_.position_embd) tensor("position_embd.weight", f_.context, f_.width, 0, 1);
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
        else if (f_.kv_key)
            number("attention.head_count_kv", f_.kv_heads);
        if (f_.rope) key("rope.freq_base", f_.theta);
        if (f_.rope && f_.rotary != 0) number("rope.dimension_count", f_.rotary < 0 ? d_ : f_.rotary);
        if (f_.head) number("attention.key_length", d_), number("attention.value_length", d_);
        if (f_.experts) number("expert_count", f_.experts), number("expert_used_count", f_.used);
        if (f_.expert_ffn) number("expert_feed_forward_length", f_.expert_ffn);
        if (f_.dense) number("leading_dense_block_count", f_.dense);
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
    void extra(const std::string& name, const ExtraTensor& t) {
        Shape shape(t.rows);
        std::copy(t.shape.begin(), t.shape.end(), shape.dim.begin());
        shape.rank = static_cast<int>(t.shape.size());
        tensor(name, t.rows, t.columns, t.mean, t.deviation, t.shape.empty() ? nullptr : &shape);
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
        std::string mixer =
            f_.mixers.empty() ? "attention" : f_.mixers[static_cast<std::size_t>(i) % f_.mixers.size()];
        if (mixer == "attention") attention(b, kv);
        for (const ExtraTensor& t : mixer_tensors(f_, mixer, i)) extra(b + t.name, t);
        auto at = [&](const auto& list) { return list[static_cast<std::size_t>(i) % list.size()]; };
        bool experts = f_.expert_layers.empty() ? i >= f_.dense : at(f_.expert_layers) != 0;
        if (f_.second == "ffn") f_.experts&& experts ? mixture(b) : feed_forward(b);
        for (const ExtraTensor& t : f_.tensors)
            if (std::size_t at = t.name.find("{}"); at != std::string::npos)
                tensor(std::string(t.name).replace(at, 2, std::to_string(i)), t.rows, t.columns, t.mean,
                       t.deviation);
    }

    void attention(const std::string& b, std::int64_t kv) {
        if (f_.fused_qkv) {
            linear(b + "attn_qkv", (f_.heads + 2 * kv) * d_, f_.width, f_.q_bias);
        } else {
            linear(b + "attn_q", f_.heads * d_, f_.width, f_.q_bias);
            linear(b + "attn_k", kv * d_, f_.width, f_.q_bias);
            linear(b + "attn_v", kv * d_, f_.width, f_.q_bias);
        }
        heads_norm(b + "attn_q_norm", f_.heads), heads_norm(b + "attn_k_norm", kv);
        linear(b + "attn_output", f_.width, f_.heads * d_, f_.o_bias);
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

using nlohmann::json;
using Member = std::variant<std::string FamilyFile::*, std::int64_t FamilyFile::*, float FamilyFile::*,
                            bool FamilyFile::*, std::vector<std::string> FamilyFile::*,
                            std::vector<std::int64_t> FamilyFile::*>;

const std::map<std::string, Member>& members() {
    using F = FamilyFile;
    static const std::map<std::string, Member> all = {
        {"name", &F::name},
        {"arch", &F::arch},
        {"layers", &F::layers},
        {"width", &F::width},
        {"heads", &F::heads},
        {"kv_heads", &F::kv_heads},
        {"head", &F::head},
        {"ffn", &F::ffn},
        {"context", &F::context},
        {"norm", &F::norm},
        {"gated", &F::gated},
        {"tied", &F::tied},
        {"q_bias", &F::q_bias},
        {"o_bias", &F::o_bias},
        {"ffn_bias", &F::ffn_bias},
        {"output_bias", &F::output_bias},
        {"fused_qkv", &F::fused_qkv},
        {"fused_ffn", &F::fused_ffn},
        {"position_embd", &F::position_embd},
        {"embd_norm", &F::embd_norm},
        {"norms", &F::norms},
        {"mixers", &F::mixers},
        {"expert_layers", &F::expert_layers},
        {"second", &F::second},
        {"qk_norm", &F::qk_norm},
        {"rope", &F::rope},
        {"kv_key", &F::kv_key},
        {"rotary", &F::rotary},
        {"theta", &F::theta},
        {"kv_by_layer", &F::kv_by_layer},
        {"experts", &F::experts},
        {"used", &F::used},
        {"expert_ffn", &F::expert_ffn},
        {"shared_ffn", &F::shared_ffn},
        {"dense", &F::dense},
        {"shared_gate", &F::shared_gate},
    };
    return all;
}

/// GGUF's type of a metadata value: whole numbers are u32, others f32; a list is of truth values.
KeyValue key_value(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_array()) return value.get<std::vector<bool>>();
    if (value.is_number_float()) return value.get<float>();
    return value.get<std::uint32_t>();
}

void read_members(const json& object, FamilyFile& file) {
    for (const auto& [name, value] : object.items()) {
        if (name == "keys") {
            for (const auto& [key, says] : value.items()) file.keys.emplace_back(key, key_value(says));
        } else if (name == "tensors") {
            for (const json& t : value)
                file.tensors.push_back({t.at("name"), t.at("rows"), 0, t.at("mean"), t.at("deviation")});
        } else {
            std::visit([&, &value = value](auto member) { value.get_to(file.*member); }, members().at(name));
        }
    }
}

}  // namespace

const std::vector<FamilyFile>& family_files() {
    static const std::vector<FamilyFile> all = [] {
        json table = json::parse(read_text("tests/model/family_files.json"));
        const json& shapes = table.at("shapes");
        std::vector<FamilyFile> list;
        for (const json& row : table.at("files")) {
            FamilyFile file;
            std::string arch = row.at("arch");
            if (shapes.contains(arch)) read_members(shapes[arch], file);
            read_members(row, file);
            list.push_back(std::move(file));
        }
        return list;
    }();
    return all;
}

const FamilyFile& family_file(std::string_view name) {
    for (const FamilyFile& file : family_files())
        if (file.name == name) return file;
    throw std::logic_error("no family file " + std::string(name));
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
