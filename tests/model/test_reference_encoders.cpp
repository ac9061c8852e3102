// Loss and every parameter's gradient of encoders and encoder–decoders, beside PyTorch's
// (reference_encoders.py). Sequences of unequal length lie behind each other in one batch.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/reference_run.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "support.h"

using namespace linnet;

namespace {

constexpr std::int64_t lengths[] = {6, 4};

ModelConfig config_of(const nlohmann::json& settings) {
    return test::config_with(11, {test::small_model, settings});
}

void add_pictures(const ModelConfig& c, Batch& batch) {
    const std::int64_t pixels = c.image.width * c.image.height;
    for (std::int32_t s = 0; s < 2; s++) {
        batch.outputs.push_back(static_cast<std::int32_t>(batch.rows.count));
        batch.rows.add(pixels / (c.image.patch * c.image.patch), 0, s);
        for (std::int64_t i = 0; i < pixels; i++)
            batch.vectors("patches").push_back(
                static_cast<float>(std::sin(0.37 * static_cast<double>(pixels * s + i))));
        batch.targets.push_back(3 - s);
    }
}

/// The batch of reference_encoders.py's run().
Batch batch_of(const ModelConfig& c) {
    Batch batch;
    batch.training = true;
    if (c.reads_patches()) {
        add_pictures(c, batch);
        return batch;
    }
    for (std::int32_t s = 0; s < 2; s++) {
        const std::int64_t length = lengths[s], first = batch.rows.count;
        std::vector<std::int32_t> ids;
        for (std::int32_t t = 0; t <= length; t++) ids.push_back((5 * s + 3 * t + t * t) % 11);
        batch.add(ids.data(), length, 0, s);
        if (c.has_decoder()) {
            for (std::int32_t t = 0; t < length - 1; t++)
                batch.stream("source").push_back((7 * s + 2 * t + 1) % 11);
            batch.space("source").add(length - 1, 0, s);
            batch.targets.insert(batch.targets.end(), ids.begin() + 1, ids.end());
            continue;
        }
        if (c.segments > 0)
            for (std::int64_t t = 0; t < length; t++) batch.stream("segments").push_back(t > 2);
        if (c.head.kind == "classes") {
            batch.outputs.push_back(static_cast<std::int32_t>(first));
            batch.targets.push_back(2 - s);
            continue;
        }
        for (std::int64_t row : {std::int64_t{1}, length - 1}) {
            batch.outputs.push_back(static_cast<std::int32_t>(first + row));
            batch.targets.push_back(ids[static_cast<std::size_t>(row + 1)] %
                                    static_cast<std::int32_t>(c.head.kind == "tags" ? c.head.classes : 11));
        }
    }
    return batch;
}

template <class Real>
void compare(const std::string& kind, const nlohmann::json& expected, double tolerance) {
    const ModelConfig config = config_of(expected["config"]);
    Batch batch = batch_of(config);
    batch.loss_scale = 1 / static_cast<double>(batch.targets.size());
    Lowering lowering;
    lowering.phase = Phase::train;
    lowering.capacity = {std::max<std::int64_t>(10, batch.rows.count), 10, 10};
    lowering.positions = config.context;
    test::ReferenceRun<Real>(trace(config, true), batch, lowering).check(kind, expected, tolerance);
}

}  // namespace

TEST_CASE("loss and gradients of encoders and encoder-decoders are PyTorch's") {
    auto expected = nlohmann::json::parse(test::read_text("tests/model/reference_encoders.json"));
    for (const auto& [kind, numbers] : expected.items()) {
        compare<double>(
            kind, numbers,
            config_of(numbers["config"]).reads_patches() ? 1e-6 : 1e-8);  // patches are given as floats
        compare<float>(kind, numbers, 2e-5);
    }
}
