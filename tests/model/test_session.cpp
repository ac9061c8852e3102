// A model written, opened and run: the same numbers however the tokens are handed in, and errors that name
// their place.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "graph/executor.h"
#include "model/session.h"
#include "model/trace.h"
#include "model/weights.h"
#include "support.h"

using namespace linnet;
using linnet::test::Scratch;

namespace {

ModelConfig config_of(const std::string& kind, TokenId vocabulary) {
    ModelConfig c;
    c.context = 40, c.width = 32, c.layers = 2, c.heads = 4, c.vocabulary = vocabulary;
    if (kind == "llama") {
        c.kv_heads = 2, c.norm.kind = "rms", c.position.kind = "rope", c.attention.bias = c.ffn.bias = false;
        c.ffn.gated = true, c.ffn.activation = "silu", c.ffn.width = 48, c.tie_embeddings = false;
    }
    if (kind == "linnet") {
        c.norm.placement = "sandwich", c.position.kind = "sinusoidal", c.attention.window = 5,
        c.ffn.activation = "relu";
    }
    resolve(c, kind);
    return c;
}

/// A model with random weights: its file's parts.
struct Made {
    TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config;
    TracedModel traced;
    std::vector<std::vector<float>> values;
    std::vector<Tensor> parameters;

    explicit Made(const std::string& kind)
        : config(config_of(kind, tokenizer->size())), traced(trace(config, false)) {
        for (const Parameter& p : traced.graph.parameters()) {
            Rng rng(5, values.size());
            values.emplace_back();
            for (std::int64_t i = 0; i < p.shape.count(); i++)
                values.back().push_back(
                    static_cast<float>(p.init_mean + 0.2 * rng.normal(static_cast<std::uint64_t>(i))));
        }
        for (std::size_t i = 0; i < values.size(); i++)
            parameters.push_back({values[i].data(), DType::f32, traced.graph.parameters()[i].shape});
    }
    void save(const std::string& path, DType type) const {
        save_model(path, config, traced.graph, parameters, *tokenizer, type, "test",
                   {{"note", "made by a test"}});
    }
};

std::vector<float> logits(Session& session, const std::vector<TokenId>& ids) {
    auto l = session.append(ids);
    return {l.begin(), l.end()};
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); i++) most = std::max<double>(most, std::abs(a[i] - b[i]));
    return most;
}

const std::vector<TokenId> prompt{84, 104, 101, 32, 99, 97, 116, 32, 115, 97, 116, 46, 10, 65, 66, 67, 68};

std::string refusal(const std::string& path) {
    try {
        Model::open(path);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        return error.what();
    }
    return "opened";
}

}  // namespace

TEST_CASE("a prompt in one piece, in batches, or token by token leads to the same logits") {
    for (const char* kind : {"gpt2", "llama", "linnet"}) {
        Made made(kind);
        auto model = Model::view(made.config, made.tokenizer, made.parameters);
        Session whole(model, {0, 1, 512}), pieces(model, {0, 2, 5}), single(model, {0, 1, 1});
        std::vector<float> expected = logits(whole, prompt), last;
        CHECK(distance(logits(pieces, prompt), expected) < 2e-4);
        for (TokenId id : prompt) last = logits(single, {id});
        CHECK(distance(last, expected) < 2e-4);
        // Going back and on again must give the very bits of going on.
        std::vector<float> next = logits(whole, {42});
        whole.rewind(whole.position() - 1);
        CHECK(logits(whole, {42}) == next);
    }
}

TEST_CASE("summed losses are those of the logits") {
    Made made("llama");
    auto model = Model::view(made.config, made.tokenizer, made.parameters);
    Session a(model, {0, 1, 6}), b(model, {0, 1, 1});
    double expected = 0;
    for (std::size_t i = 0; i + 1 < prompt.size(); i++) {
        std::vector<float> l = logits(b, {prompt[i]});
        double sum = 0;
        for (float x : l) sum += std::exp(static_cast<double>(x));
        expected += std::log(sum) - static_cast<double>(l[static_cast<std::size_t>(prompt[i + 1])]);
    }
    CHECK(a.append_nll(prompt) == doctest::Approx(expected).epsilon(1e-5));
}

TEST_CASE("a sequence decoded beside others gives the bits it gives alone") {
    Made made("gpt2");
    const Graph& graph = made.traced.graph;
    std::int64_t context = made.config.context, slots = 3;
    auto decode = [&](std::vector<std::int64_t> which) {
        std::vector<std::vector<float>> memory;
        Binding<float> binding;
        binding.parameters = made.parameters;
        binding.caches.resize(graph.nodes().size());
        for (std::size_t i = 0; i < graph.nodes().size(); i++) {
            if (!graph.nodes()[i].op->cached) continue;
            for (int kv = 0; kv < 2; kv++)
                memory.emplace_back(static_cast<std::size_t>(slots * made.config.kv_heads * context *
                                                             made.config.head_width));
            binding.caches[i] = {memory[memory.size() - 2].data(), memory.back().data(), context};
        }
        Executor<float> executor(graph, make_plan(graph, made.traced.logits, {slots, slots}), binding, 2);
        std::vector<float> first;
        for (std::int64_t t = 0; t < 12; t++) {
            Batch batch;
            for (std::int64_t s : which) {
                auto id = static_cast<std::int32_t>((s * 31 + t * 7) % 256);
                batch.outputs.push_back(static_cast<std::int32_t>(batch.rows()));
                batch.add(&id, 1, t, s);
            }
            executor.run(batch);
            const float* l = executor.value(made.traced.logits);
            first.assign(l, l + made.config.vocabulary);
        }
        return first;
    };
    CHECK(decode({1}) == decode({1, 0, 2}));
}

TEST_CASE("a model written and opened again is the same model, under the name other runtimes know") {
    for (const char* kind : {"gpt2", "llama", "linnet"}) {
        Made made(kind);
        Scratch scratch;
        made.save(scratch / "m.gguf", DType::f32);
        auto model = Model::open(scratch / "m.gguf");
        CHECK(*model->file()->string("general.architecture") == kind);
        CHECK(*model->file()->string("linnet.note") == "made by a test");
        Session a(model, {0, 1, 32}),
            b(Model::view(made.config, made.tokenizer, made.parameters), {0, 1, 32});
        CHECK(logits(a, prompt) == logits(b, prompt));
        for (DType type : {DType::f16, DType::bf16}) {
            made.save(scratch / "h.gguf", type);
            Session half(Model::open(scratch / "h.gguf"), {0, 1, 32});
            b.rewind(0);
            double off = distance(logits(half, prompt), logits(b, prompt));
            CHECK(off > 0);
            CHECK(off < (type == DType::f16 ? 0.05 : 0.4));
        }
    }
}

TEST_CASE("files that contradict themselves are refused, and the line names the place") {
    Made made("llama");
    Scratch scratch;
    std::string path = scratch / "m.gguf";
    auto write = [&](const ModelConfig& config, const TracedModel& traced,
                     const std::vector<Tensor>& parameters) {
        save_model(path, config, traced.graph, parameters, *made.tokenizer, DType::f32, "test", {});
    };
    ModelConfig other = made.config;
    other.ffn.width = 64;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("ffn_gate.weight: expected shape [64, 32], got [48, 32]") != std::string::npos);
    other = made.config;
    other.layers = 3;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("blk.2.attn_norm.weight: expected a tensor, got none") != std::string::npos);
    other.layers = 1;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("blk.1.") != std::string::npos);
    other = made.config;
    other.kv_heads = 3;
    GgufWriter wrong;
    wrong.add("general.architecture", "llama");
    wrong.add("llama.expert_count", std::uint32_t{8});
    wrong.write(path);
    CHECK(refusal(path).find("llama.expert_count") != std::string::npos);
    GgufWriter unknown;
    unknown.add("general.architecture", "mystery");
    unknown.write(path);
    CHECK(refusal(path).find("expected one of gpt2, llama, linnet, got mystery") != std::string::npos);
}
