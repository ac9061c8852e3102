#include "model/trace/projections.h"

#include <cmath>

namespace linnet {
namespace {

double number(std::int64_t n) {
    return static_cast<double>(n);
}

/// The space with up to `rows` rows for each sequence of the parent: made where there is none yet.
SpaceId projected_space(Graph& graph, SpaceId parent, std::int64_t rows) {
    const auto& all = graph.spaces();
    for (std::size_t i = 0; i < all.size(); i++)
        if (all[i].parent == parent && all[i].most == rows) return static_cast<SpaceId>(i);
    return graph.space({.name = "projected", .parent = parent, .per_parent = 1, .most = rows});
}

}  // namespace

void Projections::begin(const std::string& side) {
    side_ = side, shared_ = none;
}

/// One column for each position. Where rows are unlike, a sum of n of them times numbers of variance 1/n is
/// as large as one of them; the 1/k of the paper's theorem would make scores √(n/k) times as large.
ParameterId Projections::matrix(const std::string& name, std::int64_t rows) {
    const std::int64_t positions = parts_.config().context;
    return parts_.parameter(
        {.name = name + ".weight", .shape = {rows, positions}, .init_std = 1 / std::sqrt(number(positions))});
}

void Projections::add(const std::string& path, const std::string& name, std::int64_t rows, NodeId& k,
                      NodeId& v) {
    const std::string& share = parts_.config().attention.projected_share;
    ParameterId of_k = shared_, of_v = shared_;
    if (shared_ == none) {
        const bool one = share != "headwise";
        of_k = matrix(share == "layerwise" ? side_ + "attn_kv_proj" : name + (one ? "_kv_proj" : "_k_proj"),
                      rows);
        of_v = one ? of_k : matrix(name + "_v_proj", rows);
        if (share == "layerwise") shared_ = of_k;
    }
    Graph& graph = parts_.graph();
    const SpaceId space = projected_space(graph, graph.node(k).space, rows);
    k = graph.add(project_op, path + ".k.projected", {k}, {of_k}, {}, {space});
    v = graph.add(project_op, path + ".v.projected", {v}, {of_v}, {}, {space});
}

}  // namespace linnet
