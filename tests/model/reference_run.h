// A model whose weights are a formula of (parameter number, element), run once beside numbers that PyTorch
// gave for the same weights (reference.py and reference_encoders.py).
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "graph/executor.h"
#include "model/trace/trace.h"

namespace linnet::test {

template <class Real>
class ReferenceRun {
  public:
    /// The lowering's arithmetic is Real.
    ReferenceRun(TracedModel model, const Batch& batch, Lowering lowering) : model_(std::move(model)) {
        Binding<Real> binding;
        const std::vector<Parameter>& parameters = model_.graph.parameters();
        for (const Parameter& p : parameters) {
            std::vector<Real> w;
            for (std::int64_t i = 0; i < p.shape.count(); i++)
                w.push_back(static_cast<Real>(p.init_mean +
                                              0.5 * std::sin(1.0 + 0.7 * static_cast<double>(values_.size()) +
                                                             1.3 * static_cast<double>(i))));
            gradients_.emplace_back(w.size(), Real(0));
            values_.push_back(std::move(w));
        }
        for (std::size_t i = 0; i < values_.size(); i++) {
            binding.parameters.push_back({values_[i].data(), kernel_type<Real>, parameters[i].shape});
            binding.gradients.push_back(gradients_[i].data());
        }
        lowering.arithmetic = kernel_type<Real>;
        Executor<Real> executor(model_.graph, make_plan(model_.graph, model_.graph.program("loss"), lowering),
                                binding, 2);
        executor.run(batch);
        std::vector<NodeId> losses = model_.router_losses;
        losses.insert(losses.begin(), model_.loss);
        for (std::size_t r = 0; r < batch.targets.size(); r++)
            for (NodeId node : losses)
                loss_ += static_cast<double>(executor.value(node)[r]) * batch.loss_scale;
    }

    /// `expected`: "loss", and "gradients" of every parameter by name.
    void check(const std::string& kind, const nlohmann::json& expected, double tolerance) const {
        const std::vector<Parameter>& parameters = model_.graph.parameters();
        CAPTURE(kind);
        CHECK(loss_ == doctest::Approx(expected["loss"].get<double>()).epsilon(tolerance));
        CHECK(expected["gradients"].size() == parameters.size());
        for (std::size_t p = 0; p < values_.size(); p++) {
            const std::string& name = parameters[p].name;
            REQUIRE_MESSAGE(expected["gradients"].contains(name), name);
            const auto theirs = expected["gradients"][name].get<std::vector<double>>();
            REQUIRE(theirs.size() == gradients_[p].size());
            double difference = 0, square = 0;
            for (std::size_t i = 0; i < theirs.size(); i++) {
                difference += std::pow(static_cast<double>(gradients_[p][i]) - theirs[i], 2);
                square += theirs[i] * theirs[i];
            }
            CHECK_MESSAGE(std::sqrt(difference) <= tolerance * (std::sqrt(square) + 0.01),
                          kind << " " << name);
        }
    }

  private:
    TracedModel model_;
    std::vector<std::vector<Real>> values_, gradients_;
    double loss_ = 0;
};

}  // namespace linnet::test
