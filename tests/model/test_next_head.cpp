// Whether the second of two texts follows the first: a head and a loss beside those of masked tokens.
#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "formats/gguf.h"
#include "graph/small_graphs.h"
#include "model/architectures.h"
#include "model/encode/encoder.h"
#include "model/model.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "support.h"
#include "text/train/make.h"

using namespace linnet;

namespace {

ModelConfig config_of(const nlohmann::json& more, std::int64_t vocabulary = 7) {
    return test::config_with(vocabulary, {{{"model.kind", "encoder"},
                                           {"model.context", 8},
                                           {"model.width", 8},
                                           {"model.layers", 1},
                                           {"model.heads", 2},
                                           {"model.ffn.width", 6},
                                           {"model.segments", 2},
                                           {"model.norm.placement", "post"},
                                           {"model.embedding.norm", true},
                                           {"model.embedding.norm_last", true},
                                           {"model.head.next", true}},
                                          more});
}

/// Three sequences, of which the last has no known answer and no masks.
Batch batch_of() {
    Batch batch;
    const std::int32_t ids[] = {3, 1, 4, 1, 5, 2, 6, 0, 2, 2};
    batch.add(ids, 5, 0, 0), batch.add(ids + 5, 3, 0, 1), batch.add(ids + 8, 2, 0, 2);
    batch.stream("segments") = {0, 0, 0, 1, 1, 0, 1, 1, 0, 1};
    batch.outputs = {1, 4, 6}, batch.targets = {2, 0, 6};
    batch.stream("next") = {next_elsewhere, next_follows, -1};
    return batch;
}

Lowering lowering_of() {
    Lowering lowering;
    lowering.phase = Phase::train, lowering.capacity = {10, 10, 10}, lowering.positions = 8;
    return lowering;
}

}  // namespace

TEST_CASE("gradients of masked tokens and of what follows, together, agree with central differences") {
    // Rotary positions: else biases of keys, which change nothing, would have no gradient.
    for (const nlohmann::json& more :
         {nlohmann::json{{"model.position.kind", "rope"}}, nlohmann::json{{"model.position.kind", "rope"},
                                                                          {"model.head.transform", true},
                                                                          {"model.tie_embeddings", false}}})
        test::check_gradients(trace(config_of(more), true).graph, lowering_of(), batch_of());
}

TEST_CASE("the loss of what follows is that of sequences, by a scale of its own, and leaves that of tokens") {
    const TracedModel model = trace(config_of({}), true),
                      plain = trace(config_of({{"model.head.next", false}}), true);
    auto run = [&](const TracedModel& m, double loss_scale, double sequence_scale) {
        auto made = std::make_unique<test::GraphRun<double>>(m.graph);
        made->lower("loss", lowering_of());
        Batch batch = batch_of();
        batch.loss_scale = loss_scale, batch.sequence_scale = sequence_scale;
        made->executor->run(batch);
        return made;
    };
    auto gradient = [&](const test::GraphRun<double>& of, const TracedModel& m, const std::string& name) {
        for (std::size_t p = 0; p < m.graph.parameters().size(); p++)
            if (m.graph.parameters()[p].name == name) return of.gradients[p];
        return of.gradients.at(m.graph.parameters().size());
    };
    const auto both = run(model, 1, 1), tokens = run(model, 1, 0), next = run(model, 0, 1),
               half = run(model, 0, 0.5);
    for (const char* name :
         {"token_embd.weight", "token_types.weight", "blk.0.ffn_up.weight", "cls.weight"}) {
        CAPTURE(name);
        const auto all = gradient(*both, model, name), a = gradient(*tokens, model, name),
                   b = gradient(*next, model, name), c = gradient(*half, model, name);
        for (std::size_t i = 0; i < all.size(); i++) {
            CHECK(all[i] == doctest::Approx(a[i] + b[i]).epsilon(1e-9));
            CHECK(c[i] == doctest::Approx(b[i] / 2).epsilon(1e-9));
        }
    }
    // Without the head, the loss of tokens and its gradients are what they are beside it.
    const auto without = run(plain, 1, 1);
    REQUIRE(without->executor->rows(plain.graph.node(plain.loss).space) == 3);
    for (const auto* of : {&both, &tokens})
        for (std::int64_t r = 0; r < 3; r++)
            CHECK((*of)->executor->value(model.loss)[r] ==
                  doctest::Approx(without->executor->value(plain.loss)[r]).epsilon(1e-12));
    REQUIRE(plain.graph.parameters().size() < model.graph.parameters().size());
    for (std::size_t p = 0; p < plain.graph.parameters().size(); p++) {
        CAPTURE(plain.graph.parameters()[p].name);
        REQUIRE(model.graph.parameters()[p].name == plain.graph.parameters()[p].name);
        for (std::size_t i = 0; i < without->gradients[p].size(); i++)
            CHECK(tokens->gradients[p][i] == doctest::Approx(without->gradients[p][i]).epsilon(1e-9));
    }
    const double* losses = both->executor->value(model.next_loss);
    CHECK(both->executor->rows(model.graph.node(model.next_loss).space) == 3);
    CHECK(losses[0] > 0);
    CHECK(losses[2] == 0);
    // An output that starts at 0 thinks both alike.
    const TracedModel zero = trace(config_of({{"model.zero_init", true}}), true);
    std::size_t outputs = 0;
    for (const Parameter& p : zero.graph.parameters())
        if (p.name.starts_with("cls.output")) {
            outputs++;
            CHECK(p.init_std == 0);
        }
    CHECK(outputs == 2);  // a matrix and a bias
}

TEST_CASE("a model that tells what follows is written as BERT with a classifier, and opened again") {
    test::Scratch s;
    const auto tokenizer = train_tokenizer("byte", "text", 256, 1);
    auto save = [&](const ModelConfig& config) {
        const TracedModel model = trace(config, true);
        std::vector<std::vector<float>> values;
        std::vector<Tensor> parameters;
        for (const Parameter& p : model.graph.parameters()) {
            std::vector<float>& v = values.emplace_back(static_cast<std::size_t>(p.shape.count()));
            for (std::size_t i = 0; i < v.size(); i++)
                v[i] = std::sin(static_cast<float>(i + 3 * values.size())) / 3;
            parameters.push_back({v.data(), DType::f32, p.shape});
        }
        save_model(s / "m.gguf", config, model.graph, parameters, *tokenizer, DType::f32, "m", {});
        return Model::open(s / "m.gguf");
    };
    const ModelConfig config = config_of({}, tokenizer->size());
    CHECK(has_standard_architecture(config));
    const auto model = save(config);
    const Gguf& file = *model->file();
    CHECK(*file.string("general.architecture") == "bert");
    CHECK(*file.strings("bert.classifier.output_labels") ==
          std::vector<std::string_view>{"follows", "elsewhere"});
    CHECK(file.tensor("cls.output.weight")->shape.dim[0] == 2);
    CHECK(model->config().head.next);
    Encoder encoder(model, 2);
    const std::vector<EncoderInput> inputs = {{{1, 2, 3, 4}, {0, 0, 1, 1}, {}, {}}, {{5, 6}, {0, 1}, {}, {}}};
    const std::span<const float> told = encoder.follows(inputs);
    REQUIRE(told.size() == 4);
    const std::vector<float> together(told.begin(), told.end());
    const std::span<const float> alone = encoder.follows(std::span(inputs).last(1));
    CHECK(std::vector<float>(alone.begin(), alone.end()) ==
          std::vector<float>(together.begin() + 2, together.end()));
    CHECK(together[0] != together[2]);
    // Without: nothing of it in the file.
    const auto plain = save(config_of({{"model.head.next", false}}, tokenizer->size()));
    CHECK(!plain->file()->find("bert.classifier.output_labels"));
    CHECK(!plain->config().head.next);
    CHECK(!plain->file()->tensor("cls.weight"));
    // Other classifiers are refused by what their key says.
    GgufWriter out;
    out.add("general.architecture", "bert");
    out.add("bert.classifier.output_labels", 3, [](std::size_t i) { return i == 1 ? "\xFF" : "a"; });
    out.write(s / "other.gguf", Existing::replace);
    const std::string line = test::refusal([&] { Model::open(s / "other.gguf"); });
    CHECK_MESSAGE(test::has(line, "bert.classifier.output_labels: expected one of "), line);
}
