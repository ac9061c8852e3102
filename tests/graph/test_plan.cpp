#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "graph/executor.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "random_values.h"

using namespace linnet;

namespace {

ModelConfig small(const char* kind) {
    ModelConfig c;
    c.context = 12, c.width = 16, c.layers = 2, c.heads = 4, c.vocabulary = 13;
    std::string k = kind;
    if (k == "llama") test::make_llama(c, 24);
    if (k == "post") c.norm.placement = "post", c.position.kind = "sinusoidal", c.ffn.activation = "relu";
    if (k == "sandwich") c.norm.placement = "sandwich", c.position.kind = "none", c.attention.window = 3;
    if (k == "dropout") c.dropout = c.attention.dropout = 0.25;
    c.init_std = 0.3;
    resolve(c, "test");
    return c;
}
const char* const kinds[] = {"gpt2", "llama", "post", "sandwich", "dropout"};

Batch batch_of(std::int64_t sequences, std::int64_t length) {
    Batch b;
    for (std::int64_t s = 0; s < sequences; s++) {
        std::vector<std::int32_t> ids;
        for (std::int64_t t = 0; t <= length; t++)
            ids.push_back(static_cast<std::int32_t>((s * 5 + t * t * 3 + t) % 13));
        b.add(ids.data(), length, 0, s);
        b.targets.insert(b.targets.end(), ids.begin() + 1, ids.end());
    }
    b.loss_scale = 1.0 / static_cast<double>(b.rows.count);
    b.training = true;
    b.seed = 3;
    return b;
}

Lowering training(std::int64_t rows) {
    Lowering lowering;
    lowering.phase = Phase::train;
    lowering.capacity = {rows};
    lowering.positions = 12;
    return lowering;
}

/// A model with random parameters and room for their gradients, run as a training plan.
template <class Real>
struct Rig {
    TracedModel model;
    std::vector<std::vector<Real>> values, gradients;
    std::optional<Executor<Real>> executor;

    Rig(const ModelConfig& config, std::int64_t rows, int threads,
        const std::function<void(Lowering&)>& change = {})
        : model(trace(config, true)), values(test::random_values<Real>(model.graph, 11, 0.3)) {
        Binding<Real> binding;
        for (const std::vector<Real>& its : values) gradients.emplace_back(its.size(), Real(0));
        for (std::size_t i = 0; i < values.size(); i++) {
            binding.parameters.push_back(
                {values[i].data(), kernel_type<Real>, model.graph.parameters()[i].shape});
            binding.gradients.push_back(gradients[i].data());
        }
        Lowering lowering = training(rows);
        lowering.arithmetic = kernel_type<Real>;
        if (change) change(lowering);
        executor.emplace(model.graph, make_plan(model.graph, model.graph.program("loss"), lowering), binding,
                         threads);
    }

    double loss(const Batch& batch) {
        executor->run(batch);
        double sum = 0;
        for (std::int64_t r = 0; r < batch.rows.count; r++) sum += executor->value(model.loss)[r];
        return sum * batch.loss_scale;
    }
};

}  // namespace

TEST_CASE("a whole model's gradients agree with central differences, whatever its blocks are") {
    for (const char* kind : kinds) {
        ModelConfig config = small(kind);
        Batch batch = batch_of(2, 7);
        Rig<double> rig(config, batch.rows.count, 1);
        rig.loss(batch);
        auto gradients = rig.gradients;
        for (std::size_t p = 0; p < rig.values.size(); p++) {
            double difference = 0, square = 0;
            for (std::size_t i = 0; i < rig.values[p].size(); i += 7) {
                double keep = rig.values[p][i], h = 1e-5;
                rig.values[p][i] = keep + h;
                double up = rig.loss(batch);
                rig.values[p][i] = keep - h;
                double down = rig.loss(batch);
                rig.values[p][i] = keep;
                double numeric = (up - down) / (2 * h);
                difference += std::pow(numeric - gradients[p][i], 2), square += numeric * numeric;
            }
            INFO(kind << " " << rig.model.graph.parameters()[p].name);
            // A key's bias moves every score of a row alike, so its gradient is zero: an absolute bound holds
            // there.
            CHECK(std::sqrt(difference) < 1e-6 * std::sqrt(square) + 1e-9);
        }
    }
}

TEST_CASE("fused residual adds change nothing but the order of one addition") {
    for (const char* kind : kinds) {
        Batch batch = batch_of(3, 9);
        Rig<double> fused(small(kind), batch.rows.count, 1),
            plain(small(kind), batch.rows.count, 1, [](Lowering&l) { l.fuse = false; });
        CHECK(fused.executor->plan().steps.size() <= plain.executor->plan().steps.size());
        CHECK(fused.loss(batch) == doctest::Approx(plain.loss(batch)).epsilon(1e-13));
        for (std::size_t p = 0; p < fused.gradients.size(); p++)
            for (std::size_t i = 0; i < fused.gradients[p].size(); i++)
                CHECK(fused.gradients[p][i] == doctest::Approx(plain.gradients[p][i]).epsilon(1e-10));
    }
}

TEST_CASE("any number of threads gives the same bits") {
    for (const char* kind : kinds) {
        Batch batch = batch_of(5, 12);
        Rig<float> one(small(kind), batch.rows.count, 1);
        double loss = one.loss(batch);
        for (int threads : {2, 3, 5}) {
            Rig<float> many(small(kind), batch.rows.count, threads);
            CHECK(many.loss(batch) == loss);
            for (std::size_t p = 0; p < one.gradients.size(); p++) {
                INFO(kind << " " << threads << " threads, " << one.model.graph.parameters()[p].name);
                CHECK(std::memcmp(one.gradients[p].data(), many.gradients[p].data(),
                                  one.gradients[p].size() * sizeof(float)) == 0);
            }
        }
    }
}

TEST_CASE("blocks that are computed again drop the same weights, and outside of training none falls") {
    Batch batch = batch_of(3, 12);
    Rig<float> kept(small("dropout"), batch.rows.count, 2),
        again(small("dropout"), batch.rows.count, 2, [](Lowering&l) { l.recompute = true; }),
        without(small("gpt2"), batch.rows.count, 2);
    const double loss = kept.loss(batch);
    CHECK(again.loss(batch) == loss);
    CHECK(again.gradients == kept.gradients);
    batch.step++;
    CHECK(kept.loss(batch) != loss);  // every step has draws of its own
    batch.training = false;
    CHECK(kept.loss(batch) == without.loss(batch));
}

TEST_CASE("buffers alive at the same time never overlap") {
    for (const char* kind : kinds) {
        TracedModel model = trace(small(kind), true);
        for (Phase phase : {Phase::read, Phase::train}) {
            Lowering lowering = training(24);
            lowering.phase = phase;
            Plan plan = make_plan(model.graph, model.graph.program("loss"), lowering);
            for (std::size_t a = 0; a < plan.values.size(); a++)
                for (std::size_t b = 0; b < a; b++) {
                    const Value &x = plan.values[a], &y = plan.values[b];
                    bool together = x.first <= y.last && y.first <= x.last;
                    bool overlap = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
                    CHECK_FALSE((together && overlap));
                }
        }
    }
}

TEST_CASE("a gated product is made where its gate lies, but where backward reads that") {
    TracedModel model = trace(small("llama"), true);
    for (Phase phase : {Phase::read, Phase::train}) {
        Lowering lowering = training(24);
        lowering.phase = phase;
        const Plan plan = make_plan(model.graph, model.graph.program("loss"), lowering);
        int products = 0;
        for (const PlanStep& step : plan.steps)
            if (step.runs_forward() && model.graph.node(step.node).op == &gated_op) {
                CHECK((step.out == step.in[0]) == (phase == Phase::read));
                products++;
            }
        CHECK(products > 0);
    }
}

TEST_CASE("every step reads what its inputs have made, wherever that lies by then") {
    const std::function<void(Lowering&)> ways[] = {
        [](Lowering& l) { l.phase = Phase::read; }, [](Lowering&) {}, [](Lowering& l) { l.recompute = true; },
        [](Lowering& l) { l.activation = DType::bf16, l.products = ProductKernel::bf16; }};
    for (const char* kind : kinds)
        for (const auto& change : ways) {
            TracedModel model = trace(small(kind), true);
            const Graph& graph = model.graph;
            Lowering lowering = training(24);
            change(lowering);
            const Plan plan = make_plan(graph, graph.program("loss"), lowering);
            std::map<ValueId, NodeId> holds;
            for (const PlanStep& s : plan.steps) {
                CAPTURE(kind);
                CAPTURE(graph.node(s.result).path);
                const std::vector<NodeId> inputs = inputs_of(graph, s);
                for (std::size_t i = 0; i < s.in.size(); i++)
                    if (s.in[i] != none) CHECK(holds.at(s.in[i]) == inputs.at(i));
                if (s.add != none) {
                    const auto& added = graph.node(s.result).inputs;
                    CHECK(holds.at(s.add) == (added[0] == s.node ? added[1] : added[0]));
                }
                if (s.kind == StepKind::backward && s.out != none && !graph.node(s.node).op->loss)
                    CHECK(holds.at(s.out) == s.result);
                else if (s.out != none)
                    holds[s.out] = s.result;
            }
            for (NodeId root : plan.roots) CHECK(holds.at(plan.value[root]) == root);
        }
}

TEST_CASE("inference reuses buffers, and needs no barrier between q, k and v") {
    TracedModel model = trace(small("llama"), false);
    Lowering lowering;
    lowering.capacity = {64, 1};
    lowering.states = true;
    Plan plan = make_plan(model.graph, model.graph.program("logits"), lowering);
    std::size_t all = 0;
    for (const Value& v : plan.values) all += v.bytes;
    CHECK(plan.arena_bytes < all / 2);
    std::string text = describe(model.graph, plan);
    auto line_of = [&](const std::string& path) {
        std::size_t at = text.find(" " + path + " ");
        return text.substr(text.rfind('\n', at) + 1, 8);
    };
    CHECK(line_of("blk.0.attn.q").find('|') != std::string::npos);
    CHECK(line_of("blk.0.attn.k").find('|') == std::string::npos);
    CHECK(line_of("blk.0.attn.v").find('|') == std::string::npos);
}
