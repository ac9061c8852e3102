// Keys and values that are projected along the sequence (Linformer): parameters, texts shorter than the
// context, the same bits alone and in company, weights of any type, how a team shares the work.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/kernels.h"
#include "model/encode/encoder.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "ops/matmul.h"
#include "random_values.h"
#include "support.h"

using namespace linnet;
using nlohmann::json;

namespace {

constexpr std::int64_t context = 96;

ModelConfig config_of(const json& settings, std::int64_t vocabulary) {
    return test::config_with(vocabulary, {{{"model.kind", "encoder"},
                                           {"model.context", context},
                                           {"model.width", 32},
                                           {"model.layers", 2},
                                           {"model.heads", 4},
                                           {"model.position.kind", "rope"},
                                           {"model.attention.projected", {8, 40}}},
                                          settings});
}

/// An encoder with random weights.
struct Made {
    TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config;
    TracedModel traced;
    std::vector<std::vector<float>> values;

    explicit Made(const json& settings)
        : config(config_of(settings, tokenizer->size())),
          traced(trace(config, false)),
          values(test::random_values(traced.graph, 5, 0.2)) {}
    std::vector<Tensor> parameters() { return test::tensors_of(traced.graph, values); }
    std::shared_ptr<const Model> view() { return Model::view(config, tokenizer, parameters()); }
};

using Vectors = std::vector<float>;

/// The mean vectors of texts of these lengths, one after another, run together.
Vectors vectors(const std::shared_ptr<const Model>& model, const std::vector<std::int64_t>& lengths,
                int threads = 2) {
    std::vector<EncoderInput> inputs;
    for (std::int64_t length : lengths) {
        EncoderInput& input = inputs.emplace_back();
        for (std::int64_t t = 0; t < length; t++)
            input.tokens.push_back(static_cast<TokenId>((7 * t * t + 3 * length + t) % 256));
    }
    Encoder encoder(model, threads);
    REQUIRE(encoder.fitting(inputs) == inputs.size());
    std::span<const float> all = encoder.vectors(inputs, Pooling::mean);
    return {all.begin(), all.end()};
}

/// Texts under a matrix of `rows` rows for `columns` positions, by the kernels selected now, as the op gets
/// them.
struct Projected {
    static constexpr std::int64_t rows = 64, columns = 1024, width = 16;
    Rows from, to;
    std::vector<float> e, x, y, dy, de;
    std::vector<std::byte> quantized, room;
    float* unpacked = nullptr;  // in the workspace, behind the kernels' own

    explicit Projected(const std::vector<std::int64_t>& lengths) {
        for (std::int64_t length : lengths) {
            const auto slot = static_cast<std::int32_t>(from.segments.size());
            from.add(length, 0, slot), to.add(std::min(length, rows), 0, slot);
        }
        e = numbers(rows * columns), x = numbers(from.count * width), dy = numbers(to.count * width);
        y.resize(dy.size());
        quantized.resize(static_cast<std::size_t>(stored_bytes(DType::q8_0, rows * columns)));
        kernels().quantize(rows * columns, DType::q8_0, e.data(), nullptr, quantized.data());
        room.resize(kernel_workspace(kernels()) + 64 + unpack_bytes<float>(DType::q8_0, columns, rows));
    }
    static std::vector<float> numbers(std::int64_t count) {
        std::vector<float> all;
        for (std::int64_t i = 0; i < count; i++) all.push_back(static_cast<float>(i * i % 23 - 11) / 16);
        return all;
    }
    Call<float> call(bool quantizes, Worker worker) {
        Call<float> c;
        c.worker = worker, c.kernels = &kernels(), c.width = width, c.rows = to.count, c.space = &to;
        c.in[0] = x.data(), c.in_type[0] = DType::f32, c.in_width[0] = width;
        c.in_space[0] = &from, c.in_rows[0] = from.count;
        if (quantizes)
            c.parameter[0] = {quantized.data(), DType::q8_0, Shape(rows, columns)};
        else
            c.parameter[0] = {e.data(), DType::f32, Shape(rows, columns)};
        c.out = y.data(), c.dout = dy.data();
        const auto at = reinterpret_cast<std::uintptr_t>(room.data());
        c.workspace = reinterpret_cast<void*>((at + 63) / 64 * 64);
        unpacked =
            reinterpret_cast<float*>(static_cast<std::byte*>(c.workspace) + kernel_workspace(kernels()));
        return c;
    }
    /// What this member adds to a gradient of zeros.
    std::vector<float> gradient(Worker worker) {
        de.assign(static_cast<std::size_t>(rows * columns), 0);
        Call<float> c = call(false, worker);
        c.parameter_grad[0] = de.data();
        project_op.backward(c);
        return de;
    }
};

/// Calls test() on every instruction set.
template <class Test>
void on_every_set(const Test& test) {
    const std::string best = kernels().name;
    for (const KernelTable<float>* table : usable_kernels()) {
        INFO(std::string(table->name));
        REQUIRE(select_kernels(table->name));
        test();
    }
    select_kernels(best.c_str());
}

}  // namespace

TEST_CASE("matrices of projected keys and values are those that their heads, both, or all layers share") {
    using Shapes = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;
    auto shapes = [](const json& settings) {
        Shapes all;
        const TracedModel model = trace(config_of(settings, 11), true);
        for (const Parameter& p : model.graph.parameters())
            if (p.name.ends_with("_proj.weight")) all[p.name] = {p.shape.dim[0], p.shape.dim[1]};
        return all;
    };
    CHECK(shapes(json::object()) == Shapes{{"blk.0.attn_k_proj.weight", {8, context}},
                                           {"blk.0.attn_v_proj.weight", {8, context}},
                                           {"blk.1.attn_k_proj.weight", {40, context}},
                                           {"blk.1.attn_v_proj.weight", {40, context}}});
    CHECK(
        shapes({{"model.attention.projected", {0, 40}}, {"model.attention.projected_share", "key-value"}}) ==
        Shapes{{"blk.1.attn_kv_proj.weight", {40, context}}});
    CHECK(shapes({{"model.attention.projected", 8}, {"model.attention.projected_share", "layerwise"}}) ==
          Shapes{{"attn_kv_proj.weight", {8, context}}});
    const json both = {{"model.kind", "encoder-decoder"}, {"model.position.kind", "sinusoidal"}};
    CHECK(shapes(both).size() == 4);
    CHECK(shapes(both).contains("enc.blk.1.attn_v_proj.weight"));
}

TEST_CASE("a text's vector under projected keys has the same bits alone and in company, on every set") {
    Made made(json::object());
    const std::shared_ptr<const Model> model = made.view();
    const std::vector<std::int64_t> lengths{96, 5, 40, 1, 77, 41};
    on_every_set([&] {
        const Vectors together = vectors(model, lengths, 3);
        const std::size_t width = together.size() / lengths.size();
        for (std::size_t i = 0; i < lengths.size(); i++) {
            const Vectors alone = vectors(model, {lengths[i]}, 1);
            CHECK(std::equal(alone.begin(), alone.end(),
                             together.begin() + static_cast<std::ptrdiff_t>(i * width)));
        }
    });
}

TEST_CASE("a shorter text uses the matrices' columns for its own positions, and no others") {
    constexpr std::int64_t length = 60;
    Made made(json::object());
    const Vectors before = vectors(made.view(), {length});
    auto change = [&](std::int64_t first, std::int64_t last) {
        for (std::size_t i = 0; i < made.values.size(); i++) {
            const Parameter& p = made.traced.graph.parameters()[i];
            if (!p.name.ends_with("_proj.weight")) continue;
            for (std::int64_t row = 0; row < p.shape.dim[0]; row++)
                for (std::int64_t column = first; column < last; column++)
                    made.values[i][static_cast<std::size_t>(row * context + column)] = 9;
        }
    };
    change(length, context);
    CHECK(vectors(made.view(), {length}) == before);
    change(length - 1, length);
    CHECK(vectors(made.view(), {length}) != before);
}

TEST_CASE("projections of any type of weight are what their weights in f32 give") {
    Made made(json::object());
    for (DType type : {DType::f16, DType::bf16, DType::q8_0}) {
        std::vector<Tensor> stored = made.parameters(), loaded = stored;
        std::vector<std::vector<std::byte>> small;
        std::vector<std::vector<float>> plain;
        for (std::size_t i = 0; i < stored.size(); i++) {
            const Parameter& p = made.traced.graph.parameters()[i];
            if (!p.name.ends_with("_proj.weight")) continue;
            const std::int64_t n = p.shape.count();
            std::vector<std::byte>& to =
                small.emplace_back(static_cast<std::size_t>(n / info(type).block * info(type).bytes));
            if (info(type).block == 1)
                kernels().store(n, type, made.values[i].data(), to.data());
            else
                kernels().quantize(n, type, made.values[i].data(), nullptr, to.data());
            kernels().load(n, type, to.data(), plain.emplace_back(static_cast<std::size_t>(n)).data());
            stored[i] = {to.data(), type, p.shape};
            loaded[i].data = plain.back().data();
        }
        REQUIRE(!small.empty());
        on_every_set([&] {
            const std::vector<std::int64_t> lengths{96, 33};
            const Vectors ours = vectors(Model::view(made.config, made.tokenizer, stored), lengths),
                          theirs = vectors(Model::view(made.config, made.tokenizer, loaded), lengths);
            for (std::size_t i = 0; i < ours.size(); i++)
                CHECK(ours[i] == doctest::Approx(theirs[i]).epsilon(1e-4));
        });
    }
}

TEST_CASE("a model of projected keys is in its file as it was made") {
    test::Scratch scratch;
    for (const char* share : {"headwise", "key-value", "layerwise"}) {
        Made made({{"model.attention.projected", 8}, {"model.attention.projected_share", share}});
        save_model(scratch / "m.gguf", made.config, made.traced.graph, made.parameters(), *made.tokenizer,
                   DType::f32, "test", {});
        const auto model = Model::open(scratch / "m.gguf");
        CHECK(model->config().attention.projected.at(0) == 8);
        CHECK(model->config().attention.projected_share == share);
        CHECK(vectors(model, {50, 3}) == vectors(made.view(), {50, 3}));
    }
}

TEST_CASE("a team shares what its texts reach of a projection's gradient, and each element is one member's") {
    on_every_set([&] {
        Projected texts({40, 128, 7});
        auto reached = [](const std::vector<float>& all) {
            return std::ssize(all) - std::count(all.begin(), all.end(), 0.0f);
        };
        const std::vector<float> whole = texts.gradient({0, 1});
        std::vector<float> sum(whole.size());
        for (int member = 0; member < 2; member++) {
            const std::vector<float> part = texts.gradient({member, 2});
            CHECK(reached(part) > reached(whole) / 4);
            for (std::size_t i = 0; i < sum.size(); i++)
                if (part[i] != 0) sum[i] = sum[i] == 0 ? part[i] : NAN;
        }
        CHECK(sum == whole);
    });
}

TEST_CASE("of a quantized projection a text unpacks the blocks that it reaches, in room for its rows") {
    CHECK(unpack_bytes<float>(DType::q8_0, 1024, 64) == 64 * 1024 * sizeof(float));
    CHECK(unpack_bytes<float>(DType::q8_0, 1024, 300) == unpack_bytes<float>(DType::q8_0, 1024));
    on_every_set([&] {
        Projected text({33});
        Call<float> call = text.call(true, {0, 1});
        constexpr float unused = 1000;
        std::fill_n(text.unpacked, Projected::rows * Projected::columns, unused);
        project_op.forward(call);
        for (std::int64_t row = 0; row < Projected::rows; row++) {
            const float* begin = text.unpacked + row * Projected::columns;
            CHECK(std::count(begin, begin + Projected::columns, unused) ==
                  Projected::columns - (row < 33 ? 64 : 0));
        }
    });
}
