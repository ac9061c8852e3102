// A model in training: float parameters with their gradients and optimizer, and the plans that run it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "graph/executor.h"
#include "model/trace.h"
#include "train/config.h"
#include "train/precision.h"
#include "train/optimize/optimizer.h"

namespace linnet {

/// How often tokens chose each expert of a layer.
struct ExpertUse {
    std::int64_t layer;
    std::vector<std::int64_t> choices;
};

class Learner {
  public:
    /// Rows is the capacity of a micro-batch. Parameters start at their initial values, drawn from `seed`.
    /// `groups`: of groups_of(). Error(Exit::input) for a group that matches no parameter.
    Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed,
            const std::vector<ParameterGroup>& groups, const LearnerNumbers& numbers = {});

    /// Adds the batch's gradients (scaled by Batch::loss_scale) and returns the summed loss of its targets,
    /// in nats; without those of routers, which take_router_loss() tells.
    double learn(const Batch& batch);
    /// learn() without a result, one step of the plan after another, calling `see` after each.
    void watch(const Batch& batch, const std::function<void(const Executor<float>::Watched&)>& see) {
        learner_->watch(batch, see);
    }
    /// The routers' losses, times Batch::loss_scale, of what was learned since this was asked last.
    double take_router_loss();
    /// What learn() has counted since this was asked last: one entry for each layer with experts.
    std::vector<ExpertUse> take_expert_use();
    /// The summed loss alone.
    double evaluate(const Batch& batch);
    /// One step of the optimizer on the gradients gathered, which are then zero; optimize/optimizer.h tells
    /// when it is not taken. `step` counts from 1.
    StepResult update(const TrainConfig& config, std::int64_t step, StepOptions options = {});

    const TracedModel& traced() const { return traced_; }
    const Plan& plan() const { return learner_->plan(); }
    std::vector<Tensor> parameters() const { return bound(values_); }
    std::int64_t parameter_count() const { return traced_.graph.parameter_count(); }

    Optimizer& optimizer() { return *optimizer_; }

    /// Bytes that a Learner of this config takes.
    static std::size_t bytes(const ModelConfig& config, std::int64_t rows, int threads,
                             const std::vector<ParameterGroup>& groups, const LearnerNumbers& numbers = {});

  private:
    std::vector<Tensor> bound(const Arena& memory) const;
    void initialise(std::uint64_t seed);
    static double summed(const Executor<float>& executor, NodeId node, const Batch& batch);

    TracedModel traced_;
    int threads_;
    std::int64_t elements_ = 0;
    std::vector<std::int64_t> offsets_;  // of each parameter
    Arena values_, gradients_;
    std::optional<Optimizer> optimizer_;
    std::vector<ExpertUse> use_;
    double router_loss_ = 0;
    std::optional<Executor<float>> learner_, evaluator_;
};

}  // namespace linnet
