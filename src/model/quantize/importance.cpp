#include "model/quantize/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/processors.h"
#include "base/signals.h"
#include "graph/executor.h"
#include "model/look/look.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"
#include "model/weights.h"

namespace linnet {
namespace {

/// Sums over all rows that a parameter was multiplied by.
struct Squares {
    std::vector<double> of;  // by column
    double rows = 0;

    bool finite() const {
        return std::ranges::all_of(of, [](double x) { return std::isfinite(x); });
    }
    void add(std::span<const float> rows_of, std::int64_t width) {
        const auto columns = static_cast<std::size_t>(width);
        of.resize(columns, 0);
        for (std::size_t i = 0; i < rows_of.size(); i++)
            of[i % columns] += static_cast<double>(rows_of[i]) * static_cast<double>(rows_of[i]);
        rows += static_cast<double>(rows_of.size() / columns);
    }
    /// Those of another parameter of the same tensor.
    void add(const Squares& other) {
        of.resize(std::max(of.size(), other.of.size()), 0);
        for (std::size_t i = 0; i < other.of.size(); i++) of[i] += other.of[i];
        rows += other.rows;
    }
    /// A column that was 0 throughout still counts a little, so that its block has a scale.
    std::vector<float> means() const {
        const double all = std::accumulate(of.begin(), of.end(), 0.0);
        const double least = 1e-6 * all / static_cast<double>(of.size());
        std::vector<float> mean;
        if (all > 0)
            for (double sum : of) mean.push_back(static_cast<float>(std::max(sum, least) / rows));
        return mean;
    }
};

/// The parameters that each node's value is multiplied by.
std::vector<std::vector<ParameterId>> multiplied(const Graph& graph) {
    std::vector<std::vector<ParameterId>> by(graph.nodes().size());
    for (const Node& node : graph.nodes())
        if (node.op->product) by[static_cast<std::size_t>(node.inputs[0])].push_back(node.parameters[0]);
    return by;
}

}  // namespace

Importance measure_importance(const Model& model, std::span<const TokenId> ids, std::int64_t window,
                              int threads, const std::function<void(double done, double all)>& progress) {
    const TracedModel& traced = model.traced();
    const Graph& graph = traced.graph;
    Lowering lowering;
    lowering.capacity = capacities(graph, {.tokens = window, .outputs = 1, .beside = window});
    lowering.positions = window;
    Binding<float> binding;
    binding.parameters = model.parameters();
    for (const Tensor& t : binding.parameters) lowering.stored.push_back(t.type);
    Executor<float> executor(graph, make_plan(graph, graph.program("logits"), lowering), binding,
                             threads_or_cores(threads));

    const std::vector<std::vector<ParameterId>> by = multiplied(graph);
    std::vector<Squares> squares(graph.parameters().size());
    const auto size = static_cast<std::size_t>(window), count = ids.size() / size;
    for (std::size_t w = 0; w < count; w++) {
        const std::span<const TokenId> part = ids.subspan(w * size, size);
        const Batch batch = batch_of(model, {{part.begin(), part.end()}, {}});
        executor.watch(batch, [&](const Executor<float>::Watched& made) {
            const NodeId node = made.step.result;
            for (ParameterId p : by[static_cast<std::size_t>(node)])
                squares[static_cast<std::size_t>(p)].add(made.values, graph.node(node).width);
        });
        if (!std::ranges::all_of(squares, &Squares::finite)) fail_not_finite(model);
        progress(static_cast<double>(w + 1), static_cast<double>(count));
        if (int signal = stop_signal()) throw Stopped{signal};
    }

    // Files of one family have q, k and v apart or in one tensor: by the names that this file has.
    Importance importance;
    for (const StoredTensor& stored : stored_tensors(graph, model.architecture(), model.file())) {
        Squares all;
        for (std::size_t part : stored.parts) all.add(squares[part]);
        std::vector<float> mean = all.means();
        if (!mean.empty()) importance[stored.name] = std::move(mean);
    }
    return importance;
}

}  // namespace linnet
