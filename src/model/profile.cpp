#include "model/profile.h"

#include <algorithm>
#include <map>

#include "model/trace.h"

namespace linnet {

std::vector<OpTime> profile(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens,
                            Phase phase) {
    const Graph& graph = engine.model().traced().graph;
    const std::vector<Tensor>& parameters = engine.model().parameters();
    std::map<std::pair<std::string, std::string>, OpTime> by;
    const Engine::Work work{&sequence, tokens};
    engine.watch({&work, 1}, phase, [&](const Engine::Step& step) {
        const Node& node = step.node;
        const bool product = node.op->product && !step.converts;
        const Tensor* weight = product ? &parameters[static_cast<std::size_t>(node.parameters[0])] : nullptr;
        const std::string op(step.converts ? "convert" : node.op->name),
            type(weight ? info(weight->type).name : "");
        OpTime& sum = by[{op, type}];
        sum.op = op, sum.weights = type;
        sum.seconds += step.seconds;
        if (step.converts) return;
        // Of a space with several rows per token, an op counts those of one token together.
        const Graph::Shapes shapes = graph.shapes(node);
        const double per_row = node.op->flops({shapes.in, shapes.parameters, node.attributes},
                                              static_cast<double>(tokens.size()));
        const double rows = static_cast<double>(step.rows) /
                            static_cast<double>(std::max<std::int64_t>(
                                1, graph.spaces()[static_cast<std::size_t>(node.space)].per_parent));
        sum.flops += per_row * rows;
        if (!weight) return;
        // Of experts, at most those that tokens have chosen are read.
        const double element = static_cast<double>(info(weight->type).bytes) / info(weight->type).block;
        const double all = static_cast<double>(weight->shape.count());
        sum.bytes += element * std::min(all, per_row / 2 * rows);
    });
    std::vector<OpTime> sums;
    for (auto& [key, sum] : by) sums.push_back(std::move(sum));
    std::ranges::stable_sort(sums, std::greater(), &OpTime::seconds);
    return sums;
}

}  // namespace linnet
