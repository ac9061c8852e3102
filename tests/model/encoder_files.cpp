#include "encoder_files.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "formats/gguf.h"
#include "text/tokenizer.h"
#include "text/train/make.h"

namespace linnet::test {
namespace {

class Maker {
  public:
    explicit Maker(const EncoderFile& file) : f_(file), d_(file.head ? file.head : file.width / file.heads) {
        for (char c : f_.name) state_ = state_ * 31 + static_cast<unsigned char>(c);
    }

    void write(const std::string& path) {
        keys();
        vocabulary();
        f_.arch.starts_with("t5") ? t5() : bert();
        out_.write(path);
    }

  private:
    void number(const char* key, std::int64_t n) {
        out_.add(f_.arch + "." + key, static_cast<std::uint32_t>(n));
    }

    void keys() {
        out_.add("general.architecture", f_.arch);
        number("context_length", f_.context), number("embedding_length", f_.width);
        number("feed_forward_length", f_.ffn), number("block_count", f_.layers);
        number("attention.head_count", f_.heads);
        out_.add(f_.arch + ".attention.layer_norm_epsilon", 1e-5F);
        if (f_.arch.starts_with("t5")) {
            out_.add(f_.arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
            number("attention.key_length", d_), number("attention.value_length", d_);
            number("attention.relative_buckets_count", 32);
            if (f_.arch == "t5") number("decoder_start_token_id", 0);
            if (f_.decoder) number("decoder_block_count", f_.decoder);
        } else {
            out_.add(f_.arch + ".attention.causal", false);
            number("pooling_type", f_.pooling);
            if (f_.arch == "nomic-bert") out_.add(f_.arch + ".rope.freq_base", 1000.0F);
            out_.add("tokenizer.ggml.token_type_count", std::uint32_t{2});
        }
    }

    /// BERT's words, or 256 bytes.
    void vocabulary() {
        if (f_.arch.starts_with("t5")) {
            auto bytes = byte_tokenizer();
            bytes->write(out_);
            v_ = bytes->size();
            return;
        }
        TrainOptions options;
        options.kind = "wordpiece", options.vocab_size = 200, options.lowercase = true;
        VocabularyTrainer trainer(options);
        std::string text;
        for (int i = 0; i < 400; i++)
            text += "the " + std::to_string(i * i % 97) + " cats sat on the mats and " +
                    std::to_string(i * 7 % 31) + " dogs barked at them; ";
        trainer.add(text);
        auto words = trained_tokenizer(trainer.finish(), "gpt-2", true);
        words->write(out_);
        v_ = words->size();
    }

    /// Numbers between mean ± 1.7 deviations, the same on every machine.
    void tensor(const std::string& name, std::int64_t rows, std::int64_t columns, float mean,
                float deviation) {
        std::vector<float> values(static_cast<std::size_t>(rows * std::max<std::int64_t>(columns, 1)));
        for (float& x : values) {
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
            x = mean + deviation * 1.7F * (static_cast<float>(state_ >> 40) / 8388608.0F - 1);
        }
        out_.add_tensor(name, DType::f32, columns ? Shape(rows, columns) : Shape(rows),
                        [values](const GgufWriter::Sink& sink) { sink(values.data(), values.size() * 4); });
    }
    void linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool bias) {
        tensor(name + ".weight", rows, columns, 0, f_.deviation / std::sqrt(static_cast<float>(columns)));
        if (bias) tensor(name + ".bias", rows, 0, 0, 0.3F);
    }
    void norm(const std::string& name, bool bias) {
        tensor(name + ".weight", f_.width, 0, 1, 0.3F);
        if (bias) tensor(name + ".bias", f_.width, 0, 0, 0.3F);
    }

    void bert() {
        const bool bias = f_.arch == "bert";
        const std::int64_t c = f_.width;
        tensor("token_embd.weight", v_, c, 0, 1);
        tensor("token_types.weight", 2, c, 0, 0.5F);
        if (bias) tensor("position_embd.weight", f_.context, c, 0, 1);
        norm("token_embd_norm", true);
        for (std::int64_t i = 0; i < f_.layers; i++) {
            const std::string b = "blk." + std::to_string(i) + ".";
            if (f_.fused || !bias)
                linear(b + "attn_qkv", 3 * c, c, bias);
            else
                for (const char* name : {"attn_q", "attn_k", "attn_v"}) linear(b + name, c, c, bias);
            linear(b + "attn_output", c, c, bias), norm(b + "attn_output_norm", true);
            if (!bias) linear(b + "ffn_gate", f_.ffn, c, false);
            linear(b + "ffn_up", f_.ffn, c, bias), linear(b + "ffn_down", c, f_.ffn, bias);
            norm(b + "layer_output_norm", true);
        }
    }

    void t5() {
        tensor("token_embd.weight", v_, f_.width, 0, 1);
        side("enc.", f_.layers, false);
        if (f_.arch == "t5") side("dec.", f_.decoder ? f_.decoder : f_.layers, true);
        if (!f_.tied) tensor("output.weight", v_, f_.width, 0, 0.3F);
    }

    void side(const std::string& prefix, std::int64_t layers, bool decoder) {
        auto looks = [&](const std::string& name) {
            for (const char* part : {"_q", "_k", "_v"}) linear(name + part, f_.heads * d_, f_.width, false);
            linear(name + "_o", f_.width, f_.heads * d_, false);
            norm(name + "_norm", false);
        };
        for (std::int64_t i = 0; i < layers; i++) {
            const std::string b = prefix + "blk." + std::to_string(i) + ".";
            looks(b + "attn");
            if (i == 0) tensor(b + "attn_rel_b.weight", 32, f_.heads, 0, 1);
            if (decoder) looks(b + "cross_attn");
            norm(b + "ffn_norm", false);
            if (f_.gated) linear(b + "ffn_gate", f_.ffn, f_.width, false);
            linear(b + "ffn_up", f_.ffn, f_.width, false), linear(b + "ffn_down", f_.width, f_.ffn, false);
        }
        norm(prefix + "output_norm", false);
    }

    const EncoderFile& f_;
    std::int64_t d_, v_ = 0;
    GgufWriter out_;
    std::uint64_t state_ = 1;
};

}  // namespace

const std::vector<EncoderFile>& encoder_files() {
    static const std::vector<EncoderFile> files = {
        {.name = "bert-mean", .arch = "bert"},
        {.name = "bert-first", .arch = "bert", .layers = 2, .width = 96, .heads = 3, .pooling = 2},
        {.name = "bert-fused-last", .arch = "bert", .fused = true, .pooling = 3},
        {.name = "nomic", .arch = "nomic-bert"},
        {.name = "nomic-first", .arch = "nomic-bert", .layers = 4, .width = 80, .heads = 5, .pooling = 2},
        {.name = "t5encoder-gated", .arch = "t5encoder", .gated = true, .deviation = 0.8F},
        {.name = "t5-plain", .arch = "t5", .deviation = 0.8F},
        {.name = "t5-gated", .arch = "t5", .head = 24, .gated = true, .tied = false, .deviation = 0.8F},
        {.name = "t5-short-decoder",
         .arch = "t5",
         .layers = 4,
         .decoder = 2,
         .gated = true,
         .deviation = 0.8F},
    };
    return files;
}

const EncoderFile& encoder_file(std::string_view name) {
    for (const EncoderFile& file : encoder_files())
        if (file.name == name) return file;
    throw std::logic_error("no encoder file " + std::string(name));
}

void write_encoder_file(const EncoderFile& file, const std::string& path) {
    Maker(file).write(path);
}

std::vector<std::int32_t> source_tokens() {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 50; i++) ids.push_back(5 + (i * i * 7 + i * 31) % 60);
    return ids;
}

std::vector<std::int32_t> answer_tokens() {
    std::vector<std::int32_t> ids{0};
    for (std::int32_t i = 0; i < 40; i++) ids.push_back(3 + (i * i * 11 + i * 17) % 240);
    return ids;
}

}  // namespace linnet::test
