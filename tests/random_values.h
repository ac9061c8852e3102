// Numbers for a graph's parameters, the same each time, for tests.
#pragma once
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "graph/graph.h"

namespace linnet::test {

/// For each parameter its elements: where they begin, and beside that normal numbers of this deviation.
template <class Real = float>
std::vector<std::vector<Real>> random_values(const Graph& graph, std::uint64_t seed, double deviation) {
    std::vector<std::vector<Real>> values;
    for (const Parameter& p : graph.parameters()) {
        const Rng rng(seed, values.size());
        std::vector<Real>& its = values.emplace_back();
        for (std::int64_t i = 0; i < p.shape.count(); i++)
            its.push_back(
                static_cast<Real>(p.init_mean + deviation * rng.normal(static_cast<std::uint64_t>(i))));
    }
    return values;
}

/// The parameters over such values, which must outlive them.
inline std::vector<Tensor> tensors_of(const Graph& graph, std::vector<std::vector<float>>& values) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < values.size(); i++)
        all.push_back({values[i].data(), DType::f32, graph.parameters()[i].shape});
    return all;
}

}  // namespace linnet::test
