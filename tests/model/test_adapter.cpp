// Adapters in graphs and files: gradients, products that share A, merging, what is refused.
#include "model/adapter.h"

#include <doctest/doctest.h>

#include <cmath>

#include "commands/tiny.h"
#include "graph/small_graphs.h"
#include "model/adapter_support.h"
#include "model/engine/engine.h"
#include "model/small_models.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

ModelConfig small(const nlohmann::json& settings) {
    return config_with(11, {small_model, settings});
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
    Engine engine(model, {.threads = 1, .state = DType::f32});
    Sequence sequence = engine.start();
    std::vector<TokenId> ids = model->tokenizer().encode("one two three fou");
    const auto logits = sequence.append(ids, Phase::read);
    return {logits.begin(), logits.end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); i++)
        most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]));
    return most;
}

}  // namespace

TEST_CASE(
    "gradients of adapters are central differences': tensors that share A, several adapters, experts, tied "
    "layers") {
    const nlohmann::json mixture = {{"model.experts.count", 3},     {"model.experts.used", 2},
                                    {"model.experts.width", 6},     {"model.ffn.gated", true},
                                    {"model.ffn.bias", false},      {"model.norm.kind", "rms"},
                                    {"model.attention.bias", false}};
    const std::string b = "blk.0.";
    std::vector<AdapterShape> fused(2);
    fused[0].targets.push_back(
        {b + "attn_qkv.weight", {b + "attn_q.weight", b + "attn_k.weight", b + "attn_v.weight"}, 3, 0.7});
    fused[0].targets.push_back({b + "ffn_down.weight", {b + "ffn_down.weight"}, 2, 1});
    fused[1].targets.push_back({b + "attn_k.weight", {b + "attn_k.weight"}, 2, -0.4});
    std::vector<AdapterShape> experts(1);
    for (const char* name : {"ffn_gate_exps.weight", "ffn_down_exps.weight"})
        experts[0].targets.push_back({b + name, {b + name}, 2, 0.5});
    struct Case {
        const char* name;
        nlohmann::json settings;
        const std::vector<AdapterShape>& adapters;
        std::size_t more;  // parameters that the adapters add
    };
    const Case cases[] = {
        {"fused", {{"model.attention.bias", false}}, fused, 4 + 2 + 2},
        {"experts", mixture, experts, 4},
        {"tied", {{"model.tie_layers", 1}, {"model.attention.bias", false}}, fused, 4 + 2 + 2}};
    for (const Case& c : cases) {
        CAPTURE(c.name);
        const ModelConfig config = small(c.settings);
        const TracedModel with = trace(config, true, c.adapters);
        CHECK(with.graph.parameters().size() == trace(config, true).graph.parameters().size() + c.more);
        check_gradients(with.graph, two_sequences_lowering(), two_sequences());
    }
}

TEST_CASE(
    "an adapter with B at zero changes nothing; frozen weights have no gradient, and get no backward below "
    "the lowest adapter") {
    const ModelConfig config = small(nlohmann::json::object());
    std::vector<AdapterShape> adapters(1);
    adapters[0].targets.push_back({"blk.1.ffn_up.weight", {"blk.1.ffn_up.weight"}, 2, 2});
    const TracedModel model = trace(config, true, adapters);
    Lowering l = two_sequences_lowering();
    int trained = 0;
    for (const Parameter& p : model.graph.parameters()) {
        l.trained.push_back(p.adapter != none);
        l.stored.push_back(DType::f32);
        if (p.adapter != none) trained++;
        if (p.name.ends_with(".lora_b")) CHECK(p.init_std == 0);
        if (p.name.ends_with(".lora_a")) CHECK(p.init_std == doctest::Approx(1 / std::sqrt(3.0 * 8)));
    }
    CHECK(trained == 2);
    const Plan plan = make_plan(model.graph, model.graph.program("loss"), l);
    int backward = 0;
    for (const PlanStep& step : plan.steps) {
        const std::string& path = model.graph.node(step.node).path;
        if (step.kind != StepKind::backward) continue;
        backward++;
        CHECK_MESSAGE((path.starts_with("blk.1.ffn") || path == "norm" || path == "loss"), path);
    }
    CHECK(backward > 2);
}

TEST_CASE(
    "an adapter's file comes back as it was; merged, it gives the logits that it gives beside the weights") {
    Scratch scratch;
    std::shared_ptr<const Model> base = Model::open(tiny_model());
    const Adapter one = random_adapter(*base, 3, 0.5, 1), other = random_adapter(*base, 2, -1, 2);
    save_adapter(scratch / "one.gguf", base->architecture().name, one.shape.targets, one.pairs, 1.5, "one",
                 {});
    save_adapter(scratch / "other.gguf", base->architecture().name, other.shape.targets, other.pairs, 0,
                 "other", {});
    const Adapter back = open_adapter({scratch / "one.gguf", 1}, *base);
    REQUIRE(back.shape.targets.size() == one.shape.targets.size());
    for (std::size_t i = 0; i < one.pairs.size(); i++) {
        CHECK(back.shape.targets[i].scale == doctest::Approx(0.5));  // alpha / rank
        for (const auto& [written, read] :
             {std::pair(&one.pairs[i].a, &back.pairs[i].a), {&one.pairs[i].b, &back.pairs[i].b}}) {
            REQUIRE(read->shape == written->shape);
            CHECK(std::equal(written->as<float>(), written->as<float>() + written->shape.count(),
                             read->as<float>()));
        }
    }
    CHECK(open_adapter({scratch / "other.gguf", -2}, *base).shape.targets[0].scale == -2);  // no alpha

    const std::vector<AdapterChoice> choices = {{scratch / "one.gguf", 1}, {scratch / "other.gguf", -1}};
    const std::shared_ptr<const Model> beside = open_with_adapters(tiny_model(), choices);
    std::vector<Adapter> adapters;
    for (const AdapterChoice& choice : choices) adapters.push_back(open_adapter(choice, *base));
    merge_adapters(*base, adapters, std::nullopt, scratch / "merged.gguf");
    const std::vector<float> plain = logits_of(base), both = logits_of(beside);
    CHECK(largest_difference(plain, both) > 0.1);
    CHECK(largest_difference(both, logits_of(Model::open(scratch / "merged.gguf"))) < 1e-4);
    CHECK(largest_difference(plain,
                             logits_of(open_with_adapters(tiny_model(), {{scratch / "one.gguf", 0}}))) == 0);
}

TEST_CASE("an alpha is one that f32 can be, 0 among them") {
    for (const double alpha : {0.0, 16.0, -8.0, 3.4028234e38, 1e-44}) CHECK(is_alpha(alpha));
    for (const double alpha : {1e300, -1e39, 1e-300, double{INFINITY}, double{NAN}}) CHECK(!is_alpha(alpha));
}

TEST_CASE("adapters of other models are refused, with tensor and shapes") {
    Scratch scratch;
    std::shared_ptr<const Model> base = Model::open(tiny_model());
    const Adapter good = random_adapter(*base, 3, 0.5, 1);
    const std::string architecture = base->architecture().name;
    auto saved = [&](const std::string& of, const Adapter& adapter) {
        save_adapter(scratch / "a.gguf", of, adapter.shape.targets, adapter.pairs, 1, "x", {});
        return refusal([&] { open_adapter({scratch / "a.gguf", 1}, *base); });
    };
    CHECK(saved(architecture, good) == "accepted");
    CHECK(has(saved("llama", good), "general.architecture: expected gpt2"));
    Adapter wide = good;
    wide.pairs[0].a.shape = Shape(3, 15);
    CHECK(has(saved(architecture, wide), "blk.0.attn_qkv.weight.lora_a: expected shape [3, 16]"));
    CHECK(has(saved(architecture, wide), "got [3, 15]"));
    Adapter rank = good;
    rank.pairs[0].b.shape = Shape(48, 2);
    CHECK(has(saved(architecture, rank), "blk.0.attn_qkv.weight.lora_b: expected shape [48, 3]"));
    Adapter deep = good;
    deep.shape.targets[0].tensor = "blk.7.attn_qkv.weight";
    CHECK(has(saved(architecture, deep),
              "blk.7.attn_qkv.weight.lora_a: expected lora_a or lora_b of a linear layer"));
    CHECK(has(refusal([&] { open_adapter({tiny_model(), 1}, *base); }), "general.type: expected adapter"));
    CHECK(has(refusal([&] { choose_targets(*base, "attn_qkv,ffn_gate", INT64_MAX, "x"); }), "ffn_gate"));
    CHECK(choose_targets(*base, "ffn_*", INT64_MAX, "x").size() == 2);
    CHECK(has(refusal([&] { Model::open(scratch / "a.gguf"); }), "--lora"));
}
