// Loss and every parameter's gradient of whole models of several kinds, beside PyTorch's (reference.py).
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/executor.h"
#include "model/small_models.h"
#include "model/trace.h"

using namespace linnet;

namespace {

/// A model of reference.py, with the settings that its row has.
ModelConfig config_of(nlohmann::json settings) {
    settings.erase("lora");
    return test::config_with(11, {test::small_model, {{"model.heads", 4}}, settings});
}

/// An adapter of every linear layer of the blocks, where the row has one.
std::vector<AdapterShape> adapters_of(const nlohmann::json& settings) {
    if (!settings.contains("lora")) return {};
    std::vector<AdapterShape> adapters(1);
    const TracedModel model = trace(config_of(settings), true);
    for (const Node& node : model.graph.nodes()) {
        if (node.op != &linear_op || node.block == none) continue;
        const std::string& name = model.graph.parameters()[static_cast<std::size_t>(node.parameters[0])].name;
        adapters[0].targets.push_back({name,
                                       {name},
                                       settings["lora"]["rank"].get<std::int64_t>(),
                                       settings["lora"]["scale"].get<double>()});
    }
    return adapters;
}

template <class Real>
void compare(const std::string& kind, const nlohmann::json& expected, double tolerance) {
    TracedModel model = trace(config_of(expected["config"]), true, adapters_of(expected["config"]));
    std::vector<std::vector<Real>> values, gradients;
    Binding<Real> binding;
    for (const Parameter& p : model.graph.parameters()) {
        std::vector<Real> w;
        for (std::int64_t i = 0; i < p.shape.count(); i++)
            w.push_back(static_cast<Real>(p.init_mean +
                                          0.5 * std::sin(1.0 + 0.7 * static_cast<double>(values.size()) +
                                                         1.3 * static_cast<double>(i))));
        gradients.emplace_back(w.size(), Real(0));
        values.push_back(std::move(w));
    }
    for (std::size_t i = 0; i < values.size(); i++) {
        binding.parameters.push_back(
            {values[i].data(), kernel_type<Real>, model.graph.parameters()[i].shape});
        binding.gradients.push_back(gradients[i].data());
    }
    Batch batch = test::two_sequences();
    batch.loss_scale = 1.0 / 12;
    Lowering lowering = test::two_sequences_lowering();
    lowering.arithmetic = kernel_type<Real>;
    Executor<Real> executor(model.graph, make_plan(model.graph, model.graph.program("loss"), lowering),
                            binding, 2);
    executor.run(batch);
    double loss = 0;
    for (int r = 0; r < 12; r++) {
        loss += executor.value(model.loss)[r] / 12.0;
        for (NodeId router : model.router_losses) loss += executor.value(router)[r] / 12.0;
    }
    CHECK(loss == doctest::Approx(expected["loss"].get<double>()).epsilon(tolerance));
    CHECK(expected["gradients"].size() == model.graph.parameters().size());
    for (std::size_t p = 0; p < values.size(); p++) {
        const std::string& name = model.graph.parameters()[p].name;
        auto theirs = expected["gradients"].at(name).get<std::vector<double>>();
        REQUIRE(theirs.size() == gradients[p].size());
        double difference = 0, square = 0;
        for (std::size_t i = 0; i < theirs.size(); i++) {
            difference += std::pow(static_cast<double>(gradients[p][i]) - theirs[i], 2);
            square += theirs[i] * theirs[i];
        }
        CHECK_MESSAGE(std::sqrt(difference) <= tolerance * (std::sqrt(square) + 0.01), kind << " " << name);
    }
}

}  // namespace

TEST_CASE("loss and gradients of whole models are PyTorch's") {
    std::ifstream file("tests/model/reference.json");
    REQUIRE_MESSAGE(file.good(), "run the tests from the repository's root");
    nlohmann::json expected = nlohmann::json::parse(file);
    for (const auto& [kind, numbers] : expected.items()) {
        compare<double>(kind, numbers, 1e-8);
        compare<float>(kind, numbers, 4e-5);
    }
}
