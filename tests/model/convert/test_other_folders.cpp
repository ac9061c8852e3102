// Hugging Face folders of encoders, encoder–decoders and selective scans, written from what their classes in
// transformers name their tensors and settings: read as what the GGUF file of the same weights is, and
// written back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/system.h"
#include "formats/safetensors.h"
#include "model/convert/folder_parts.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/encode/encoder.h"
#include "model/encoder_files.h"
#include "model/engine/engine.h"
#include "support.h"
#include "text/encode/pipeline.h"
#include "text/files/tokenizer_json.h"

using namespace linnet;

namespace {

constexpr double infinity = 3.4028234663852886e+38;  // as it comes back

/// What FolderParts asks of a family's file.
test::FamilyFile shape_of(const test::EncoderFile& file) {
    test::FamilyFile f{.name = file.name, .arch = file.arch};
    f.layers = file.layers, f.width = file.width, f.heads = file.heads, f.head = file.head;
    f.ffn = file.ffn, f.context = file.context, f.tied = file.tied;
    return f;
}

class EncoderFolder : public test::FolderParts {
  public:
    EncoderFolder(const test::EncoderFile& file, const test::FamilyFile& shape, const std::string& gguf)
        : FolderParts(shape, gguf), file_of_(file) {}

    test::PlainFolder make() {
        return made_by<EncoderFolder>({{"bert", &EncoderFolder::bert},
                                       {"nomic-bert", &EncoderFolder::nomic},
                                       {"t5", &EncoderFolder::t5},
                                       {"t5encoder", &EncoderFolder::t5_encoder}});
    }

  private:
    void bert() {
        Json& c = out_.config;
        c["architectures"] = {"BertModel"}, c["model_type"] = "bert";
        c["hidden_size"] = f_.width, c["intermediate_size"] = f_.ffn, c["num_hidden_layers"] = f_.layers;
        c["num_attention_heads"] = f_.heads, c["max_position_embeddings"] = f_.context;
        c["type_vocab_size"] = 2, c["layer_norm_eps"] = 1e-5, c["hidden_act"] = "gelu";
        c["position_embedding_type"] = "absolute", c["hidden_dropout_prob"] = 0.1, c["pad_token_id"] = 0;
        // As sentence-transformers have it, without the class's prefix; as the first BERT's, with old names.
        const bool first = file_of_.pooling == 2;
        const std::string prefix = first ? "bert." : "", e = prefix + "embeddings.";
        const auto old = [&](const std::string& name, const std::string& from) {
            vector(name + (first ? ".gamma" : ".weight"), from + ".weight");
            vector(name + (first ? ".beta" : ".bias"), from + ".bias");
        };
        put("cls.predictions.bias", {3}, first ? Values{1, 2, 3} : Values());
        put(prefix + "pooler.dense.bias", {2}, {1, 2}), put(e + "position_ids", {1, 2}, {0, 1});
        matrix(e + "word_embeddings.weight", "token_embd.weight", f_.width);
        matrix(e + "position_embeddings.weight", "position_embd.weight", f_.width);
        matrix(e + "token_type_embeddings.weight", "token_types.weight", f_.width);
        old(e + "LayerNorm", "token_embd_norm");
        each_layer(prefix + "encoder.layer.", [&](const std::string& b, const std::string& m) {
            linear(m + "attention.self.query", b + "attn_q", f_.width);
            linear(m + "attention.self.key", b + "attn_k", f_.width);
            linear(m + "attention.self.value", b + "attn_v", f_.width);
            linear(m + "attention.output.dense", b + "attn_output", f_.width);
            old(m + "attention.output.LayerNorm", b + "attn_output_norm");
            linear(m + "intermediate.dense", b + "ffn_up", f_.width);
            linear(m + "output.dense", b + "ffn_down", f_.ffn);
            old(m + "output.LayerNorm", b + "layer_output_norm");
        });
    }

    void nomic() {
        Json& c = out_.config;
        c["architectures"] = {"NomicBertModel"}, c["model_type"] = "nomic_bert";
        c["n_embd"] = f_.width, c["n_inner"] = f_.ffn, c["n_layer"] = f_.layers, c["n_head"] = f_.heads;
        c["max_trained_positions"] = f_.context, c["n_positions"] = 8192, c["type_vocab_size"] = 2;
        c["layer_norm_epsilon"] = 1e-5, c["rotary_emb_base"] = 1000, c["rotary_emb_fraction"] = 1.0;
        c["activation_function"] = "swiglu", c["causal"] = false, c["rotary_emb_interleaved"] = false;
        for (const char* name : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm"}) c[name] = false;
        matrix("embeddings.word_embeddings.weight", "token_embd.weight", f_.width);
        matrix("embeddings.token_type_embeddings.weight", "token_types.weight", f_.width);
        norm("emb_ln", "token_embd_norm");
        each_layer("encoder.layers.", [&](const std::string& b, const std::string& m) {
            linear(m + "attn.Wqkv", b + "attn_qkv", f_.width);
            linear(m + "attn.out_proj", b + "attn_output", f_.width);
            norm(m + "norm1", b + "attn_output_norm"), norm(m + "norm2", b + "layer_output_norm");
            linear(m + "mlp.fc11", b + "ffn_up", f_.width), linear(m + "mlp.fc12", b + "ffn_gate", f_.width);
            linear(m + "mlp.fc2", b + "ffn_down", f_.ffn);
        });
    }

    void t5() {
        t5_settings("T5ForConditionalGeneration");
        Json& c = out_.config;
        c["tie_word_embeddings"] = f_.tied;
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        side("enc.", "encoder.", f_.layers, false);
        side("dec.", "decoder.", c["num_decoder_layers"], true);
        put("encoder.embed_tokens.weight", {1},
            {1});  // as old files repeat it; and a table that means nothing
        put("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {1}, {1});
    }
    /// As sentence-transformers have it: with keys of the decoder that is not there.
    void t5_encoder() {
        t5_settings("T5EncoderModel");
        out_.config["tie_word_embeddings"] = false;
        side("enc.", "encoder.", f_.layers, false);
    }

    void t5_settings(const std::string& architecture) {
        Json& c = out_.config;
        c["architectures"] = {architecture}, c["model_type"] = "t5";
        c["d_model"] = f_.width, c["d_kv"] = d_, c["d_ff"] = f_.ffn, c["num_heads"] = f_.heads;
        c["num_layers"] = f_.layers;
        c["num_decoder_layers"] = file_of_.decoder ? file_of_.decoder : f_.layers;
        c["n_positions"] = f_.context, c["relative_attention_num_buckets"] = 32;
        c["relative_attention_max_distance"] = 128, c["layer_norm_epsilon"] = 1e-5;
        c["feed_forward_proj"] = file_of_.gated ? "gated-gelu" : "relu";
        c["is_encoder_decoder"] = true;
        c["decoder_start_token_id"] = 0, c["dropout_rate"] = 0.1, c["vocab_size"] = 256;
        matrix("shared.weight", "token_embd.weight", f_.width);
    }

    void side(const std::string& from, const std::string& to, std::int64_t layers, bool decoder) {
        auto attention = [&](const std::string& b, const std::string& m) {
            for (const std::string part : {"q", "k", "v"}) linear(m + "." + part, b + "_" + part, f_.width);
            linear(m + ".o", b + "_o", f_.heads * d_);
        };
        matrix(to + "block.0.layer.0.SelfAttention.relative_attention_bias.weight",
               from + "blk.0.attn_rel_b.weight", f_.heads);
        for (std::int64_t i = 0; i < layers; i++) {
            const std::string b = from + "blk." + std::to_string(i) + ".",
                              m = to + "block." + std::to_string(i) + ".layer.", last = decoder ? "2." : "1.";
            attention(b + "attn", m + "0.SelfAttention");
            norm(m + "0.layer_norm", b + "attn_norm");
            if (decoder) attention(b + "cross_attn", m + "1.EncDecAttention");
            if (decoder) norm(m + "1.layer_norm", b + "cross_attn_norm");
            norm(m + last + "layer_norm", b + "ffn_norm");
            const std::string ffn = m + last + "DenseReluDense.";
            linear(ffn + "wi_0", b + "ffn_gate", f_.width);
            linear(ffn + (file_of_.gated ? "wi_1" : "wi"), b + "ffn_up", f_.width);
            linear(ffn + "wo", b + "ffn_down", f_.ffn);
        }
        norm(to + "final_layer_norm", from + "output_norm");
    }

    const test::EncoderFile& file_of_;
};

float log_of(float a) {
    return static_cast<float>(std::log(-static_cast<double>(a)));
}

/// Of family_files().
class ScanFolder : public test::FolderParts {
  public:
    using FolderParts::FolderParts;
    test::PlainFolder make() {
        return made_by<ScanFolder>(
            {{"mamba", &ScanFolder::mamba}, {"mamba2", &ScanFolder::mamba2}, {"jamba", &ScanFolder::jamba}});
    }

  private:
    std::int64_t size(const char* name) const { return static_cast<std::int64_t>(key(name, 0)); }

    Values logs(const std::string& name) const {
        Values a = values(name);
        for (float& x : a) x = log_of(x);
        return a;
    }
    /// Mamba's layer but for its norm, from "blk.N." to what its tensors' names begin with.
    void scan(const std::string& b, const std::string& m) {
        const std::int64_t inner = size("ssm.inner_size"), states = size("ssm.state_size");
        linear(m + "in_proj", b + "ssm_in", f_.width);
        put(m + "conv1d.weight", {inner, 1, size("ssm.conv_kernel")}, values(b + "ssm_conv1d.weight"));
        vector(m + "conv1d.bias", b + "ssm_conv1d.bias");
        linear(m + "x_proj", b + "ssm_x", inner);
        linear(m + "dt_proj", b + "ssm_dt", size("ssm.time_step_rank"));
        put(m + "A_log", {inner, states}, logs(b + "ssm_a")), vector(m + "D", b + "ssm_d");
        linear(m + "out_proj", b + "ssm_out", inner);
    }
    void backbone() {
        matrix("backbone.embeddings.weight", "token_embd.weight", f_.width);
        norm("backbone.norm_f", "output_norm");
        if (!f_.tied) linear("lm_head", "output", f_.width);
        each_layer("backbone.layers.",
                   [&](const std::string& b, const std::string& m) { norm(m + "norm", b + "attn_norm"); });
    }

    void mamba() {
        const bool falcon = file_.boolean("mamba.ssm.dt_b_c_rms").value_or(false);
        const std::int64_t inner = size("ssm.inner_size"), states = size("ssm.state_size"),
                           rank = size("ssm.time_step_rank"), conv = size("ssm.conv_kernel");
        Json& c = out_.config;
        c["architectures"] = {falcon ? "FalconMambaForCausalLM" : "MambaForCausalLM"};
        c["model_type"] = falcon ? "falcon_mamba" : "mamba";
        if (falcon) c["mixer_rms_eps"] = 1e-6;
        c["hidden_size"] = f_.width, c["num_hidden_layers"] = f_.layers, c["state_size"] = states;
        c["intermediate_size"] = inner, c["expand"] = 2, c["conv_kernel"] = conv, c["time_step_rank"] = rank;
        c["layer_norm_epsilon"] = 1e-5, c["use_bias"] = false, c["use_conv_bias"] = true;
        c["tie_word_embeddings"] = f_.tied, c["vocab_size"] = 256, c["max_position_embeddings"] = f_.context;
        backbone();
        each_layer("backbone.layers.",
                   [&](const std::string& b, const std::string& m) { scan(b, m + "mixer."); });
    }
    void mamba2() {
        const std::int64_t inner = size("ssm.inner_size"), states = size("ssm.state_size"),
                           heads = size("ssm.time_step_rank"), groups = size("ssm.group_count"),
                           conv = size("ssm.conv_kernel");
        Json& c = out_.config;
        c["architectures"] = {"Mamba2ForCausalLM"}, c["model_type"] = "mamba2";
        c["hidden_size"] = f_.width, c["num_hidden_layers"] = f_.layers, c["state_size"] = states;
        c["num_heads"] = heads, c["head_dim"] = inner / heads, c["expand"] = 2, c["n_groups"] = groups;
        c["conv_kernel"] = conv, c["layer_norm_epsilon"] = 1e-5, c["use_bias"] = false;
        c["use_conv_bias"] = true, c["chunk_size"] = 256, c["time_step_limit"] = {0.0, infinity};
        c["tie_word_embeddings"] = f_.tied, c["vocab_size"] = 256, c["max_position_embeddings"] = f_.context;
        backbone();
        each_layer("backbone.layers.", [&](const std::string& b, const std::string& m) {
            const std::int64_t all = inner + 2 * groups * states;
            linear(m + "mixer.in_proj", b + "ssm_in", f_.width);
            put(m + "mixer.conv1d.weight", {all, 1, conv}, values(b + "ssm_conv1d.weight"));
            vector(m + "mixer.conv1d.bias", b + "ssm_conv1d.bias");
            vector(m + "mixer.dt_bias", b + "ssm_dt.bias"), vector(m + "mixer.D", b + "ssm_d");
            put(m + "mixer.A_log", {heads}, logs(b + "ssm_a"));
            vector(m + "mixer.norm.weight", b + "ssm_norm.weight");
            linear(m + "mixer.out_proj", b + "ssm_out", inner);
        });
    }
    void jamba() {
        rms("jamba", "JambaForCausalLM");
        Json& c = out_.config;
        c.erase("rope_theta"), c["num_key_value_heads"] = *std::ranges::max_element(f_.kv_by_layer);
        c["mamba_d_state"] = size("ssm.state_size"), c["mamba_d_conv"] = size("ssm.conv_kernel");
        c["mamba_dt_rank"] = size("ssm.time_step_rank"), c["mamba_expand"] = 2, c["mamba_conv_bias"] = true;
        c["mamba_proj_bias"] = false, c["num_experts"] = std::max<std::int64_t>(1, f_.experts);
        c["num_experts_per_tok"] = f_.experts ? f_.used : 1, c["sliding_window"] = nullptr;
        c["attn_layer_period"] = f_.mixers.size(), c["attn_layer_offset"] = f_.mixers.size() - 1;
        c["expert_layer_period"] = 2, c["expert_layer_offset"] = 1;
        matrix("model.embed_tokens.weight", "token_embd.weight", f_.width);
        norm("model.final_layernorm", "output_norm");
        if (!f_.tied) linear("lm_head", "output", f_.width);
        each_layer("model.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "input_layernorm", b + "attn_norm"), norm(m + "pre_ff_layernorm", b + "ffn_norm");
            if (has(b + "ssm_in.weight")) scan(b, m + "mamba.");
            for (const std::string part : {"dt", "b", "c"})
                norm(m + "mamba." + part + "_layernorm", b + "ssm_" + part + "_norm");
            for (const std::string part : {"q", "k", "v"})
                linear(m + "self_attn." + part + "_proj", b + "attn_" + part, f_.width);
            linear(m + "self_attn.o_proj", b + "attn_output", f_.width);
            linear(m + "feed_forward.gate_proj", b + "ffn_gate", f_.width);
            linear(m + "feed_forward.up_proj", b + "ffn_up", f_.width);
            linear(m + "feed_forward.down_proj", b + "ffn_down", f_.ffn);
        });
        if (f_.experts)
            experts("feed_forward.router", "feed_forward.experts", "gate_proj", "down_proj", "up_proj");
    }
};

/// An encoder's vector in its own way of pooling, an encoder–decoder's last logits.
std::vector<float> told(const std::string& path) {
    auto model = Model::open(path);
    std::span<const float> made;
    if (model->config().is_encoder()) {
        Encoder encoder(model, 1);
        std::vector<EncoderInput> inputs(1);
        inputs[0].tokens = test::source_tokens();
        made = encoder.vectors(inputs, pooling_from_name(model->config().pooling));
        return {made.begin(), made.end()};
    }
    Engine engine(model, {});
    Sequence sequence = engine.start();
    sequence.encode(test::source_tokens());
    made = sequence.append(test::answer_tokens(), Phase::read);
    return {made.begin(), made.end()};
}

/// The folder, with the words of the GGUF file, and with what sentence-transformers say of pooling.
void write_encoder_folder(const test::EncoderFile& file, const std::string& gguf, const std::string& path) {
    const test::FamilyFile shape = shape_of(file);
    const test::PlainFolder plain = EncoderFolder(file, shape, gguf).make();
    write_plain_folder(plain, path);
    if (file.arch == "t5") return;
    const auto words = tokenizer_from_gguf(Gguf(gguf));
    test::write_text(path + "/tokenizer.json", tokenizer_to_json(dynamic_cast<const Pipeline&>(*words)));
    make_folders(path + "/1_Pooling");
    nlohmann::ordered_json pooling{{"word_embedding_dimension", file.width},
                                   {"pooling_mode_cls_token", file.pooling == 2},
                                   {"pooling_mode_mean_tokens", file.pooling == 1},
                                   {"pooling_mode_max_tokens", false}};
    if (file.pooling == 3) pooling["pooling_mode_lasttoken"] = true;
    test::write_text(path + "/1_Pooling/config.json", pooling.dump(2));
}

/// What the way there and back changes of names: the first BERT's, and what means nothing.
std::string name_back(const std::string& name, const Safetensors& back) {
    for (const auto& [old, now] : {std::pair(".gamma", ".weight"), std::pair(".beta", ".bias")})
        if (name.ends_with(old)) return name.substr(0, name.rfind('.')) + now;
    return back.tensor("bert." + name) ? "bert." + name : name;
}

/// Every tensor that means something in the folder that came back.
void same_tensors(const std::string& a, const std::string& b) {
    const Safetensors one = Safetensors::open(a + "/model.safetensors"),
                      other = Safetensors::open(b + "/model.safetensors");
    for (const SafetensorsTensor& t : one.tensors()) {
        if (t.bytes.size() < 16) continue;  // those that mean nothing are that small here
        CAPTURE(t.name);
        const SafetensorsTensor* same = other.tensor(name_back(t.name, other));
        REQUIRE(same);
        CHECK(same->shape == t.shape);
        CHECK(same->type == t.type);
        CHECK(std::ranges::equal(same->bytes, t.bytes));
    }
}

/// Gives the file's scans numbers that come back from their logarithms, to the bit.
void settle_scans(const std::string& path) {
    std::string file = test::read_text(path);
    const Gguf gguf(path);
    for (const GgufTensor& t : gguf.tensors()) {
        if (!t.name.ends_with("ssm_a")) continue;
        const std::size_t at = file.find({reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()});
        REQUIRE(at != file.npos);
        for (std::size_t i = at; i < at + t.bytes.size(); i += sizeof(float)) {
            float a, before;
            std::memcpy(&a, file.data() + i, sizeof a);
            int rounds = 0;
            do before = a, a = static_cast<float>(-std::exp(static_cast<double>(log_of(a))));
            while (a != before && ++rounds < 9);
            REQUIRE(a == before);
            std::memcpy(file.data() + i, &a, sizeof a);
        }
    }
    test::write_text(path + ".settled", file);
    REQUIRE(rename_file(path + ".settled", path) == 0);
}

void same_json(const std::string& a, const std::string& b) {
    CHECK(nlohmann::json::parse(test::read_text(a)) == nlohmann::json::parse(test::read_text(b)));
}

}  // namespace

TEST_CASE("folders of BERT and T5 are the GGUF files with their weights, bit for bit, there and back") {
    test::Scratch scratch;
    int tried = 0;
    for (test::EncoderFile file : test::encoder_files()) {
        file.fused = false, tried++;
        CAPTURE(file.name);
        const std::string gguf = scratch / "m.gguf", folder = scratch / file.name,
                          back = scratch / (file.name + "-back");
        test::write_encoder_file(file, gguf);
        write_encoder_folder(file, gguf, folder);
        const std::vector<float> expected = told(gguf);
        CHECK(told(folder) == expected);
        write_gguf(open_folder(folder, {}), scratch / "c.gguf", Existing::replace, [](double, double) {});
        CHECK(told(scratch / "c.gguf") == expected);
        write_folder(Gguf(scratch / "c.gguf"), nullptr, back, {});
        same_json(folder + "/config.json", back + "/config.json");
        same_tensors(folder, back);
        test::check_straight(folder, back);
        // A file that came from no folder. No key that is written says the last row.
        if (file.pooling == 3) continue;
        write_folder(Gguf(gguf), nullptr, scratch / (file.name + "-out"), {});
        CHECK(told(scratch / (file.name + "-out")) == expected);
        if (file.arch == "t5") continue;
        same_json(folder + "/1_Pooling/config.json", back + "/1_Pooling/config.json");
        CHECK(test::has(test::read_text(back + "/modules.json"), "sentence_transformers.models.Pooling"));
        CHECK(tokenizer_from_gguf(Gguf(scratch / "c.gguf"))->encode("the cats barked at 7 dogs") ==
              tokenizer_from_gguf(Gguf(gguf))->encode("the cats barked at 7 dogs"));
    }
    CHECK(tried == 9);
}

TEST_CASE(
    "folders of Mamba, Mamba 2 and Jamba are the GGUF files with their weights, bit for bit, there and "
    "back") {
    test::Scratch scratch;
    int tried = 0;
    for (const test::FamilyFile& file : test::family_files()) {
        test::write_family_file(file, scratch / "m.gguf");
        settle_scans(scratch / "m.gguf");
        const test::PlainFolder plain = ScanFolder(file, scratch / "m.gguf").make();
        if (plain.tensors.empty()) continue;
        CAPTURE(file.name);
        tried++;
        const std::string folder = scratch / file.name, out = folder + "-out", back = folder + "-back";
        write_plain_folder(plain, folder);
        std::string config = test::read_text(folder + "/config.json");  // as Python writes it
        if (const std::size_t at = config.find("3.4028234663852886e+38"); at != config.npos)
            config.replace(at, 22, "Infinity"), test::write_text(folder + "/config.json", config);
        const std::vector<float> expected = test::logits_of(scratch / "m.gguf"),
                                 found = test::logits_of(folder);
        write_folder(Gguf(scratch / "m.gguf"), nullptr, out, {});
        const std::vector<float> gone = test::logits_of(out);
        CHECK(found == expected);
        CHECK(gone == expected);
        write_gguf(open_folder(folder, {}), scratch / "c.gguf", Existing::replace, [](double, double) {});
        CHECK(test::logits_of(scratch / "c.gguf") == found);
        write_folder(Gguf(scratch / "c.gguf"), nullptr, back, {});
        CHECK(nlohmann::json::parse(test::read_text(back + "/config.json")) == nlohmann::json(plain.config));
        same_tensors(folder, back);
        test::check_straight(folder, back);
        if (file.arch != "mamba2") continue;
        test::PlainFolder other = plain;  // Codestral's names
        other.tensors.clear();
        for (const auto& [name, tensor] : plain.tensors) other.tensors["model." + name] = tensor;
        write_plain_folder(other, folder + "-codestral");
        CHECK(test::logits_of(folder + "-codestral") == expected);
    }
    CHECK(tried == 6);
}

TEST_CASE("a folder of Mamba in bf16 comes back from GGUF with the same bytes, A_log too") {
    test::Scratch scratch;
    const test::FamilyFile file = test::family_file("mamba");
    test::write_family_file(file, scratch / "m.gguf");
    SinkOptions half;
    half.type = DType::bf16;
    write_folder(Gguf(scratch / "m.gguf"), nullptr, scratch / "f", half);
    const Safetensors weights = Safetensors::open(scratch / "f/model.safetensors");
    for (const SafetensorsTensor& t : weights.tensors()) CHECK(t.type->type == DType::bf16);
    CHECK(weights.tensor("backbone.layers.1.mixer.A_log"));
    write_gguf(open_folder(scratch / "f", {}), scratch / "c.gguf", Existing::replace, [](double, double) {});
    CHECK(test::logits_of(scratch / "c.gguf") == test::logits_of(scratch / "f"));
    write_folder(Gguf(scratch / "c.gguf"), nullptr, scratch / "back", {});
    CHECK(test::read_text(scratch / "back/model.safetensors") ==
          test::read_text(scratch / "f/model.safetensors"));
    same_json(scratch / "f/config.json", scratch / "back/config.json");
}

TEST_CASE("folders of BERT and T5 are refused where linnet or GGUF has no word for a setting") {
    test::Scratch scratch;
    int tried = 0;
    auto refused = [&](const char* name, const std::string& key, const nlohmann::ordered_json& value,
                       const std::string& file = "config.json") {
        const std::string gguf = scratch / "m.gguf", folder = scratch / std::to_string(tried++);
        test::write_encoder_file(test::encoder_file(name), gguf);
        write_encoder_folder(test::encoder_file(name), gguf, folder);
        auto config = nlohmann::ordered_json::parse(test::read_text(folder + "/" + file));
        config[key] = value;
        test::write_text(folder + "/" + file, config.dump());
        return test::refusal([&] { Model::open(folder); });
    };
    const auto says = [](const std::string& all, const char* part) {
        CHECK_MESSAGE(test::has(all, part), all);
    };
    says(refused("bert-mean", "position_embedding_type", "relative_key"),
         "position_embedding_type: expected \"absolute\"");
    says(refused("bert-mean", "hidden_act", "relu6"), "hidden_act: expected one of gelu");
    says(refused("bert-mean", "is_decoder", true), "is_decoder: expected false");
    says(refused("bert-mean", "pooling_mode_cls_token", true, "1_Pooling/config.json"),
         "1_Pooling.pooling_mode_mean_tokens: expected \"first\", as another key says");
    says(refused("bert-mean", "pooling_mode_max_tokens", true, "1_Pooling/config.json"),
         "1_Pooling.pooling_mode_max_tokens: expected false");
    says(refused("bert-mean", "word_embedding_dimension", 65, "1_Pooling/config.json"),
         "hidden_size: expected 65, as another key says, got 64");
    says(refused("t5-plain", "relative_attention_max_distance", 64),
         "relative_attention_max_distance: expected 128");
    says(refused("t5-plain", "feed_forward_proj", "gated-silu"), "feed_forward_proj: expected one of");
    says(refused("t5-plain", "num_decoder_layers", 5), "decoder.block.3.");
    CHECK(refused("bert-mean", "dropout", 0.5) == "accepted");
    // Newer files of sentence-transformers.
    CHECK(refused("bert-mean", "pooling_mode", "mean", "1_Pooling/config.json") == "accepted");
    says(refused("bert-mean", "pooling_mode", "cls", "1_Pooling/config.json"),
         "1_Pooling.pooling_mode: expected");
    says(refused("bert-mean", "embedding_dimension", 65, "1_Pooling/config.json"),
         "1_Pooling.embedding_dimension: expected 64, as another key says");
}
