// Adapters with random values, for tests.
#pragma once
#include <memory>
#include <vector>

#include "base/rng.h"
#include "model/adapter.h"

namespace linnet::test {

/// An adapter of a model with random values, B included.
inline Adapter random_adapter(const Model& model, std::int64_t rank, double scale, std::uint64_t seed) {
    Adapter adapter;
    auto values = std::make_shared<std::vector<std::vector<float>>>();
    auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        Rng rng(seed, values->size());
        std::vector<float>& v = values->emplace_back();
        for (std::int64_t i = 0; i < rows * columns; i++)
            v.push_back(static_cast<float>(0.3 * rng.normal(static_cast<std::uint64_t>(i))));
        return Tensor{v.data(), DType::f32, Shape(rows, columns)};
    };
    for (AdapterTarget target : choose_targets(model, "", INT64_MAX, "test")) {
        const Shape& shape = model.file()->tensor(target.tensor)->shape;
        target.rank = rank, target.scale = scale;
        const Tensor a = matrix(rank, shape.dim[1]), b = matrix(shape.dim[0], rank);
        adapter.pairs.push_back({a, b});
        adapter.shape.targets.push_back(std::move(target));
    }
    adapter.keep = values;
    return adapter;
}

}  // namespace linnet::test
