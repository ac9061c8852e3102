// Small graphs with random parameters, run and differentiated, for tests.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "graph/executor.h"
#include "random_values.h"

namespace linnet::test {

/// A graph's parameters, gradients and an executor of one of its programs.
template <class Real>
struct GraphRun {
    const Graph& graph;
    std::vector<std::vector<Real>> values, gradients;
    Binding<Real> binding;
    std::optional<Executor<Real>> executor;

    explicit GraphRun(const Graph& g) : graph(g), values(random_values<Real>(g, 11, 0.3)) {
        for (const std::vector<Real>& its : values) gradients.emplace_back(its.size(), Real(0));
        for (std::size_t i = 0; i < values.size(); i++) {
            binding.parameters.push_back({values[i].data(), kernel_type<Real>, g.parameters()[i].shape});
            binding.gradients.push_back(gradients[i].data());
        }
    }
    void lower(std::string_view program, Lowering lowering, int threads = 1) {
        lowering.arithmetic = kernel_type<Real>;
        Binding<Real> b = binding;
        if (lowering.phase != Phase::train) b.gradients.clear();
        executor.emplace(graph, make_plan(graph, graph.program(program), lowering), b, threads);
    }
    /// The summed loss of a batch; adds to the gradients.
    double loss(const Batch& batch, NodeId root) {
        executor->run(batch);
        double sum = 0;
        for (std::int64_t r = 0; r < executor->rows(graph.node(root).space); r++)
            sum += executor->value(root)[r];
        return sum;
    }
};

/// Every parameter's gradient against central differences, in double.
inline void check_gradients(const Graph& graph, const Lowering& lowering, const Batch& batch,
                            double relative = 1e-6, double absolute = 1e-9) {
    GraphRun<double> run(graph);
    run.lower("loss", lowering);
    auto total = [&] {  // of all losses that the program has
        run.executor->run(batch);
        double sum = 0;
        for (NodeId root : graph.program("loss").roots) {
            const Node& node = graph.node(root);
            if (node.op->integers) continue;
            const double weight = node.attributes.has("weight") ? node.attributes.number("weight") : 1;
            for (std::int64_t r = 0; r < run.executor->rows(node.space); r++)
                sum += weight * run.executor->value(root)[r];
        }
        return sum;
    };
    total();
    auto gradients = run.gradients;
    for (std::size_t p = 0; p < run.values.size(); p++) {
        double difference = 0, square = 0;
        for (std::size_t i = 0; i < run.values[p].size(); i++) {
            double keep = run.values[p][i], h = 1e-5;
            run.values[p][i] = keep + h;
            double up = total();
            run.values[p][i] = keep - h;
            double down = total();
            run.values[p][i] = keep;
            double numeric = (up - down) / (2 * h);
            difference += std::pow(numeric - gradients[p][i], 2), square += numeric * numeric;
        }
        INFO(graph.parameters()[p].name);
        bool read = false;  // RWKV-7's first layer has some that nothing reads
        for (const Node& node : graph.nodes())
            for (ParameterId used : node.parameters) read |= used == static_cast<ParameterId>(p);
        CHECK((square > 0) == read);
        CHECK(std::sqrt(difference) < relative * std::sqrt(square) + absolute);
    }
}

}  // namespace linnet::test
