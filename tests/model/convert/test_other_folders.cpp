// Hugging Face folders of encoders, encoder–decoders and Mamba, written from what their classes in
// transformers name their tensors and settings: read as what the GGUF file of the same weights is, and
// written back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
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
                                       {"t5", &EncoderFolder::t5}});
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
        Json& c = out_.config;
        c["architectures"] = {"T5ForConditionalGeneration"}, c["model_type"] = "t5";
        c["d_model"] = f_.width, c["d_kv"] = d_, c["d_ff"] = f_.ffn, c["num_heads"] = f_.heads;
        c["num_layers"] = f_.layers;
        c["num_decoder_layers"] = file_of_.decoder ? file_of_.decoder : f_.layers;
        c["n_positions"] = f_.context, c["relative_attention_num_buckets"] = 32;
        c["relative_attention_max_distance"] = 128, c["layer_norm_epsilon"] = 1e-5;
        c["feed_forward_proj"] = file_of_.gated ? "gated-gelu" : "relu";
        c["is_encoder_decoder"] = true, c["tie_word_embeddings"] = f_.tied;
        c["decoder_start_token_id"] = 0, c["dropout_rate"] = 0.1, c["vocab_size"] = 256;
        matrix("shared.weight", "token_embd.weight", f_.width);
        if (!f_.tied) matrix("lm_head.weight", "output.weight", f_.width);
        side("enc.", "encoder.", f_.layers, false);
        side("dec.", "decoder.", c["num_decoder_layers"], true);
        put("encoder.embed_tokens.weight", {1},
            {1});  // as old files repeat it; and a table that means nothing
        put("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {1}, {1});
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

/// Of family_files().
class MambaFolder : public test::FolderParts {
  public:
    using FolderParts::FolderParts;
    test::PlainFolder make() { return made_by<MambaFolder>({{"mamba", &MambaFolder::mamba}}); }

  private:
    std::int64_t size(const char* name) const { return static_cast<std::int64_t>(key(name, 0)); }

    void mamba() {
        const std::int64_t inner = size("ssm.inner_size"), states = size("ssm.state_size"),
                           rank = size("ssm.time_step_rank"), conv = size("ssm.conv_kernel");
        Json& c = out_.config;
        c["architectures"] = {"MambaForCausalLM"}, c["model_type"] = "mamba";
        c["hidden_size"] = f_.width, c["num_hidden_layers"] = f_.layers, c["state_size"] = states;
        c["intermediate_size"] = inner, c["expand"] = 2, c["conv_kernel"] = conv, c["time_step_rank"] = rank;
        c["layer_norm_epsilon"] = 1e-5, c["use_bias"] = false, c["use_conv_bias"] = true;
        c["tie_word_embeddings"] = f_.tied, c["vocab_size"] = 256, c["max_position_embeddings"] = f_.context;
        matrix("backbone.embeddings.weight", "token_embd.weight", f_.width);
        norm("backbone.norm_f", "output_norm");
        if (!f_.tied) linear("lm_head", "output", f_.width);
        each_layer("backbone.layers.", [&](const std::string& b, const std::string& m) {
            norm(m + "norm", b + "attn_norm");
            linear(m + "mixer.in_proj", b + "ssm_in", f_.width);
            put(m + "mixer.conv1d.weight", {inner, 1, conv}, values(b + "ssm_conv1d.weight"));
            vector(m + "mixer.conv1d.bias", b + "ssm_conv1d.bias");
            linear(m + "mixer.x_proj", b + "ssm_x", inner), linear(m + "mixer.dt_proj", b + "ssm_dt", rank);
            Values a = values(b + "ssm_a");
            for (float& x : a) x = std::log(-x);
            put(m + "mixer.A_log", {inner, states}, a), vector(m + "mixer.D", b + "ssm_d");
            linear(m + "mixer.out_proj", b + "ssm_out", inner);
        });
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
    make_directories(path + "/1_Pooling");
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

/// Every tensor that means something in the folder that came back; A_log to the last bits.
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
        if (!t.name.ends_with("A_log") || t.type->type != DType::f32) {
            CHECK(std::ranges::equal(same->bytes, t.bytes));
            continue;
        }
        REQUIRE(same->bytes.size() == t.bytes.size());
        for (std::size_t i = 0; i < t.bytes.size(); i += sizeof(float)) {
            float x, y;
            std::memcpy(&x, t.bytes.data() + i, sizeof x), std::memcpy(&y, same->bytes.data() + i, sizeof y);
            CHECK(std::abs(x - y) < 1e-7F * std::max(1.0F, 2 * std::abs(x)));
        }
    }
}

void same_json(const std::string& a, const std::string& b) {
    CHECK(nlohmann::json::parse(test::read_text(a)) == nlohmann::json::parse(test::read_text(b)));
}

}  // namespace

TEST_CASE("folders of BERT and T5 are the GGUF files with their weights, bit for bit, there and back") {
    test::Scratch scratch;
    int tried = 0;
    for (test::EncoderFile file : test::encoder_files()) {
        if (file.arch == "t5encoder") continue;
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
    CHECK(tried == 8);
}

TEST_CASE("a folder of Mamba is the GGUF file with its weights, there and back, but for the logarithm of A") {
    test::Scratch scratch;
    const test::FamilyFile file = *std::ranges::find(test::family_files(), "mamba", &test::FamilyFile::name);
    test::write_family_file(file, scratch / "m.gguf");
    write_plain_folder(MambaFolder(file, scratch / "m.gguf").make(), scratch / "f");
    const std::vector<float> expected = test::logits_of(scratch / "m.gguf"),
                             found = test::logits_of(scratch / "f");
    write_folder(Gguf(scratch / "m.gguf"), nullptr, scratch / "out", {});
    const std::vector<float> out = test::logits_of(scratch / "out");
    for (std::size_t i = 0; i < expected.size(); i++) {
        CHECK(std::abs(expected[i] - found[i]) < 1e-4F);
        CHECK(std::abs(expected[i] - out[i]) < 1e-4F);
    }
    write_gguf(open_folder(scratch / "f", {}), scratch / "c.gguf", Existing::replace, [](double, double) {});
    CHECK(test::logits_of(scratch / "c.gguf") == found);
    write_folder(Gguf(scratch / "c.gguf"), nullptr, scratch / "back", {});
    same_json(scratch / "f" + std::string("/config.json"), scratch / "back" + std::string("/config.json"));
    same_tensors(scratch / "f", scratch / "back");
    test::check_straight(scratch / "f", scratch / "back");
}

TEST_CASE("a folder of Mamba in bf16 comes back from GGUF with the same bytes, A_log too") {
    test::Scratch scratch;
    const test::FamilyFile file = *std::ranges::find(test::family_files(), "mamba", &test::FamilyFile::name);
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
    auto refused = [&](std::size_t kind, const std::string& key, const nlohmann::ordered_json& value,
                       const std::string& file = "config.json") {
        const std::string gguf = scratch / "m.gguf", folder = scratch / std::to_string(tried++);
        test::write_encoder_file(test::encoder_files()[kind], gguf);
        write_encoder_folder(test::encoder_files()[kind], gguf, folder);
        auto config = nlohmann::ordered_json::parse(test::read_text(folder + "/" + file));
        config[key] = value;
        test::write_text(folder + "/" + file, config.dump());
        return test::refusal([&] { Model::open(folder); });
    };
    const auto says = [](const std::string& all, const char* part) {
        CHECK_MESSAGE(test::has(all, part), all);
    };
    says(refused(0, "position_embedding_type", "relative_key"),
         "position_embedding_type: expected \"absolute\"");
    says(refused(0, "hidden_act", "relu6"), "hidden_act: expected one of gelu");
    says(refused(0, "is_decoder", true), "is_decoder: expected false");
    says(refused(0, "pooling_mode_cls_token", true, "1_Pooling/config.json"),
         "1_Pooling.pooling_mode_mean_tokens: expected \"first\", as another key says");
    says(refused(0, "pooling_mode_max_tokens", true, "1_Pooling/config.json"),
         "1_Pooling.pooling_mode_max_tokens: expected false");
    says(refused(0, "word_embedding_dimension", 65, "1_Pooling/config.json"),
         "hidden_size: expected 65, as another key says, got 64");
    says(refused(6, "relative_attention_max_distance", 64), "relative_attention_max_distance: expected 128");
    says(refused(6, "feed_forward_proj", "gated-silu"), "feed_forward_proj: expected one of");
    says(refused(6, "num_decoder_layers", 5), "decoder.block.3.");
    CHECK(refused(0, "dropout", 0.5) == "accepted");
    // Newer files of sentence-transformers.
    CHECK(refused(0, "pooling_mode", "mean", "1_Pooling/config.json") == "accepted");
    says(refused(0, "pooling_mode", "cls", "1_Pooling/config.json"), "1_Pooling.pooling_mode: expected");
    says(refused(0, "embedding_dimension", 65, "1_Pooling/config.json"),
         "1_Pooling.embedding_dimension: expected 64, as another key says");
}
