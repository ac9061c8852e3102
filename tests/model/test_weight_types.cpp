// Whole models whose weights are stored in every type that `quantize` writes, on every instruction set: how
// far their logits are from those of the same stored weights computed in f32.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/kernels.h"
#include "model/engine/engine.h"
#include "model/quantize/quantize.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "random_values.h"
#include "support.h"

using namespace linnet;
using linnet::test::Scratch;

namespace {

/// A llama of width 256, so that k-quants fit, with random weights; written as f32 to `path`.
void write_random_model(const std::string& path) {
    const TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config;
    config.context = 64, config.width = 256, config.layers = 2, config.heads = 4;
    config.vocabulary = tokenizer->size();
    test::make_llama(config, 512);
    config.kv_heads = 2;
    resolve(config, "test");
    const TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values = test::random_values(traced.graph, 7, 0.05);
    const std::vector<Tensor> parameters = test::tensors_of(traced.graph, values);
    save_model(path, config, traced.graph, parameters, *tokenizer, DType::f32, "test", {});
}

/// The file `from` with all matrices in `mix`'s base type; `requantize` reads blocks, too.
void write_in_type(const std::string& from, const QuantizeMix* mix, const std::string& to, bool requantize) {
    const Gguf file(from);
    QuantizeOptions options;
    options.mix = mix, options.pure = true, options.requantize = requantize;
    std::vector<QuantizedTensor> plan = plan_quantization(file, options);
    write_quantized(file, options, plan, to, [](double, double) {});
}

/// Logits by teacher forcing: after a prompt that was read, and after each of the written tokens, one after
/// the other [tokens, V]; keys and values are kept in f32, as only the weights are asked about.
std::vector<float> forced_logits(const std::shared_ptr<const Model>& model) {
    Engine engine(model, {0, 1, 64, 1, DType::f32});
    Sequence sequence = engine.start();
    std::vector<float> out;
    auto take = [&](std::span<const float> logits) { out.insert(out.end(), logits.begin(), logits.end()); };
    std::vector<TokenId> prompt;
    for (int i = 0; i < 17; i++) prompt.push_back((i * 53 + 7) % 256);
    take(sequence.append(prompt, Phase::read));
    for (int i = 0; i < 12; i++) {
        const TokenId id = (i * 31 + 3) % 256;
        take(sequence.append({&id, 1}, Phase::write));
    }
    return out;
}

/// The rms of the difference over the deviation of the expected logits.
double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
    double sum = 0, squares = 0, differences = 0;
    for (std::size_t i = 0; i < got.size(); i++) {
        sum += expected[i], squares += double{expected[i]} * expected[i];
        differences += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
    }
    const double n = static_cast<double>(got.size());
    return std::sqrt(differences / n) / std::sqrt(squares / n - sum / n * (sum / n));
}

}  // namespace

TEST_CASE("weights of every type give the logits of the same weights in f32, on every instruction set") {
    const Scratch scratch;
    write_random_model(scratch / "source.gguf");
    const std::string best = kernels().name;
    for (const QuantizeMix& mix : quantize_mixes()) {
        const DTypeInfo& type = info(mix.base);
        if (type.name != mix.name) continue;  // a mix of types that have rows of their own
        INFO(std::string(mix.name));
        write_in_type(scratch / "source.gguf", &mix, scratch / "stored.gguf", false);
        write_in_type(scratch / "stored.gguf", quantize_mix("f32"), scratch / "f32.gguf", true);
        const auto stored = Model::open(scratch / "stored.gguf"), f32 = Model::open(scratch / "f32.gguf");
        REQUIRE(select_kernels("scalar"));
        const std::vector<float> expected = forced_logits(f32);
        for (const KernelTable<float>* table : usable_kernels()) {
            INFO(std::string(table->name));
            REQUIRE(select_kernels(table->name));
            CHECK(relative_error(forced_logits(f32), expected) < 1e-5);
            // Blocks are multiplied by activations in bytes, f16 and bf16 by such in bf16 on some tiers.
            CHECK(relative_error(forced_logits(stored), expected) < (mix.name == "f32" ? 1e-5 : 0.03));
        }
    }
    select_kernels(best.c_str());
}
