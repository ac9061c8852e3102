// How models are spelled in GGUF: what is written stays the same bytes, what is read is checked.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "model/architectures.h"
#include "model/model.h"
#include "model/trace.h"
#include "model/weights.h"
#include "support.h"

using namespace linnet;
using linnet::test::Scratch;

namespace {

ModelConfig config_of(const std::string& kind, TokenId vocabulary) {
    ModelConfig c;
    c.context = 24, c.width = 32, c.layers = 2, c.heads = 4, c.vocabulary = vocabulary;
    if (kind == "llama") {
        c.kv_heads = 2, c.norm.kind = "rms", c.position.kind = "rope", c.attention.bias = c.ffn.bias = false;
        c.ffn.gated = true, c.ffn.activation = "silu", c.ffn.width = 64, c.tie_embeddings = false;
    }
    if (kind == "linnet") {
        c.norm.placement = "sandwich", c.position.kind = "sinusoidal", c.attention.window = 5,
        c.ffn.activation = "relu";
    }
    resolve(c, kind);
    return c;
}

/// Writes a model of `config` whose weights are small fractions, the same on every machine; returns the
/// sha256.
std::string save(const std::string& path, const ModelConfig& config, const Tokenizer& tokenizer) {
    TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values;
    std::vector<Tensor> parameters;
    for (const Parameter& p : traced.graph.parameters()) {
        values.emplace_back(static_cast<std::size_t>(p.shape.count()));
        for (std::size_t i = 0; i < values.back().size(); i++)
            values.back()[i] = static_cast<float>((i * 37 + values.size() * 11) % 101) / 64 - 0.75f;
        parameters.push_back({values.back().data(), DType::f32, p.shape});
    }
    return save_model(path, config, traced.graph, parameters, tokenizer, DType::f32, "test",
                      {{"note", "fixed"}});
}

template <class Act>
std::string refusal(const Act& act) {
    try {
        act();
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        return error.what();
    }
    return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("model files are written byte for byte as they always were") {
    Scratch scratch;
    auto tokenizer = train_tokenizer("byte", "text", 256, 1);
    struct {
        const char* kind;
        const char* sha256;
    } files[] = {
        {"gpt2", "ef493a80346c8fdcdb5e24f015dc60b6e9023115095e0926dcdf23f2ed018ee4"},
        {"llama", "677621b70b31e6df9964d1fff121db505536e127263e8a0d1c0abf673fdaed25"},
        {"linnet", "64d8a9d9feaeb2b5ee3e03e546559f4280f000558153c4e6f78956eff71c68d0"},
    };
    for (const auto& file : files) {
        CAPTURE(file.kind);
        CHECK(save(scratch / "m.gguf", config_of(file.kind, tokenizer->size()), *tokenizer) == file.sha256);
        CHECK(*Model::open(scratch / "m.gguf")->file()->string("general.architecture") == file.kind);
    }
}

TEST_CASE("a model whose matrices have a type without kernels is refused by the type's name") {
    Scratch scratch;
    ModelConfig config = config_of("llama", 8);
    config.layers = 1, config.width = 256, config.head_width = 64, config.ffn.width = 256;
    TracedModel traced = trace(config, false);
    const Architecture& llama = architecture_of(config);
    std::string name = "blk.0.ffn_up.weight";
    for (const DTypeInfo& row : dtypes()) {
        if (row.is_weight) continue;
        CAPTURE(row.name);
        GgufWriter out;
        for (const Parameter& p : traced.graph.parameters()) {
            const DTypeInfo& type = p.name == name ? row : info(DType::f32);
            std::vector<char> zeros(static_cast<std::size_t>(p.shape.count() / type.block * type.bytes));
            out.add_tensor(p.name, type.type, p.shape,
                           [zeros](const GgufWriter::Sink& sink) { sink(zeros.data(), zeros.size()); });
        }
        out.write(scratch / "m.gguf");
        Gguf file(scratch / "m.gguf");
        std::vector<std::vector<float>> converted;
        std::string line = refusal([&] { bind_parameters(traced.graph, file, llama, converted); });
        CHECK(contains(line, name + ": expected a type that this program computes with (f32, f16, bf16"));
        CHECK(line.ends_with(", got " + std::string(row.name)));
    }
}
