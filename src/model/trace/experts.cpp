#include "model/trace/experts.h"

#include "ops/experts.h"

namespace linnet {

NodeId ExpertsTracer::trace(const std::string& blk, NodeId x, double std) {
    const ModelConfig& c = parts_.config();
    const std::int64_t layer = parts_.layer(), experts = c.experts_at(layer), out = c.width_at(layer);
    const std::string path = blk + ".ffn";
    const auto& e = c.experts;
    auto count = static_cast<double>(experts), used = static_cast<double>(e.used);
    SpaceId tokens = parts_.graph().node(x).space;
    if (places_ == none || parts_.graph().spaces()[places_].parent != tokens)  // the first, or behind a merge
        places_ = parts_.graph().space({.name = "places", .parent = tokens, .per_parent = e.used});
    if (bounds_ == none) bounds_ = parts_.graph().space({.name = "expert bounds", .fixed = experts + 1});
    NodeId scores = parts_.linear(path + ".router", blk + ".ffn_gate_inp", x, experts, false, c.init_std);
    NodeId choice = parts_.graph().add(expert_choice_op, path + ".choice", {scores}, {}, {{"used", used}});
    NodeId weights = parts_.graph().add(expert_weights_op, path + ".weights", {scores, choice}, {},
                                        {{"used", used},
                                         {"sigmoid", e.score == "sigmoid" ? 1.0 : 0.0},
                                         {"renormalize", e.renormalize ? 1.0 : 0.0},
                                         {"scale", e.scale}});
    NodeId places =
        parts_.graph().add(expert_places_op, path + ".places", {choice}, {}, {{"experts", count}}, {places_});
    NodeId bounds = parts_.graph().add(expert_bounds_op, path + ".bounds", {choice}, {}, {}, {bounds_});
    model_.expert_bounds.emplace_back(layer, bounds);
    if (parts_.training() && (e.balance_loss != 0 || e.z_loss != 0))
        model_.router_losses.push_back(parts_.graph().add(
            router_loss_op, path + ".router_loss", {scores, bounds}, {},
            {{"balance", e.balance_loss}, {"z", e.z_loss}, {"sigmoid", e.score == "sigmoid" ? 1.0 : 0.0}}));
    NodeId there =
        parts_.graph().add(to_experts_op, path + ".there", {x, places}, {}, {{"used", used}}, {places_});
    auto product = [&](const char* name, NodeId in, std::int64_t wide, double deviation) {
        ParameterId w = parts_.parameter({.name = blk + ".ffn_" + name + "_exps.weight",
                                          .shape = {experts * wide, parts_.graph().node(in).width},
                                          .init_std = deviation,
                                          .parts = experts});
        NodeId y = parts_.graph().add(expert_linear_op, path + "." + name, {in, bounds}, {w},
                                      {{"experts", count}, {"used", used}});
        return parts_.with_adapters(w, y);
    };
    std::int64_t width = e.width ? e.width : c.ffn.width.at(layer);
    const NodeId gate = c.ffn.gated ? product("gate", there, width, std) : none;
    NodeId y = parts_.activated(path, gate, product("up", there, width, std));
    y = product("down", y, out, parts_.residual_std());
    y = parts_.graph().add(from_experts_op, path + ".back", {y, weights, places}, {}, {}, {tokens});
    if (e.shared > 0) y = parts_.graph().add(add_op, path + ".both", {y, shared(blk, x)});
    return y;
}

NodeId ExpertsTracer::shared(const std::string& blk, NodeId x) {
    const ModelConfig& c = parts_.config();
    const std::string path = blk + ".ffn.shared";
    const NodeId y = parts_.feed_forward_layer(path, blk, "_shexp", x, c.experts.shared, false);
    if (!c.experts.shared_gate) return y;
    ParameterId w = parts_.parameter({.name = blk + ".ffn_gate_inp_shexp.weight",
                                      .shape = {1, c.width_at(parts_.layer())},
                                      .init_std = c.init_std,
                                      .parts = 1});
    NodeId open = parts_.with_adapters(w, parts_.graph().add(linear_op, path + ".open", {x}, {w}));
    return parts_.graph().add(row_gate_op, path + ".gate_result", {y, open});
}

}  // namespace linnet
