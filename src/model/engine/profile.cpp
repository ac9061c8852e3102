#include "model/engine/profile.h"

#include <algorithm>

#include "model/trace/trace.h"

namespace linnet {
namespace {

OpTime& entry(std::vector<OpTime>& sums, std::string_view op, std::string_view weights) {
    auto same =
        std::ranges::find_if(sums, [&](const OpTime& sum) { return sum.op == op && sum.weights == weights; });
    if (same != sums.end()) return *same;
    return sums.emplace_back(OpTime{std::string(op), std::string(weights)});
}

}  // namespace

void profile(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens, Phase phase,
             std::vector<OpTime>& sums) {
    const Graph& graph = engine.model().traced().graph;
    const std::vector<Tensor>& parameters = engine.model().parameters();
    const Engine::Work work{&sequence, tokens};
    engine.watch({&work, 1}, phase, [&](const Engine::Step& step) {
        const Node& node = step.node;
        if (step.converts) {
            entry(sums, "convert", "").seconds += step.seconds;
            return;
        }
        const Tensor* weight =
            node.op->product ? &parameters[static_cast<std::size_t>(node.parameters[0])] : nullptr;
        OpTime& sum = entry(sums, node.op->name, weight ? info(weight->type).name : "");
        sum.seconds += step.seconds;
        const auto length = static_cast<double>(tokens.size());
        const double flops = graph.tokens(step.space, step.rows, length) * graph.flops(node, length);
        sum.flops += flops;
        if (!weight) return;
        // Of experts, at most those that tokens have chosen are read.
        const double element = static_cast<double>(info(weight->type).bytes) / info(weight->type).block;
        const double all = static_cast<double>(weight->shape.count());
        sum.bytes += element * std::min(all, flops / 2);
    });
}

}  // namespace linnet
