// Every optimizer of the table against the same thing written plainly in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/rng.h"
#include "train/optimize/optimizer.h"

using namespace linnet;

namespace {

/// What each optimizer must know: parameters in blocks and outside of them, matrices wide and tall, one that
/// is stored as several, one longer than a chunk, a vector.
Graph small_graph() {
    Graph graph;
    graph.parameter({.name = "token_embd.weight", .shape = {5, 4}});
    graph.parameter({.name = "blk.0.wide.weight", .shape = {6, 10}});
    graph.parameter({.name = "blk.0.tall.weight", .shape = {11, 3}});
    graph.parameter({.name = "blk.0.experts.weight", .shape = {8, 5}, .parts = 2});
    graph.parameter({.name = "blk.1.large.weight", .shape = {130, 140}});
    graph.parameter({.name = "blk.1.norm.weight", .shape = Shape(7)});
    graph.parameter({.name = "output.weight", .shape = {5, 4}});
    return graph;
}

/// All parameters or gradients of the graph as they lie in memory.
std::vector<float> random_elements(const Graph& graph, std::uint64_t stream) {
    std::int64_t n = 0;
    for (const Parameter& p : graph.parameters()) n += padded(p.shape.count());
    std::vector<float> all(static_cast<std::size_t>(n), 0.0f);
    Rng rng(3, stream);
    std::size_t begin = 0;
    for (const Parameter& p : graph.parameters()) {
        for (std::int64_t i = 0; i < p.shape.count(); i++)
            all[begin + static_cast<std::size_t>(i)] =
                static_cast<float>(rng.normal(begin + static_cast<std::uint64_t>(i)));
        begin += static_cast<std::size_t>(padded(p.shape.count()));
    }
    return all;
}

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix c(a.size(), std::vector<double>(b[0].size(), 0.0));
    for (std::size_t i = 0; i < a.size(); i++)
        for (std::size_t k = 0; k < b.size(); k++)
            for (std::size_t j = 0; j < b[0].size(); j++) c[i][j] += a[i][k] * b[k][j];
    return c;
}
Matrix transposed(const Matrix& a) {
    Matrix t(a[0].size(), std::vector<double>(a.size()));
    for (std::size_t i = 0; i < a.size(); i++)
        for (std::size_t j = 0; j < a[0].size(); j++) t[j][i] = a[i][j];
    return t;
}

/// Newton–Schulz as its authors give it: the matrix is transposed where it is tall.
Matrix orthogonal(Matrix x) {
    double square = 0;
    for (auto& row : x)
        for (double v : row) square += v * v;
    for (auto& row : x)
        for (double& v : row) v /= std::sqrt(square) + 1e-7;
    const bool tall = x.size() > x[0].size();
    if (tall) x = transposed(x);
    for (int step = 0; step < 5; step++) {
        Matrix a = product(x, transposed(x)), aa = product(a, a), b = a;
        for (std::size_t i = 0; i < a.size(); i++)
            for (std::size_t j = 0; j < a.size(); j++) b[i][j] = -4.7750 * a[i][j] + 2.0315 * aa[i][j];
        Matrix bx = product(b, x);
        for (std::size_t i = 0; i < x.size(); i++)
            for (std::size_t j = 0; j < x[0].size(); j++) x[i][j] = 3.4445 * x[i][j] + bx[i][j];
    }
    return tall ? transposed(x) : x;
}

/// One parameter's state and step in double.
struct Reference {
    const Parameter& parameter;
    std::vector<double> p, m, v;

    Reference(const Parameter& of, const float* values)
        : parameter(of), p(values, values + of.shape.count()), m(p.size(), 0), v(p.size(), 0) {}

    /// Decoupled decay, cautious or not.
    void take(std::size_t i, const OptimizerConfig& c, double lr, double decay, double u) {
        if (c.cautious_decay && u * p[i] <= 0) decay = 0;
        p[i] -= lr * (u + decay * p[i]);
    }

    /// `largest`: of the schedule's rates.
    void step(const OptimizerConfig& c, double share, double rate, double largest, std::int64_t t,
              std::vector<double> g) {
        double decay = parameter.shape.rank > 1 ? c.weight_decay : 0;
        if (c.scaled_decay) decay *= rate / largest;
        const double lr = share * rate;
        double momentum = c.momentum;
        if (c.momentum_warmup > 0)
            momentum = c.momentum_start + (c.momentum - c.momentum_start) *
                                              std::min(1.0, double(t - 1) / double(c.momentum_warmup));
        const bool in_block = parameter.name.starts_with("blk.") && parameter.shape.rank > 1;
        std::string kind = c.kind == "muon" && !in_block ? "adamw" : c.kind;
        if (kind == "muon") return muon(c, lr, decay, momentum, g);
        const double limit = 2 / (1 - c.beta2) - 1, power = std::pow(c.beta2, double(t));
        const double length = limit - 2 * double(t) * power / (1 - power);
        for (std::size_t i = 0; i < p.size(); i++) {
            if (kind == "adam" || kind == "sgd") g[i] += decay * p[i];
            if (kind == "adamw" || kind == "adam" || kind == "radam") {
                m[i] = c.beta1 * m[i] + (1 - c.beta1) * g[i];
                v[i] = c.beta2 * v[i] + (1 - c.beta2) * g[i] * g[i];
                double mean = m[i] / (1 - std::pow(c.beta1, double(t)));
                double root = std::sqrt(v[i] / (1 - power)) + c.epsilon;
                if (kind == "radam") {
                    double r = length > 4 ? std::sqrt((length - 4) * (length - 2) * limit /
                                                      ((limit - 4) * (limit - 2) * length))
                                          : 0;
                    take(i, c, lr, decay, length > 4 ? r * mean / root : mean);
                } else {
                    take(i, c, lr, kind == "adam" ? 0 : decay, mean / root);
                }
            } else if (kind == "sgd") {
                m[i] = momentum * m[i] + g[i];
                p[i] -= lr * (c.nesterov ? g[i] + momentum * m[i] : m[i]);
            } else if (kind == "lion") {
                double mean = c.beta1 * m[i] + (1 - c.beta1) * g[i];
                m[i] = c.beta2 * m[i] + (1 - c.beta2) * g[i];
                take(i, c, lr, decay, double((mean > 0) - (mean < 0)));
            } else {
                FAIL("an optimizer without a reference: ", kind);
            }
        }
    }

    void muon(const OptimizerConfig& c, double lr, double decay, double momentum,
              const std::vector<double>& g) {
        const std::size_t parts = parameter.parts > 0 ? static_cast<std::size_t>(parameter.parts) : 1;
        const auto columns = static_cast<std::size_t>(parameter.shape.dim[1]),
                   rows = p.size() / columns / parts;
        for (std::size_t part = 0; part < parts; part++) {
            const std::size_t begin = part * rows * columns;
            Matrix u(rows, std::vector<double>(columns));
            for (std::size_t i = 0; i < rows * columns; i++) {
                double& mean = m[begin + i];
                mean = momentum * mean + g[begin + i];
                u[i / columns][i % columns] = c.nesterov ? g[begin + i] + momentum * mean : mean;
            }
            u = orthogonal(u);
            double scale = 0.2 * std::sqrt(double(std::max(rows, columns)));
            for (std::size_t i = 0; i < rows * columns; i++)
                take(begin + i, c, lr, decay, scale * u[i / columns][i % columns]);
        }
    }
};

/// The largest difference of parameters after some steps, of their root mean square; all learn at `share` of
/// the rate.
double difference(const OptimizerConfig& config, int steps, ProductKernel products = ProductKernel::panels,
                  double share = 1, const std::string& schedule_kind = "cosine") {
    const Graph graph = small_graph();
    ScheduleConfig schedule;
    schedule.kind = schedule_kind, schedule.warmup = 3;
    const double largest = schedule_kind == "noam" ? config.lr / std::sqrt(3) : config.lr;
    const std::vector<ParameterGroup> groups{{{}, config, schedule}};
    const std::vector<double> shares(graph.parameters().size(), share);
    Optimizer optimizer(graph, groups, 2, shares, products);
    std::vector<float> values = random_elements(graph, 0);
    std::vector<Reference> references;
    std::size_t begin = 0;
    for (const Parameter& p : graph.parameters()) {
        references.emplace_back(p, values.data() + begin);
        begin += static_cast<std::size_t>(padded(p.shape.count()));
    }
    StepOptions options;
    options.span = {config.lr, 20, 1}, options.clip = 50;
    for (int t = 1; t <= steps; t++) {
        std::vector<float> gradients = random_elements(graph, static_cast<std::uint64_t>(t));
        double norm = 0;
        for (float g : gradients) norm += double(g) * double(g);
        norm = std::sqrt(norm);
        const std::vector<float> given = gradients;
        options.step = t;
        StepResult result = optimizer.step(groups, options, values.data(), gradients.data());
        CHECK(result.norm == doctest::Approx(norm));
        CHECK(result.applied);
        CHECK(std::count(gradients.begin(), gradients.end(), 0.0f) == std::ptrdiff_t(gradients.size()));
        const double rate = scheduled_rate(schedule, options.span, t - 1);
        begin = 0;
        for (Reference& r : references) {
            std::vector<double> g(given.begin() + std::ptrdiff_t(begin),
                                  given.begin() + std::ptrdiff_t(begin + r.p.size()));
            for (double& x : g) x *= std::min(1.0, 50 / norm);
            r.step(config, share, rate, largest, t, g);
            begin += static_cast<std::size_t>(padded(r.parameter.shape.count()));
        }
    }
    double worst = 0;
    begin = 0;
    for (const Reference& r : references) {
        for (std::size_t i = 0; i < r.p.size(); i++)
            worst = std::max(worst, std::fabs(double(values[begin + i]) - r.p[i]));
        begin += static_cast<std::size_t>(padded(r.parameter.shape.count()));
    }
    return worst;
}

}  // namespace

TEST_CASE("every optimizer takes the steps of its paper, whatever its settings are") {
    using Change = std::function<void(OptimizerConfig&)>;
    const std::pair<const char*, Change> changes[] = {
        {"plain", [](OptimizerConfig&) {}},
        {"cautious decay", [](OptimizerConfig& c) { c.cautious_decay = true; }},
        {"scaled decay", [](OptimizerConfig& c) { c.scaled_decay = true; }},
        {"momentum warm-up", [](OptimizerConfig& c) { c.momentum_warmup = 4; }},
        {"without a look ahead", [](OptimizerConfig& c) { c.nesterov = false; }},
        {"without momentum", [](OptimizerConfig& c) { c.momentum = 0; }},
        {"a beta2 of 0.5", [](OptimizerConfig& c) { c.beta2 = 0.5; }},
    };
    for (const OptimizerKind& kind : optimizer_kinds())
        for (const auto& [name, change] : changes) {
            CAPTURE(kind.name);
            const auto& of_name = name;
            CAPTURE(of_name);
            OptimizerConfig config;
            config.kind = kind.name;
            config.lr = 0.01, config.weight_decay = 0.3;
            change(config);
            if (config.cautious_decay && kind.coupled_decay) continue;  // refused
            CHECK(difference(config, 9) < 4e-5);
            CHECK(difference(config, 9, ProductKernel::panels, 0.5) < 4e-5);  // as of --layer-decay
        }
}

TEST_CASE("weight decay that follows the schedule is whole at its largest rate, of every kind") {
    OptimizerConfig config;
    config.lr = 0.01, config.weight_decay = 0.3, config.scaled_decay = true;
    for (const ScheduleKind& kind : schedule_kinds()) {
        CAPTURE(kind.name);
        CHECK(difference(config, 9, ProductKernel::panels, 1, std::string(kind.name)) < 4e-5);
        ParameterGroup group{{}, config, {.kind = std::string(kind.name)}};
        double largest = 0;
        for (std::int64_t step = 0; step < 1000; step++)
            largest = std::max(largest, group_rate_share(group, {1, 1000, 64}, step));
        CHECK(largest == doctest::Approx(1));
    }
}

TEST_CASE("a run in bf16 makes matrices orthogonal in bf16, as far as the machine has such products") {
    OptimizerConfig config;
    config.kind = "muon", config.lr = 0.01;
    const double plain = difference(config, 9), rounded = difference(config, 9, ProductKernel::bf16);
    CHECK(rounded < 4e-3);
    CHECK((rounded > 4 * plain) == (kernels().narrow.rounded != nullptr));
    if (kernels().narrow.split) CHECK(difference(config, 9, ProductKernel::split) < 1e-4);
}

TEST_CASE("an optimizer's step has the same bits for any number of threads, and keeps what its row says") {
    const Graph graph = small_graph();
    std::int64_t all = 0, matrices_of_blocks = 0;
    for (const Parameter& p : graph.parameters()) {
        all += padded(p.shape.count());
        if (p.name.starts_with("blk.") && p.shape.rank > 1) matrices_of_blocks += padded(p.shape.count());
    }
    for (const OptimizerKind& kind : optimizer_kinds()) {
        CAPTURE(kind.name);
        OptimizerConfig config;
        config.kind = kind.name;
        const std::vector<ParameterGroup> groups{{{}, config, {}}};
        for (ProductKernel products : {ProductKernel::panels, ProductKernel::bf16}) {
            std::vector<float> first_values, first_state;
            for (int threads : {1, 2, 5}) {
                Optimizer optimizer(graph, groups, threads, {}, products);
                CHECK(optimizer.state_elements() ==
                      (kind.orthogonalises ? 2 * all - matrices_of_blocks : kind.moments * all));
                CHECK(Optimizer::bytes(graph, groups, threads, {}, products) >=
                      static_cast<std::size_t>(optimizer.state_elements()) * sizeof(float));
                std::vector<float> values = random_elements(graph, 0);
                StepOptions options;
                options.span.steps = 10, options.clip = 1;
                for (options.step = 1; options.step <= 4; options.step++) {
                    std::vector<float> gradients =
                        random_elements(graph, static_cast<std::uint64_t>(options.step));
                    options.watch = options.step % 2 == 0;
                    optimizer.step(groups, options, values.data(), gradients.data());
                }
                std::vector<float> state(optimizer.state(), optimizer.state() + optimizer.state_elements());
                if (threads == 1) first_values = values, first_state = state;
                CHECK(std::memcmp(values.data(), first_values.data(), values.size() * sizeof(float)) == 0);
                CHECK(std::memcmp(state.data(), first_state.data(), state.size() * sizeof(float)) == 0);
            }
        }
    }
}

TEST_CASE("a step whose norm is too large, or not a number, changes nothing but the gradients") {
    const Graph graph = small_graph();
    for (const char* kind : {"adamw", "muon"}) {
        OptimizerConfig config;
        config.kind = kind;
        const std::vector<ParameterGroup> groups{{{}, config, {}}};
        Optimizer optimizer(graph, groups, 2);
        const std::vector<float> values = random_elements(graph, 0);
        for (double bad : {1e30, double(NAN), double(INFINITY)}) {
            std::vector<float> now = values, gradients = random_elements(graph, 1);
            gradients[40] = static_cast<float>(bad);
            StepOptions options;
            if (std::isfinite(bad)) options.skip_above = 1000;
            StepResult result = optimizer.step(groups, options, now.data(), gradients.data());
            CHECK_FALSE(result.applied);
            CHECK(now == values);
            CHECK(std::count(gradients.begin(), gradients.end(), 0.0f) == std::ptrdiff_t(gradients.size()));
            CHECK(std::count(optimizer.state(), optimizer.state() + optimizer.state_elements(), 0.0f) ==
                  optimizer.state_elements());
        }
    }
}

TEST_CASE("a watched step tells each block's gradient, update and weights") {
    const Graph graph = small_graph();
    for (const char* kind : {"sgd", "muon"}) {
        OptimizerConfig config;
        config.kind = kind, config.lr = 0.5, config.weight_decay = 0;
        const std::vector<ParameterGroup> groups{{{}, config, {.kind = "constant", .warmup = 0}}};
        Optimizer optimizer(graph, groups, 2);
        const std::vector<float> before = random_elements(graph, 0);
        std::vector<float> after = before, gradients = random_elements(graph, 1);
        const std::vector<float> given = gradients;
        StepOptions options;
        options.watch = true;
        StepResult result = optimizer.step(groups, options, after.data(), gradients.data());
        REQUIRE(result.blocks.size() == 4);  // token_embd, blk.0, blk.1, output
        CHECK(result.blocks[1].name == "blk.0");
        CHECK(result.blocks[3].name == "output");
        double gradient = 0, update = 0, weight = 0;
        for (std::size_t i = 0; i < 32; i++) {  // token_embd
            gradient += double(given[i]) * double(given[i]);
            update += std::pow(double(after[i]) - double(before[i]), 2);
            weight += double(before[i]) * double(before[i]);
        }
        CHECK(result.blocks[0].gradient == doctest::Approx(std::sqrt(gradient)));
        CHECK(result.blocks[0].update == doctest::Approx(std::sqrt(update)));
        CHECK(result.blocks[0].weight == doctest::Approx(std::sqrt(weight)));
        CHECK(result.blocks[2].update > 0);
    }
}

TEST_CASE("groups give parameters their own rates, decays, schedules and optimizers; others stay") {
    const Graph graph = small_graph();
    const nlohmann::json entries = {
        {{"match", "blk.*"}, {"lr", 0.25}, {"weight_decay", 0}, {"schedule", {{"kind", "constant"}}}},
        {{"match", {"output*", "token_embd.weight"}}, {"kind", "sgd"}, {"momentum", 0}}};
    OptimizerConfig config;
    ScheduleConfig schedule;
    std::vector<ParameterGroup> groups = parameter_groups(config, schedule, entries, "test");
    REQUIRE(groups.size() == 3);
    CHECK(groups[1].optimizer.lr == 0.25);
    CHECK(groups[1].optimizer.beta2 == config.beta2);
    CHECK(groups[1].schedule.kind == "constant");
    CHECK(groups[2].optimizer.kind == "sgd");
    CHECK(assign_groups(groups, graph, "test") == std::vector<std::size_t>{2, 1, 1, 1, 1, 1, 2});
    Optimizer optimizer(graph, groups, 1);
    std::vector<float> values = random_elements(graph, 0), gradients = random_elements(graph, 1);
    const std::vector<float> before = values, given = gradients;
    StepOptions options;
    options.span.steps = 1000, options.step = 101;  // behind the warm-up
    optimizer.step(groups, options, values.data(), gradients.data());
    for (std::size_t i = 0; i < 20; i++) {  // sgd: the gradient, and decay within it
        double d = double(given[i]) + 0.1 * double(before[i]);
        CHECK(double(values[i]) == doctest::Approx(double(before[i]) - config.lr * d).epsilon(1e-4));
    }
    double moved = std::fabs(double(values[32]) - double(before[32]));
    CHECK(moved > 0.1);  // 0.25 times what AdamW makes of a first gradient at step 101

    auto refused = [&](const nlohmann::json& groups, const std::string& part) {
        try {
            assign_groups(parameter_groups(config, schedule, groups, "test"), graph, "test");
            FAIL("taken: ", groups.dump());
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::input);
            CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
        }
    };
    refused({{{"match", "blk.7.*"}}}, "train.groups[0].match: expected a pattern that a parameter's name");
    refused({{{"match", ""}}},
            "train.groups[0].match: expected a pattern that a parameter's name matches, got an empty one");
    refused({{{"lr", 1}}}, "train.groups[0].match: expected a pattern");
    refused({{{"match", "*"}, {"rate", 1}}}, "train.groups[0].rate");
    refused({{{"match", "*"}, {"kind", "adamx"}}}, "did you mean");
    refused({{{"match", "*"}, {"lr", -1}}}, "train.groups[0].lr: expected 0 to 100");
    refused({{{"match", "*"}, {"kind", "lion"}, {"momentum_warmup", 5}}}, "as lion has no momentum");
    refused({{{"match", "*"}, {"kind", "sgd"}, {"cautious_decay", true}}}, "as sgd adds its weight decay");
    refused({{"a", 1}}, "train.groups");
    refused(5, "expected a list");
    refused({5}, "train.groups[0]: expected an object");
}

TEST_CASE("every schedule rises and falls as its formula says, and ends where it should") {
    const RateSpan span{0.5, 1000, 64};
    ScheduleConfig c;
    c.warmup = 100, c.min_lr = 0.05, c.decay = 0.25;
    for (const ScheduleKind& kind : schedule_kinds()) {
        CAPTURE(kind.name);
        c.kind = kind.name;
        auto rate = [&](std::int64_t step) { return scheduled_rate(c, span, step); };
        for (std::int64_t step = 0; step < 99; step++) CHECK(rate(step) < rate(step + 1));
        for (std::int64_t step = 101; step < 999; step++) CHECK(rate(step) >= rate(step + 1));
        if (kind.name != "noam") CHECK(rate(100) == doctest::Approx(0.5));
        if (kind.to_the_end || kind.name == "wsd") CHECK(rate(1000) == doctest::Approx(0.05));
    }
    auto at = [&](const char* kind, std::int64_t step) {
        c.kind = kind;
        return scheduled_rate(c, span, step);
    };
    CHECK(at("cosine", 550) == doctest::Approx((0.5 + 0.05) / 2));
    CHECK(at("linear", 325) == doctest::Approx(0.5 - 0.45 * 0.25));
    CHECK(at("constant", 999) == 0.5);
    CHECK(at("inverse-sqrt", 403) == doctest::Approx(0.25));
    CHECK(at("noam", 49) == doctest::Approx(0.5 / 8 * 50 / 1000));
    CHECK(at("noam", 399) == doctest::Approx(0.5 / 8 / 20));
    CHECK(at("wsd", 750) == doctest::Approx(0.5));
    CHECK(at("wsd", 875) == doctest::Approx(0.275));
    c.min_lr = 0.2;
    CHECK(at("inverse-sqrt", 999) == doctest::Approx(0.2));
    c.min_lr = 0.8;  // above the peak: the rate stays at that
    for (const char* kind : {"cosine", "linear", "inverse-sqrt", "wsd"})
        CHECK(at(kind, 999) == doctest::Approx(0.5));
}
