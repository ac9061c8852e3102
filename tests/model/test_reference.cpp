// Loss and every parameter's gradient of whole models of several kinds, beside PyTorch's (reference.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/reference_run.h"
#include "model/small_models.h"
#include "model/trace/trace.h"

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
    const nlohmann::json& settings = expected["config"];
    Batch batch = test::two_sequences();
    batch.loss_scale = 1.0 / 12;
    test::ReferenceRun<Real>(trace(config_of(settings), true, adapters_of(settings)), batch,
                             test::two_sequences_lowering())
        .check(kind, expected, tolerance);
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
