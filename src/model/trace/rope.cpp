#include "model/trace/rope.h"

#include <algorithm>

namespace linnet {

void RopeTracer::begin(Graph& graph, const ModelConfig& c) {
    const auto& p = c.position;
    const auto& kinds = p.kind.list();
    if (std::find(kinds.begin(), kinds.end(), "rope") == kinds.end() || !factors_.empty()) return;
    const auto& scaling = p.scaling;
    turn_ = {{"head_width", static_cast<double>(c.head_width)}, {"halves", p.halves ? 1.0 : 0.0}};
    std::int64_t turned = p.rotary_width ? p.rotary_width : c.head_width;
    if (p.rotary_width) turn_.set("rotary_width", static_cast<double>(turned));
    bool yarn = scaling.kind == "yarn";
    if (yarn || p.long_factors) turn_.set("original", static_cast<double>(c.original_context()));
    if (yarn) {
        turn_.set("extrapolation", scaling.extrapolation);
        turn_.set("beta_fast", scaling.beta_fast), turn_.set("beta_slow", scaling.beta_slow);
    }
    auto factors = [&](const char* name) {
        factors_.push_back(graph.parameter({.name = name, .shape = Shape(turned / 2), .init_mean = 1}));
    };
    if (p.factors) factors("rope_freqs.weight");
    if (p.long_factors) factors("rope_factors_short.weight"), factors("rope_factors_long.weight");
}

NodeId RopeTracer::add(Graph& graph, const ModelConfig& c, std::int64_t layer, std::string path,
                       NodeId x) const {
    Attributes turn = turn_;
    turn.set("theta", c.position.theta.at(layer));
    const auto& scaling = c.position.scaling;
    if (double factor = scaling.factor.at(layer); factor != 1) turn.set("factor", factor);
    if (double scale = scaling.attention.at(layer); scale != 1) turn.set("scale", scale);
    return graph.add(rope_op, std::move(path), {x}, factors_, turn);
}

}  // namespace linnet
