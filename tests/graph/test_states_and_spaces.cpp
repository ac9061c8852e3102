// What a plan can hold beside a decoder with keys and values: states of other kinds, several row spaces, rows
// permuted at run time, values that are recomputed or stored narrowly. On graphs that are as small as that
// can be.
#include <cstring>

#include "graph/small_graphs.h"
#include "kernels/half.h"
#include "model/engine/states.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr std::int64_t vocabulary = 11, width = 8;

Lowering lowering_of(Phase phase, std::vector<std::int64_t> capacity, bool states = false) {
    Lowering l;
    l.phase = phase, l.capacity = std::move(capacity), l.states = states, l.positions = 16;
    return l;
}

/// Streams, spaces and an embedding: what every graph here begins with.
struct Begun {
    Graph graph;
    SpaceId tokens;
    StreamId ids, targets;
    ParameterId table;
    NodeId embedded;

    Begun()
        : tokens(graph.space({"tokens"})),
          ids(graph.stream({"tokens"})),
          targets(graph.stream({"targets"})),
          table(graph.parameter({.name = "table", .shape = {vocabulary, width}, .init_std = 1})),
          embedded(graph.add(embedding_op, "embed", {}, {table}, {}, {tokens, ids})) {}

    NodeId linear(const std::string& name, NodeId x, std::int64_t out = width) {
        return graph.add(
            linear_op, name, {x},
            {graph.parameter({.name = name, .shape = {out, graph.node(x).width}, .init_std = 1})});
    }
    NodeId loss(NodeId x) {
        ParameterId head =
            graph.parameter({.name = "head", .shape = {vocabulary, graph.node(x).width}, .init_std = 1});
        NodeId root = graph.add(cross_entropy_op, "loss", {x}, {head}, {}, {none, targets});
        graph.add_program("loss", {root});
        return root;
    }
};

Batch batch_of(const std::vector<std::int64_t>& lengths) {
    Batch b;
    for (std::size_t s = 0; s < lengths.size(); s++) {
        std::vector<std::int32_t> ids;
        for (std::int64_t t = 0; t <= lengths[s]; t++)
            ids.push_back(
                static_cast<std::int32_t>((static_cast<std::int64_t>(s) * 5 + t * t * 3 + t) % vocabulary));
        b.add(ids.data(), lengths[s], 0, static_cast<std::int64_t>(s));
        b.targets.insert(b.targets.end(), ids.begin() + 1, ids.end());
    }
    return b;
}

Attributes heads(bool causal) {
    return {{"heads", 2},
            {"kv_heads", 2},
            {"head_width", width / 2},
            {"window", 0},
            {"dropout", 0.2},  // where a batch is one of training
            {"causal", causal ? 1.0 : 0.0}};
}

}  // namespace

namespace {

/// A decoder that looks at an encoder's rows.
struct Translator : Begun {
    SpaceId source;
    NodeId keys_kept, looked, root;

    Translator() {
        source = graph.space({"source"});
        StreamId words = graph.stream({"source"});
        NodeId encoded = linear("encode", graph.add(embedding_op, "words", {}, {table}, {}, {source, words}));
        NodeId k = linear("k", encoded), v = linear("v", encoded), q = linear("q", embedded);
        StateId state = graph.state({"cross", 4, width / 2});
        keys_kept = graph.add(append_op, "append", {k, v}, {}, {{"kv_heads", 2}}, {.writes = state});
        looked = graph.add(attention_op, "look", {q, k, v}, {}, heads(false), {.reads = state});
        root = loss(looked);
        graph.add_program("encode", {keys_kept});
        graph.add_program("decode", {looked});
    }
};

}  // namespace

TEST_CASE("an encoder runs once, and its keys and values serve a decoder over many steps") {
    Translator t;
    const std::vector<std::int32_t> words[] = {{3, 1, 4, 1, 5}, {9, 2}};
    Batch whole = batch_of({6, 4});
    std::vector<std::int32_t>& stream = whole.stream("source");
    for (std::int32_t s = 0; s < 2; s++) {
        stream.insert(stream.end(), words[s].begin(), words[s].end());
        whole.space("source").add(static_cast<std::int64_t>(words[s].size()), 0, s);
    }
    whole.training = true;
    check_gradients(t.graph, lowering_of(Phase::train, {10, 7}), whole);
    whole.training = false;

    GraphRun<float> at_once(t.graph), in_steps(t.graph);
    at_once.lower("decode", lowering_of(Phase::read, {10, 7}));
    at_once.executor->run(whole);
    std::vector<float> expected(at_once.executor->value(t.looked),
                                at_once.executor->value(t.looked) + 10 * width);

    States states(t.graph, {16, 2});
    in_steps.binding.states = states.views();
    in_steps.lower("encode", lowering_of(Phase::read, {10, 7}, true));
    for (const PlanStep& step : in_steps.executor->plan().steps) CHECK(step.node != t.looked);
    in_steps.executor->run(whole);
    in_steps.lower("decode", lowering_of(Phase::read, {10, 7}, true));
    for (const PlanStep& step : in_steps.executor->plan().steps)  // the encoder is no part of it
        CHECK(t.graph.node(step.node).space == t.tokens);
    for (std::int64_t step = 0; step < 6; step++) {
        Batch one;
        for (std::int32_t s = 0; s < 2; s++) {
            if (step >= whole.rows.segments[static_cast<std::size_t>(s)].length) continue;
            std::int64_t row = whole.rows.segments[static_cast<std::size_t>(s)].first + step;
            one.add(&whole.tokens[static_cast<std::size_t>(row)], 1, step, s);
            one.space("source").add(0, static_cast<std::int64_t>(words[s].size()), s);
        }
        in_steps.executor->run(one);
        for (const Segment& s : one.rows.segments)
            CHECK(
                std::memcmp(in_steps.executor->value(t.looked) + s.first * width,
                            expected.data() +
                                (whole.rows.segments[static_cast<std::size_t>(s.slot)].first + step) * width,
                            width * sizeof(float)) == 0);
    }
}

namespace {

// Two of four experts per token, chosen by its id (so that differences do not change the choice). Places are
// sorted by expert; `order` says which (token, rank) stands where, `offsets` where each expert's places
// begin.
constexpr std::int64_t experts = 4, used = 2;

std::int64_t expert_of(std::int32_t id, std::int64_t rank) {
    return (id + rank * (1 + id % 3)) % experts;
}
std::int64_t one_wide(const NodeShape&) {
    return 1;
}
std::int64_t same_width(const NodeShape& s) {
    return s.in[0];
}
double free_of_cost(const NodeShape&, double) {
    return 0;
}

template <class Real, class Visit>
void each_place(const Call<Real>& call, Visit visit) {  // visit(place, token · used + rank, expert)
    std::int64_t place = 0;
    for (std::int64_t e = 0; e < experts; e++)
        for (std::int64_t r = 0; r < static_cast<std::int64_t>(call.ids.size()); r++)
            for (std::int64_t k = 0; k < used; k++)
                if (expert_of(call.ids[static_cast<std::size_t>(r)], k) == e) visit(place++, r * used + k, e);
}

const Op order_op = {
    .name = "order",
    .inputs = 0,
    .width = one_wide,
    .flops = free_of_cost,
    .forward =
        [](auto& call) {
            if (call.worker.index == 0)
                each_place(call, [&](std::int64_t place, std::int64_t slot, std::int64_t) {
                    call.out_integers()[place] = static_cast<std::int32_t>(slot);
                });
        },
    .integers = true,
    .stream = true,
};
const Op offsets_op = {
    .name = "offsets",
    .inputs = 0,
    .width = one_wide,
    .flops = free_of_cost,
    .forward =
        [](auto& call) {
            if (call.worker.index != 0) return;
            std::fill_n(call.out_integers(), experts + 1, 0);
            each_place(call, [&](std::int64_t, std::int64_t, std::int64_t e) {
                for (std::int64_t i = e + 1; i <= experts; i++) call.out_integers()[i]++;
            });
        },
    .integers = true,
    .stream = true,
};

template <class Real>
void gather_forward(Call<Real>& call) {
    Range places = call.worker.share(call.rows);
    for (std::int64_t p = places.begin; p < places.end; p++)
        std::copy_n(call.in[0] + call.integers(1)[p] / used * call.width, call.width,
                    call.out + p * call.width);
}
/// A member owns columns and adds places in order.
template <class Real>
void gather_backward(Call<Real>& call) {
    Range columns = call.worker.share(call.width);
    if (!call.accumulate[0])
        for (std::int64_t r = 0; r < call.in_rows[0]; r++)
            std::fill_n(call.din[0] + r * call.width + columns.begin, columns.size(), Real(0));
    for (std::int64_t p = 0; p < call.rows; p++)
        for (std::int64_t c = columns.begin; c < columns.end; c++)
            call.din[0][call.integers(1)[p] / used * call.width + c] += call.dout[p * call.width + c];
}
const Op gather_op = {
    .name = "gather",
    .inputs = 2,
    .width = same_width,
    .flops = free_of_cost,
    .forward = [](auto& call) { gather_forward(call); },
    .backward = [](auto& call) { gather_backward(call); },
    .reads_inputs = 2,
    .undifferentiated = 2,
};

/// y = W[expert] · x; W [experts · N, C].
std::int64_t expert_width(const NodeShape& s) {
    return s.parameters[0].dim[0] / experts;
}
template <class Real, class Visit>
void each_product(const Call<Real>& call, Visit visit) {  // visit(place, expert), a member's places
    Range places = call.worker.share(call.rows);
    for (std::int64_t e = 0; e < experts; e++)
        for (std::int64_t p = call.integers(1)[e]; p < call.integers(1)[e + 1]; p++)
            if (p >= places.begin && p < places.end) visit(p, e);
}
template <class Real>
void expert_forward(Call<Real>& call) {
    std::int64_t c = call.in_width[0], n = call.width;
    each_product(call, [&](std::int64_t p, std::int64_t e) {
        for (std::int64_t i = 0; i < n; i++) {
            const Real* w = call.vector(0) + (e * n + i) * c;
            Real sum = 0;
            for (std::int64_t j = 0; j < c; j++) sum += w[j] * call.in[0][p * c + j];
            call.out[p * n + i] = sum;
        }
    });
}
template <class Real>
void expert_backward(Call<Real>& call) {
    std::int64_t c = call.in_width[0], n = call.width;
    if (call.worker.index != 0) return;
    if (!call.accumulate[0]) std::fill_n(call.din[0], call.rows * c, Real(0));
    for (std::int64_t e = 0; e < experts; e++)
        for (std::int64_t p = call.integers(1)[e]; p < call.integers(1)[e + 1]; p++)
            for (std::int64_t i = 0; i < n; i++)
                for (std::int64_t j = 0; j < c; j++) {
                    Real dy = call.dout[p * n + i];
                    call.din[0][p * c + j] += dy * call.vector(0)[(e * n + i) * c + j];
                    call.parameter_grad[0][(e * n + i) * c + j] += dy * call.in[0][p * c + j];
                }
}
const Op expert_op = {
    .name = "expert",
    .inputs = 2,
    .parameters = 1,
    .width = expert_width,
    .flops = free_of_cost,
    .forward = [](auto& call) { expert_forward(call); },
    .backward = [](auto& call) { expert_backward(call); },
    .reads_inputs = 3,
    .undifferentiated = 2,
};

/// The sum of a token's places, by rank.
template <class Real>
void back_forward(Call<Real>& call) {
    if (call.worker.index != 0) return;
    std::vector<std::int64_t> place(static_cast<std::size_t>(call.in_rows[0]));
    for (std::int64_t p = 0; p < call.in_rows[0]; p++)
        place[static_cast<std::size_t>(call.integers(1)[p])] = p;
    for (std::int64_t r = 0; r < call.rows; r++)
        for (std::int64_t c = 0; c < call.width; c++) {
            Real sum = 0;
            for (std::int64_t k = 0; k < used; k++)
                sum += call.in[0][place[static_cast<std::size_t>(r * used + k)] * call.width + c];
            call.out[r * call.width + c] = sum;
        }
}
template <class Real>
void back_backward(Call<Real>& call) {
    Range places = call.worker.share(call.in_rows[0]);
    for (std::int64_t p = places.begin; p < places.end; p++)
        for (std::int64_t c = 0; c < call.width; c++) {
            Real dy = call.dout[call.integers(1)[p] / used * call.width + c];
            Real& dx = call.din[0][p * call.width + c];
            dx = call.accumulate[0] ? dx + dy : dy;
        }
}
const Op back_op = {
    .name = "back",
    .inputs = 2,
    .width = same_width,
    .flops = free_of_cost,
    .forward = [](auto& call) { back_forward(call); },
    .backward = [](auto& call) { back_backward(call); },
    .reads_inputs = 2,
    .undifferentiated = 2,
};

}  // namespace

TEST_CASE("rows go to four experts, in an order found at run time, and back: forward and gradient") {
    Begun g;
    SpaceId places = g.graph.space({.name = "places", .parent = g.tokens, .per_parent = used});
    SpaceId bounds = g.graph.space({.name = "expert bounds", .fixed = experts + 1});
    NodeId order = g.graph.add(order_op, "order", {}, {}, {}, {places, g.ids});
    NodeId offsets = g.graph.add(offsets_op, "offsets", {}, {}, {}, {bounds, g.ids});
    NodeId there = g.graph.add(gather_op, "there", {g.embedded, order}, {}, {}, {places});
    ParameterId w = g.graph.parameter({.name = "experts", .shape = {experts * width, width}, .init_std = 1});
    NodeId y = g.graph.add(expert_op, "experts", {there, offsets}, {w});
    NodeId back = g.graph.add(back_op, "back", {y, order}, {}, {}, {g.tokens});
    g.loss(back);
    Batch batch = batch_of({5, 3});
    check_gradients(g.graph, lowering_of(Phase::train, {8}), batch);

    GraphRun<float> run(g.graph);
    g.graph.add_program("forward", {back});
    run.lower("forward", lowering_of(Phase::read, {8}), 2);
    run.executor->run(batch);
    for (std::int64_t r = 0; r < 8; r++)  // each token's sum, worked out by itself
        for (std::int64_t i = 0; i < width; i++) {
            double sum = 0;
            std::int32_t id = batch.tokens[static_cast<std::size_t>(r)];
            for (std::int64_t k = 0; k < used; k++)
                for (std::int64_t j = 0; j < width; j++)
                    sum += static_cast<double>(run.values[1][static_cast<std::size_t>(
                               (expert_of(id, k) * width + i) * width + j)]) *
                           static_cast<double>(run.values[0][static_cast<std::size_t>(id * width + j)]);
            CHECK(static_cast<double>(run.executor->value(back)[r * width + i]) ==
                  doctest::Approx(sum).epsilon(1e-5));
        }
}

namespace {

/// Three residual blocks: norm, attention, a product.
struct Blocks : Begun {
    NodeId root;
    Blocks() {
        NodeId x = embedded;
        for (int b = 0; b < 3; b++) {
            graph.begin_block(b);
            std::string n = "blk." + std::to_string(b);
            ParameterId gain = graph.parameter({.name = n + ".norm", .shape = Shape(width), .init_mean = 1});
            NodeId y = graph.add(rms_norm_op, n + ".norm", {x}, {gain}, {{"epsilon", 1e-5}});
            NodeId a =
                graph.add(attention_op, n + ".attn",
                          {linear(n + ".q", y), linear(n + ".k", y), linear(n + ".v", y)}, {}, heads(true));
            a = graph.add(dropout_op, n + ".drop", {a}, {}, {{"probability", 0.2}});
            x = graph.add(add_op, n + ".add", {x, linear(n + ".out", a)});
        }
        graph.begin_block(none);
        root = loss(x);
    }
};

Batch training_batch(const std::vector<std::int64_t>& lengths) {
    Batch batch = batch_of(lengths);
    batch.training = true;
    batch.seed = 5;
    return batch;
}

}  // namespace

TEST_CASE("blocks that are computed again give the same gradient bits, in less memory") {
    Blocks g;
    Batch batch = training_batch({16, 16});
    GraphRun<float> kept(g.graph), again(g.graph);
    Lowering lowering = lowering_of(Phase::train, {32});
    kept.lower("loss", lowering, 2);
    lowering.recompute = true;
    again.lower("loss", lowering, 2);
    CHECK(kept.loss(batch, g.root) == again.loss(batch, g.root));
    CHECK(kept.gradients == again.gradients);
    CHECK(again.executor->plan().arena_bytes < kept.executor->plan().arena_bytes * 3 / 4);
    std::int64_t recomputed = 0;
    for (const PlanStep& s : again.executor->plan().steps) recomputed += s.kind == StepKind::recompute;
    CHECK(recomputed >= 3 * 5);
    check_gradients(g.graph, lowering, batch);
}

TEST_CASE("a value that an add and an op before it read keeps its gradient to itself") {
    // Backward, the add comes first. Could its inputs share its gradient, the op would add to both.
    Begun g;
    const NodeId a = g.linear("a", g.embedded), b = g.linear("b", g.embedded), other = g.linear("other", b);
    const NodeId sum = g.graph.add(add_op, "sum", {a, b});
    g.loss(g.graph.add(add_op, "all", {sum, other}));
    check_gradients(g.graph, lowering_of(Phase::train, {8}), batch_of({8}));
}

TEST_CASE("activations stored as bf16 between ops: gradients are those of the rounded values") {
    Blocks g;
    Batch batch = training_batch({16, 16});
    GraphRun<float> full(g.graph), narrow(g.graph), again(g.graph);
    Lowering lowering = lowering_of(Phase::train, {32});
    full.lower("loss", lowering);
    lowering.activation = DType::bf16;
    narrow.lower("loss", lowering, 2);
    bool stored = false;
    for (const Value& v : narrow.executor->plan().values)
        stored |= v.type == DType::bf16 && v.bytes == 32 * width * 2;
    CHECK(stored);
    for (std::size_t id = 0; id < g.graph.nodes().size(); id++)  // sums stay as they are
        if (const ValueId v = narrow.executor->plan().value[id];
            v != none && g.graph.nodes()[id].op->passes_gradient)
            CHECK(narrow.executor->plan().values[static_cast<std::size_t>(v)].type == DType::f32);
    double exact = full.loss(batch, g.root), rounded = narrow.loss(batch, g.root);
    CHECK(exact != rounded);
    CHECK(rounded == doctest::Approx(exact).epsilon(0.01));
    for (std::size_t p = 0; p < full.gradients.size(); p++) {
        double difference = 0, square = 0;
        for (std::size_t i = 0; i < full.gradients[p].size(); i++) {
            difference += std::pow(
                static_cast<double>(full.gradients[p][i]) - static_cast<double>(narrow.gradients[p][i]), 2);
            square += std::pow(static_cast<double>(full.gradients[p][i]), 2);
        }
        INFO(g.graph.parameters()[p].name);
        CHECK(std::sqrt(difference) < 0.05 * std::sqrt(square));
    }
    lowering.recompute = true;  // together with recomputation: the same bits
    again.lower("loss", lowering);
    CHECK(again.loss(batch, g.root) == rounded);
    CHECK(again.gradients == narrow.gradients);
}

TEST_CASE("sequences of unequal length stand side by side without padding, and give what they give alone") {
    Blocks g;
    g.graph.add_program("rows", {g.graph.node(g.root).inputs[0]});
    NodeId last = g.graph.node(g.root).inputs[0];
    Batch together = batch_of({7, 1, 12, 3});
    CHECK(together.rows.count == 23);
    GraphRun<float> run(g.graph);
    run.lower("rows", lowering_of(Phase::read, {23}), 2);
    run.executor->run(together);
    std::vector<float> all(run.executor->value(last), run.executor->value(last) + 23 * width);
    for (const Segment& s : together.rows.segments) {
        Batch alone;
        alone.add(together.tokens.data() + s.first, s.length, 0, 0);
        run.executor->run(alone);
        CHECK(std::memcmp(run.executor->value(last), all.data() + s.first * width,
                          static_cast<std::size_t>(s.length * width) * sizeof(float)) == 0);
    }
    Batch batch = training_batch({7, 1, 12, 3});
    check_gradients(g.graph, lowering_of(Phase::train, {23}), batch);
}

TEST_CASE("a gradient passes through a frozen q8_0 weight, and no other is computed") {
    Begun g;
    ParameterId first = g.graph.parameter({.name = "first", .shape = {32, width}, .init_std = 1});
    NodeId x = g.graph.add(linear_op, "first", {g.embedded}, {first});
    constexpr std::int64_t rows = 600;  // more than are unpacked at once
    ParameterId frozen = g.graph.parameter({.name = "frozen", .shape = {rows, 32}, .init_std = 1});
    NodeId y = g.graph.add(linear_op, "frozen", {x}, {frozen});
    NodeId root = g.loss(y);
    Batch batch = batch_of({9, 4});

    constexpr std::size_t bytes = rows * 34;
    std::vector<std::byte> blocks(bytes);
    GraphRun<float> plain(g.graph), quantized(g.graph);
    std::vector<float>& weights = plain.values[static_cast<std::size_t>(frozen)];
    for (std::int64_t row = 0; row < rows; row++) {
        std::uint16_t scale = f32_to_f16(0.01f + 0.001f * static_cast<float>(row % 7));
        std::memcpy(blocks.data() + row * 34, &scale, 2);
        for (std::int64_t i = 0; i < 32; i++) {
            auto q = static_cast<std::int8_t>((row * 13 + i * 29) % 255 - 127);
            std::memcpy(blocks.data() + row * 34 + 2 + i, &q, 1);
            weights[static_cast<std::size_t>(row * 32 + i)] = f16_to_f32(scale) * static_cast<float>(q);
        }
    }
    auto at = static_cast<std::size_t>(frozen);
    Lowering lowering = lowering_of(Phase::train, {13});
    lowering.trained.assign(g.graph.parameters().size(), true);
    lowering.trained[at] = false;
    quantized.binding.parameters[at] = {blocks.data(), DType::q8_0, Shape(rows, 32)};
    plain.binding.gradients[at] = quantized.binding.gradients[at] = nullptr;
    for (ProductKernel product : {ProductKernel::panels, ProductKernel::bf16, ProductKernel::split}) {
        lowering.products = product;
        lowering.stored.assign(g.graph.parameters().size(), DType::f32);
        plain.lower("loss", lowering);
        lowering.stored[at] = DType::q8_0;
        quantized.lower("loss", lowering, 2);
        CHECK(quantized.loss(batch, root) == plain.loss(batch, root));
        for (std::size_t p = 0; p < plain.gradients.size(); p++)
            for (std::size_t i = 0; i < plain.gradients[p].size(); i++)
                CHECK(quantized.gradients[p][i] == doctest::Approx(plain.gradients[p][i]).epsilon(1e-4));
    }
    // Where nothing before the frozen weight is trained, its backward is no part of the plan.
    lowering.trained.assign(g.graph.parameters().size(), false);
    lowering.trained.back() = true;
    Plan head_only = make_plan(g.graph, g.graph.program("loss"), lowering);
    for (const PlanStep& s : head_only.steps) CHECK((s.kind != StepKind::backward || s.node == root));
}

namespace {

/// h[t] = h[t-1] / 2 + x[t], from a state that holds the last h. [planes 1, width].
template <class Real>
void scan(Call<Real>& call) {
    if (call.worker.index != 0) return;
    for (const Segment& s : call.space->segments) {
        Real* h = call.writes.template slot<Real>(s.slot);
        for (std::int64_t r = s.first; r < s.first + s.length; r++)
            for (std::int64_t c = 0; c < call.width; c++) {
                h[c] = h[c] / 2 + call.in[0][r * call.width + c];
                call.out[r * call.width + c] = h[c];
            }
    }
}
const Op scan_op = {
    .name = "scan",
    .inputs = 1,
    .width = same_width,
    .flops = free_of_cost,
    .forward = [](auto& call) { scan(call); },
};

}  // namespace

TEST_CASE("a sequence goes back as far as all that its window sees is still there, and no further") {
    constexpr std::int64_t window = 4;
    Graph graph;
    graph.state({"kept", 2, width, Rewind::truncate, window});
    States states(graph, {100'000, 1, 1});
    const std::int64_t kept = states.views()[0].positions, end = kept + 20;
    REQUIRE(kept < 100'000);
    const auto filled = [&] {
        states.clear(0);
        for (std::int64_t p = 0; p < end; p++) states.remember(0, p, 1);
    };
    // Rows hold the positions from end - kept on; position p sees those from p - 3 on.
    const std::int64_t oldest = end - kept + window - 1;
    filled();
    CHECK(states.rewind(0, end, oldest) == oldest);
    filled();
    CHECK(states.rewind(0, end, oldest - 1) == 0);
}

TEST_CASE("a state that holds all positions at once is taken back by snapshot") {
    Begun g;
    StateId state = g.graph.state({"h", 1, width, Rewind::snapshot});
    NodeId h = g.graph.add(scan_op, "scan", {g.embedded}, {}, {}, {.reads = state, .writes = state});
    g.graph.add_program("run", {h});
    GraphRun<float> run(g.graph);
    States states(g.graph, {16, 2});
    run.binding.states = states.views();
    run.lower("run", lowering_of(Phase::write, {16}, true));
    Batch source = batch_of({12});
    auto step = [&](std::int32_t slot, std::int64_t first, std::int64_t count) {
        states.remember(slot, first, count);
        Batch piece;
        piece.add(source.tokens.data() + first, count, first, slot);
        run.executor->run(piece);
        const float* last = run.executor->value(h) + (count - 1) * width;
        return std::vector<float>(last, last + width);
    };
    std::vector<float> straight = step(0, 0, 12);
    states.clear(0);
    step(0, 0, 4), step(0, 4, 3), step(0, 7, 2);
    states.copy(0, 1, 9);
    CHECK(states.rewind(0, 9, 8) == 7);  // nothing nearer was remembered
    CHECK(step(0, 7, 5) == straight);
    CHECK(states.rewind(0, 12, 6) == 4);
    CHECK(step(0, 4, 8) == straight);
    CHECK(step(1, 9, 3) == straight);  // the copy went its own way
    CHECK(states.rewind(1, 12, 5) == 4);
    CHECK(states.rewind(0, 12, 3) == 0);
    CHECK(step(0, 0, 12) == straight);
    for (std::int64_t i = 0; i < 12; i++) step(1, i % 4 + 4, 1);  // few snapshots are kept, whatever happens
}
