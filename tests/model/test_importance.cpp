// What errors weigh, from a text: which matrices, and what the weights are for.
#include "model/quantize/importance.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/quantize/divergence.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "random_values.h"
#include "support.h"
#include "text/tokenizer.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// GPT-2's block, whose file has q, k and v in one tensor, or LLaMA's, whose has three; random weights,
/// where `damaged` with a NaN in the embedding of token 0.
std::shared_ptr<const Model> model_of(const Scratch& scratch, bool llama, bool damaged = false) {
    const TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config;
    config.context = 32, config.width = 32, config.layers = 2, config.heads = 4;
    config.vocabulary = tokenizer->size();
    if (llama) make_llama(config, 96);
    resolve(config, "test");
    const TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values = random_values(traced.graph, 5, 0.2);
    if (damaged) values[0][0] = NAN;
    const std::vector<Tensor> parameters = tensors_of(traced.graph, values);
    const std::string path = scratch / (damaged ? "damaged.gguf" : "m.gguf");
    save_model(path, config, traced.graph, parameters, *tokenizer, DType::f32, "test", {});
    return Model::open(path);
}

std::vector<TokenId> some_ids() {
    std::vector<TokenId> ids;
    for (int i = 0; i < 256; i++) ids.push_back((7 * i + i / 9) % 256);
    return ids;
}

Importance importance_of(const Model& model) {
    return measure_importance(model, some_ids(), 32, 1, [](double, double) {});
}

/// Σ w (x - y)² over a matrix's rows, y being x in `type`, made with w or (`weighed` false) without.
double weighted_error(const GgufTensor& t, DType type, const std::vector<float>& w, bool weighed) {
    const auto columns = static_cast<std::int64_t>(w.size());
    const std::int64_t row_bytes = stored_bytes(t.type, columns);
    std::vector<float> x(w.size()), y(w.size());
    std::vector<std::byte> stored(static_cast<std::size_t>(stored_bytes(type, columns)));
    double error = 0;
    for (std::int64_t row = 0; row < t.shape.count() / columns; row++) {
        kernels().load(columns, t.type, t.bytes.data() + row * row_bytes, x.data());
        kernels().quantize(columns, type, x.data(), weighed ? w.data() : nullptr, stored.data());
        kernels().load(columns, type, stored.data(), y.data());
        for (std::size_t i = 0; i < w.size(); i++) {
            const double left = static_cast<double>(x[i]) - static_cast<double>(y[i]);
            error += static_cast<double>(w[i]) * left * left;
        }
    }
    return error;
}

}  // namespace

TEST_CASE("every matrix of a file is weighed under the name it has there, and its weighted error falls") {
    for (const bool llama : {false, true}) {
        Scratch scratch;
        const std::shared_ptr<const Model> model = model_of(scratch, llama);
        const Importance importance = importance_of(*model);
        CHECK(importance.contains(llama ? "blk.1.attn_v.weight" : "blk.1.attn_qkv.weight"));
        std::size_t matrices = 0;
        for (const GgufTensor& t : model->file()->tensors()) {
            if (!is_quantized_tensor(t) || (llama && t.name == "token_embd.weight")) continue;
            CAPTURE(t.name);
            auto found = importance.find(t.name);
            REQUIRE(found != importance.end());
            const std::vector<float>& w = found->second;
            REQUIRE(static_cast<std::int64_t>(w.size()) == t.shape.dim[1]);
            for (DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::iq4_nl}) {
                CAPTURE(info(type).name);
                CHECK(weighted_error(t, type, w, true) < weighted_error(t, type, w, false));
            }
            matrices++;
        }
        CHECK(matrices == importance.size());
    }
}

TEST_CASE(
    "values that are not finite end a measure in the window where they come up, not after all of them") {
    Scratch scratch;
    const std::shared_ptr<const Model> good = model_of(scratch, true), bad = model_of(scratch, true, true);
    EngineOptions options;
    options.context = 32, options.threads = 1;
    int windows = 0;
    const auto progress = [&](double, double) { windows++; };
    const auto refused = [&](auto&& measure) {
        windows = 0;
        try {
            measure();
        } catch (const Error& e) {
            return e.exit() == Exit::input && has(e.what(), "damaged.gguf: expected finite predictions");
        }
        return false;
    };
    CHECK(refused([&] { measure_importance(*bad, some_ids(), 32, 1, progress); }));
    CHECK(windows == 0);
    CHECK(refused([&] { measure_divergence(good, bad, some_ids(), options, 0, progress); }));
    CHECK(windows == 0);
    CHECK(refused([&] { measure_divergence(bad, good, some_ids(), options, 0, progress); }));
    CHECK(windows == 0);
}
