#include "train/needs.h"

#include <algorithm>

#include "base/memory_use.h"
#include "model/trace/trace.h"
#include "train/learner.h"

namespace linnet {

std::size_t memory_with_learner(const RunSetup& setup, const RunConfig& config) {
    return current_memory() + Learner::bytes(config.model, config.train.batch * config.train.sequence,
                                             setup.threads, groups_of(config.train), setup.start.learner,
                                             numbers_of(config, setup.threads));
}

std::size_t peak_memory_of_run(const RunSetup& setup, const RunConfig& config) {
    // Measured: code and stacks that steps touch, 2 to 6 MiB, and what writes samples, as much.
    const bool samples = config.train.sample_tokens > 0 && config.model.has_decoder();
    const std::size_t beside = (samples ? std::size_t{6} : 3) << 20;
    return std::max(peak_memory(), memory_with_learner(setup, config) + beside);
}

std::size_t disk_of_run(const RunConfig& config) {
    constexpr std::size_t token = 30, step = 170, report = 500'000;  // bytes: of a vocabulary, of the log
    const Graph graph = trace(config.model, false).graph;
    const std::size_t matrices = config.train.weights == "f32" ? 4 : 2;
    const auto parameters = static_cast<std::size_t>(graph.parameter_count());
    const std::size_t vocabulary = token * static_cast<std::size_t>(config.model.vocabulary);
    // The best model, which is often the last one, the one that was the best before, and two checkpoints.
    return 2 * (matrices * parameters + vocabulary) +
           2 * (4 * parameters + vocabulary + Optimizer::state_bytes(graph, groups_of(config.train))) +
           step * static_cast<std::size_t>(config.train.steps) + report;
}

}  // namespace linnet
