// Every op's backward against central differences, in double. The table below has a row for every op; a test
// fails where an op has none.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ops/experts.h"
#include "ops/rules.h"

using namespace linnet;

namespace {

struct Case {
    const Op* op;
    std::string what;
    std::vector<std::int64_t> inputs;  // widths
    std::vector<Shape> parameters;
    Attributes attributes;
};

std::vector<Case> cases() {
    std::vector<Case> all = {
        {&embedding_op, "", {}, {Shape(11, 6)}, {}},
        {&position_embedding_op, "", {6}, {Shape(8, 6)}, {}},
        {&sinusoidal_op, "", {6}, {}, {}},
        {&position_bits_op, "", {6}, {}, {}},
        {&linear_op, "with bias", {6}, {Shape(5, 6), Shape(5)}, {}},
        {&linear_op, "without bias", {7}, {Shape(3, 7)}, {}},
        {&layer_norm_op, "", {6}, {Shape(6), Shape(6)}, {{"epsilon", 1e-5}}},
        {&rms_norm_op, "", {6}, {Shape(6)}, {{"epsilon", 1e-5}}},
        {&layer_norm_op, "without biases", {6}, {Shape(6)}, {{"epsilon", 1e-5}}},
        {&layer_norm_op, "without weights", {6}, {}, {{"epsilon", 1e-5}}},
        {&rms_norm_op, "without weights", {6}, {}, {{"epsilon", 1e-5}}},
        {&rms_norm_op, "of heads", {6}, {Shape(3)}, {{"epsilon", 1e-5}, {"groups", 2}}},
        {&rms_norm_op, "of each head", {6}, {Shape(6)}, {{"epsilon", 1e-5}, {"groups", 2}}},
        {&layer_norm_op, "of heads", {8}, {Shape(4)}, {{"epsilon", 1e-5}, {"groups", 2}}},
        {&layer_norm_op, "of each head", {8}, {Shape(8)}, {{"epsilon", 1e-5}, {"groups", 2}}},
        {&scale_op, "", {6}, {}, {{"value", -1.5}}},
        {&clamp_op, "", {6}, {}, {{"value", 0.7}}},
        {&softcap_op, "", {6}, {}, {{"value", 1.3}}},
        {&rope_op, "neighbours", {8}, {}, {{"head_width", 4}, {"theta", 10000}, {"halves", 0}}},
        {&rope_op, "halves", {8}, {}, {{"head_width", 4}, {"theta", 500}, {"halves", 1}}},
        {&rope_op,
         "part of a head, YaRN, factors",
         {12},
         {Shape(2)},
         {{"head_width", 6},
          {"theta", 500},
          {"halves", 1},
          {"rotary_width", 4},
          {"factor", 4},
          {"scale", 1.2},
          {"original", 4},
          {"extrapolation", 1},
          {"beta_fast", 32},
          {"beta_slow", 1}}},
        {&row_gate_op, "", {6, 1}, {}, {}},
        {&append_op, "", {6, 6}, {}, {{"kv_heads", 2}}},
        {&add_op, "", {6, 6}, {}, {}},
        {&mix_op, "by numbers", {6, 6}, {Shape(1), Shape(1)}, {}},
        {&mix_op, "by columns", {20, 20}, {Shape(20), Shape(20)}, {}},
        {&dropout_op, "", {6}, {}, {{"probability", 0.3}}},
        {&get_rows_op, "", {6}, {}, {}},
        {&pool_op, "mean", {6}, {}, {{"kind", 0}}},
        {&pool_op, "first", {6}, {}, {{"kind", 1}}},
        {&pool_op, "last", {6}, {}, {{"kind", 2}}},
        {&vectors_op, "", {}, {}, {{"width", 5}}},
        {&cross_entropy_op, "", {6}, {Shape(11, 6)}, {}},
        {&cross_entropy_op, "with bias and scale", {6}, {Shape(11, 6), Shape(11)}, {{"scale", 0.4}}},
        {&cross_entropy_op, "smoothed", {6}, {Shape(11, 6), Shape(11)}, {{"smoothing", 0.2}}},
        {&cross_entropy_op, "weighted", {6}, {Shape(11, 6)}, {{"weight", 50}, {"smoothing", 0.1}}},
        {&cross_entropy_op, "soft cap", {6}, {Shape(11, 6)}, {{"scale", 0.6}, {"softcap", 1.5}}},
    };
    auto attention = [&](std::string what, int heads, int kv_heads, int window, bool causal,
                         std::initializer_list<std::pair<const char*, double>> more = {}) {
        Attributes a{{"heads", static_cast<double>(heads)},
                     {"kv_heads", static_cast<double>(kv_heads)},
                     {"head_width", 4},
                     {"window", static_cast<double>(window)},
                     {"causal", causal ? 1.0 : 0.0}};
        for (const auto& [name, value] : more) a.set(name, value);
        all.push_back(
            {&attention_op, std::move(what), {heads * 4, kv_heads * 4, kv_heads * 4}, {}, std::move(a)});
    };
    attention("multi-head", 2, 2, 0, true);
    attention("grouped", 4, 2, 0, true);
    attention("multi-query", 3, 1, 0, true);
    attention("windowed", 2, 2, 2, true);
    attention("bidirectional", 2, 2, 0, false);
    attention("soft cap", 4, 2, 0, true, {{"softcap", 0.7}});
    attention("ALiBi", 6, 2, 0, true, {{"alibi", 8}});
    attention("ALiBi, both ways", 3, 3, 0, false, {{"alibi", 8}, {"softcap", 1.5}});
    attention("window and globals", 2, 2, 2, true, {{"globals", 1}});
    attention("window, both ways", 2, 1, 2, false);
    attention("window and globals, both ways", 2, 2, 2, false, {{"globals", 1}});
    attention("dropout", 4, 2, 0, true, {{"dropout", 0.3}});
    attention("dropout, window, both ways", 2, 1, 2, false, {{"dropout", 0.3}, {"softcap", 0.7}});
    auto additive = [&](int heads, int kv_heads, int window, bool causal,
                        std::initializer_list<std::pair<const char*, double>> more = {}) {
        attention("", heads, kv_heads, window, causal, more);
        all.back().op = &additive_attention_op;
        all.back().parameters = {Shape(heads * 4)};
        all.back().what = all.back().attributes.text();
    };
    additive(2, 2, 0, true), additive(4, 2, 2, true), additive(3, 1, 0, false), additive(2, 2, 2, false);
    additive(4, 2, 0, true, {{"dropout", 0.3}});
    for (double kernel : {1, 2, 4})
        all.push_back({&conv_op,
                       "rows " + std::to_string(static_cast<int>(kernel)),
                       {6},
                       {Shape(6 * static_cast<std::int64_t>(kernel)), Shape(6)},
                       {{"kernel", kernel}}});
    all.push_back({&conv_op, "without biases, many channels", {70}, {Shape(210)}, {{"kernel", 3}}});
    all.push_back({&shift_op, "", {6}, {}, {}});
    all.push_back({&reverse_op, "", {6}, {}, {}});
    for (std::int64_t c : {3, 40})  // the latter in two blocks of channels
        all.push_back({&selective_scan_op, std::to_string(c), {c, c, 3, 3}, {Shape(c * 3), Shape(c)}, {}});
    for (bool before : {false, true})
        for (std::int64_t decays : {6, 2}) {
            Attributes a{{"heads", 2}};
            if (before) a.set("before", 1);
            all.push_back({&linear_scan_op, a.text(), {6, decays, 6, 8}, {}, a});
        }
    all.push_back({&delta_scan_op, "", {6, 6, 6, 8, 6, 6}, {}, {{"heads", 2}}});
    all.push_back({&linear_attention_op, "", {6, 6, 6}, {}, {{"heads", 2}}});
    all.push_back({&lstm_op, "", {5, 5, 5, 5}, {Shape(20, 5)}, {}});
    all.push_back({&multiply_op, "", {6, 6}, {}, {}});
    all.push_back({&multiply_op, "by parts", {6, 2}, {}, {}});
    all.push_back({&weigh_op, "", {6}, {Shape(6)}, {}});
    all.push_back({&weigh_op, "by parts", {6}, {Shape(3)}, {}});
    all.push_back({&group_sum_op, "", {6}, {}, {{"heads", 2}}});
    all.push_back({&repeat_op, "", {6}, {}, {{"heads", 4}, {"groups", 2}}});
    for (std::int64_t rows : {3, 2, 4})  // the last one more than the second sequence has
        all.push_back({&project_op, std::to_string(rows), {6}, {Shape(rows, 7)}, {}});
    // One picture of 4 × 2 patches, in two windows.
    for (double back : {0, 1})
        all.push_back({&windows_op,
                       "back " + std::to_string(back),
                       {6},
                       {},
                       {{"width", 4}, {"height", 2}, {"window", 2}, {"shift", 1}, {"back", back}}});
    all.push_back({&merge_op, "", {6}, {}, {{"width", 4}, {"height", 2}}});
    all.push_back({&window_bias_op, "", {}, {Shape(9, 8)}, {{"window", 2}, {"shift", 0}, {"bias_keys", 16}}});
    // Biases by places of two windows, whose tables are the third and the fourth.
    attention("in windows", 8, 2, 0, false,
              {{"sequence", 5}, {"bias_keys", 16}, {"shift", 1}, {"columns", 2}, {"lines", 1}});
    all.back().op = &biased_attention_op;
    all.back().inputs.push_back(4 * 5 * 16);
    // A row of biases for each head, so as many heads as there are rows here.
    for (bool causal : {true, false}) {
        attention("biased", 8, 2, 0, causal,
                  {{"bias_zero", 18}, {"softcap", 1}, {"dropout", causal ? 0 : 0.3}});
        all.back().op = &biased_attention_op;
        all.back().inputs.push_back(causal ? 18 + 16 : 18 + 3 + 16);
        all.push_back({&score_bias_op,
                       causal ? "causal" : "both ways",
                       {},
                       {Shape(causal ? 3 : 4, 8)},
                       {{"reach", 2}, {"causal", causal ? 1.0 : 0.0}, {"bias_zero", 18}}});
    }
    for (Activation kind :
         {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::relu2,
          Activation::tanh, Activation::sigmoid, Activation::softplus, Activation::exp, Activation::elu1}) {
        Attributes a{{"kind", static_cast<double>(kind)}};
        all.push_back({&activation_op, a.text(), {6}, {}, a});
        all.push_back({&gated_op, a.text(), {6, 6}, {}, a});
    }
    return all;
}

/// One op with its inputs, run alone. The scalar that is differentiated is sum(out · weight).
struct Bench {
    Case c;
    Batch batch;
    Rows projected;  // of project_op
    std::vector<std::vector<double>> in, parameter;
    std::vector<double> weight, constants, out, saved, scratch;
    std::vector<std::byte> workspace;
    std::int64_t width;
    int threads = 1;

    explicit Bench(const Case& what) : c(what) {
        const std::int32_t first[] = {3, 1, 4, 1, 5}, second[] = {9, 2, 6};
        batch.add(first, 5, 0, 0);
        batch.add(second, 3, 0, 1);
        batch.targets = {1, 4, -1, 5, 9, 2, 6, 5};
        batch.outputs = {4, 7};
        batch.loss_scale = 1;
        batch.seed = 7;
        batch.training = true;
        if (c.op == &project_op)
            for (std::int64_t length : {5, 3}) projected.add(std::min(length, c.parameters[0].dim[0]), 0, 0);
        Rng rng(42, 0);
        std::uint64_t draw = 0;
        auto random = [&](std::int64_t n) {
            std::vector<double> v(static_cast<std::size_t>(n));
            for (double& x : v) x = rng.normal(draw++);
            return v;
        };
        for (std::int64_t w : c.inputs) in.push_back(random(w * batch.rows.count));
        if (c.op == &linear_attention_op)  // whose first two are features, which divide
            for (std::size_t i : {0, 1})
                for (double& x : in[i]) x = std::exp(x);
        for (const Shape& s : c.parameters) parameter.push_back(random(s.count()));
        NodeShape shape{c.inputs, c.parameters, c.attributes};
        width = c.op->width(shape);
        weight = random(width * batch.rows.count);
        // A loss's gradient is that of the sum of its rows, times its weight.
        if (c.op->loss)
            weight.assign(weight.size(), c.attributes.has("weight") ? c.attributes.number("weight") : 1);
        if (c.op->constants) constants = c.op->constants(shape);
        if (c.op->position_table) constants = c.op->position_table(shape, 8, {0, 8});
        if (c.op->saved) saved.resize(static_cast<std::size_t>(c.op->saved(shape) * batch.rows.count));
        if (c.op->scratch) scratch.resize(static_cast<std::size_t>(c.op->scratch(shape, batch.rows.count)));
        if (c.op->backward_scratch)
            scratch.resize(std::max(
                scratch.size(), static_cast<std::size_t>(c.op->backward_scratch(shape, batch.rows.count))));
        out.resize(static_cast<std::size_t>(width * batch.rows.count));
        const auto& k = double_kernels();
        workspace.resize(std::max(k.gemm_workspace, k.attention_workspace) + 64);
    }

    Call<double> call() {
        Call<double> call;
        call.kernels = &double_kernels();
        call.batch = &batch;
        call.attributes = &c.attributes;
        call.node = 5;
        call.rows = c.op == &get_rows_op || c.op == &pool_op || c.op == &merge_op ? 2 : batch.rows.count;
        call.space = &batch.rows;
        if (c.op == &project_op) call.space = &projected, call.rows = projected.count;
        if (c.op->stream)
            call.ids = c.op == &get_rows_op        ? batch.outputs
                       : c.op == &cross_entropy_op ? batch.targets
                                                   : batch.tokens;
        call.width = width;
        for (std::size_t i = 0; i < in.size(); i++) {
            call.in[i] = in[i].data(), call.in_type[i] = DType::f64, call.in_width[i] = c.inputs[i];
            call.in_rows[i] = batch.rows.count, call.in_space[i] = &batch.rows;
        }
        for (std::size_t i = 0; i < parameter.size(); i++)
            call.parameter[i] = {parameter[i].data(), DType::f64, c.parameters[i]};
        call.constants = constants.data();
        call.out = out.data();
        call.saved = saved.empty() ? nullptr : saved.data();
        call.scratch = scratch.data();
        auto at = reinterpret_cast<std::uintptr_t>(workspace.data());
        call.workspace = reinterpret_cast<void*>((at + 63) / 64 * 64);
        return call;
    }

    double forward() {
        Call<double> call = this->call();
        for (call.round = 0; call.round < c.op->forward_rounds.of(call); call.round++) c.op->forward(call);
        double sum = 0;
        for (std::int64_t i = 0; i < call.rows * width; i++)
            sum += out[static_cast<std::size_t>(i)] * weight[static_cast<std::size_t>(i)];
        return sum;
    }
};

/// The relative error of the gradient as a whole: |numeric - analytic| / max(|numeric|, |analytic|), in the
/// 2-norm.
double disagreement(Bench& bench, std::vector<double>& x, const std::vector<double>& gradient) {
    double difference = 0, numeric_square = 0, analytic_square = 0;
    for (std::size_t i = 0; i < x.size(); i++) {
        double keep = x[i], h = 1e-5;
        // A five-point stencil: its error is of order h^4, below the rounding error.
        auto at = [&](double step) {
            x[i] = keep + step * h;
            return bench.forward();
        };
        double numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
        x[i] = keep;
        difference += (numeric - gradient[i]) * (numeric - gradient[i]);
        numeric_square += numeric * numeric, analytic_square += gradient[i] * gradient[i];
    }
    return std::sqrt(difference / std::max({numeric_square, analytic_square, 1e-30}));
}

}  // namespace

TEST_CASE("every op has a case here") {
    for (const Op* op : all_ops()) {
        bool found =
            op->undifferentiated != 0;  // ops that read integers: test_blocks.cpp, test_generator.cpp
        for (const Case& c : cases()) found |= c.op == op;
        CHECK_MESSAGE(found, op->name);
    }
}

TEST_CASE("every op tells what it computes for a row: products two for each weight") {
    for (const Case& c : cases()) {
        CAPTURE(c.op->name);
        const NodeShape shape{c.inputs, c.parameters, c.attributes};
        const double flops = c.op->flops(shape, 16);
        if (c.op->flops != no_flops) CHECK(flops > 0);
        if (c.op == &linear_op || c.op == &conv_op)
            CHECK(flops == 2.0 * static_cast<double>(c.parameters[0].count()));
        if (c.op == &lstm_op) CHECK(flops > 2.0 * static_cast<double>(c.parameters[0].count()));
    }
}

TEST_CASE("an op that goes row by row makes of some rows what it makes of them among all") {
    constexpr std::int64_t chosen[] = {6, 1, 3};
    for (const Case& c : cases()) {
        if (!c.op->by_row) continue;
        CAPTURE(c.op->name);
        Bench all(c), some(c);
        all.forward();
        for (std::size_t i = 0; i < c.inputs.size(); i++)
            for (std::int64_t r = 0; r < 3; r++)
                std::copy_n(all.in[i].begin() + chosen[r] * c.inputs[i], c.inputs[i],
                            some.in[i].begin() + r * c.inputs[i]);
        Call<double> call = some.call();
        call.rows = 3, call.space = nullptr;
        c.op->forward(call);
        for (std::int64_t r = 0; r < 3; r++)
            CHECK(std::equal(some.out.begin() + r * some.width, some.out.begin() + (r + 1) * some.width,
                             all.out.begin() + chosen[r] * all.width));
    }
}

TEST_CASE("an op that may make its output over an input makes the same there") {
    for (const Case& c : cases())
        for (std::size_t i = 0; i < c.inputs.size(); i++) {
            Bench apart(c), over(c);
            if (!(c.op->in_place >> i & 1u) || c.inputs[i] != apart.width) continue;
            CAPTURE(c.op->name);
            apart.forward();
            Call<double> call = over.call();
            call.out = over.in[i].data();
            for (int part = 0; part < 3; part++) {
                call.worker.index = part, call.worker.count = 3;
                c.op->forward(call);
            }
            CHECK(over.in[i] == apart.out);
        }
}

TEST_CASE("every op's backward agrees with central differences") {
    for (const Case& c : cases()) {
        if (!c.op->backward) continue;
        Bench bench(c);
        std::string name = std::string(c.op->name) + " " + c.what;
        bench.forward();
        Call<double> call = bench.call();
        std::vector<std::vector<double>> din, dparameter;
        for (const auto& x : bench.in)
            din.emplace_back(x.size(), 0.5);  // half of them start at 0.5 and accumulate
        for (const auto& p : bench.parameter) dparameter.emplace_back(p.size(), 0.25);
        for (std::size_t i = 0; i < din.size(); i++)
            call.din[i] = din[i].data(), call.accumulate[i] = i % 2 == 0;
        for (std::size_t i = 0; i < dparameter.size(); i++) call.parameter_grad[i] = dparameter[i].data();
        call.dout = bench.weight.data();
        for (call.round = 0; call.round < c.op->backward_rounds.of(call); call.round++) c.op->backward(call);
        for (std::size_t i = 0; i < din.size() && !c.op->passes_gradient; i++) {
            if (i % 2 == 0)
                for (double& g : din[i]) g -= 0.5;
            CHECK_MESSAGE(disagreement(bench, bench.in[i], din[i]) < 1e-6, name << " input " << i);
        }
        for (std::size_t i = 0; i < dparameter.size(); i++) {
            for (double& g : dparameter[i]) g -= 0.25;
            CHECK_MESSAGE(disagreement(bench, bench.parameter[i], dparameter[i]) < 1e-6,
                          name << " parameter " << i);
        }
        if (c.op->passes_gradient)  // the executor's work: each input's gradient is the output's
            for (std::size_t i = 0; i < bench.in.size(); i++)
                CHECK_MESSAGE(disagreement(bench, bench.in[i], bench.weight) < 1e-6, name << " input " << i);
    }
}
