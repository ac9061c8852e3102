// A model in training: float parameters with their gradients and moments, and the plans that run it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/executor.h"
#include "model/trace.h"
#include "train/config.h"

namespace linnet {

/// How often tokens chose each expert of a layer.
struct ExpertUse {
    std::int64_t layer;
    std::vector<std::int64_t> choices;
};

class Learner {
  public:
    /// Rows is the capacity of a micro-batch. Parameters start at their initial values, drawn from `seed`.
    Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed);

    /// Adds the batch's gradients (scaled by Batch::loss_scale) and returns the summed loss of its targets,
    /// in nats; without those of routers, which take_router_loss() tells.
    double learn(const Batch& batch);
    /// The routers' losses, times Batch::loss_scale, of what was learned since this was asked last.
    double take_router_loss();
    /// What learn() has counted since this was asked last: one entry for each layer with experts.
    std::vector<ExpertUse> take_expert_use();
    /// The summed loss alone.
    double evaluate(const Batch& batch);
    /// One AdamW step on the gradients gathered, which are then zero. Returns their global norm before
    /// clipping; where that is not finite nothing was changed but the gradients. `step` counts from 1 (bias
    /// correction).
    double update(const TrainConfig& config, double learning_rate, std::int64_t step);

    const TracedModel& traced() const { return traced_; }
    const Plan& plan() const { return learner_->plan(); }
    std::vector<Tensor> parameters() const { return bound(values_); }
    std::int64_t parameter_count() const { return traced_.graph.parameter_count(); }

    /// The optimizer's two moments, [elements()] each, for checkpoints. Elements are the parameters in the
    /// graph's order, each padded to 16.
    float* first_moment() { return static_cast<float*>(first_.get()); }
    float* second_moment() { return static_cast<float*>(second_.get()); }
    std::int64_t elements() const { return elements_; }

    /// Bytes that a Learner of this config takes.
    static std::size_t bytes(const ModelConfig& config, std::int64_t rows, int threads);

  private:
    /// A run of one parameter's elements, small enough to stay in cache between the passes over it.
    struct Chunk {
        std::int64_t begin, size;
        bool decay;
    };
    std::vector<Tensor> bound(const Arena& memory) const;
    void initialise(std::uint64_t seed);
    static double summed(const Executor<float>& executor, NodeId node);

    TracedModel traced_;
    int threads_;
    std::int64_t elements_ = 0;
    std::vector<std::int64_t> offsets_;  // of each parameter
    std::vector<Chunk> chunks_;
    Arena values_, gradients_, first_, second_;
    std::vector<ExpertUse> use_;
    double router_loss_ = 0;
    std::optional<Executor<float>> learner_, evaluator_;
};

}  // namespace linnet
