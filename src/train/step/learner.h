// A model in training: float parameters with their gradients and optimizer, and the plans that run it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/executor.h"
#include "model/trace/generator.h"
#include "train/optimize/optimizer.h"
#include "train/step/precision.h"
#include "train/task/config.h"

namespace linnet {

/// How often tokens chose each expert of a layer.
struct ExpertUse {
    std::int64_t layer;
    std::vector<std::int64_t> choices;
};

/// Where one of the model's own parameters comes from, and what becomes of it.
struct ParameterStart {
    Tensor stored;        // without data: drawn
    bool trained = true;  // false: used where it lies, in its type; there is no gradient of it
    double rate = 1;      // times the learning rate
};

/// What a run begins from where that is a model, and what stands beside the model.
struct LearnerStart {
    std::vector<ParameterStart> own{};     // of the model's parameters; empty: all are drawn and trained
    std::vector<AdapterShape> adapters{};  // at most one, which is trained
    std::vector<double> adapter_rates{};   // of its targets; empty: 1
    std::optional<GeneratorShape> generator{};
};

/// The graph that a Learner of these has. Error(Exit::input) for what a model that begins from nothing could
/// not learn.
TracedModel training_graph(const ModelConfig& config, const LearnerStart& start);

class Learner {
  public:
    /// Rows is the capacity of a micro-batch. Parameters start where `start` says, or at their initial
    /// values, drawn from `seed`. What is stored must outlive the learner. `groups`: of groups_of().
    /// Error(Exit::input) for a group that matches no parameter.
    Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed,
            const std::vector<ParameterGroup>& groups, const LearnerStart& start = {},
            const LearnerNumbers& numbers = {});

    /// Adds the batch's gradients (scaled by Batch::loss_scale) and returns the summed loss of its targets,
    /// in nats; without those of routers, sequences and generators, which have functions of their own.
    double learn(const Batch& batch);
    /// learn() without a result, one step of the plan after another, calling `see` after each.
    void watch(const Batch& batch, const std::function<void(const Executor<float>::Watched&)>& see) {
        learner_->watch(batch, see);
    }
    /// The routers' losses, means over rows times Batch::step_share, of what was learned since this was asked
    /// last.
    double take_router_loss();
    bool has_generator() const { return generator_loss_ != none; }
    /// Its loss, in nats per masked token, of what was learned or evaluated since this was asked last.
    double take_generator_loss();
    /// Likewise the loss of whether texts follow each other (model.head.next), times Batch::sequence_scale.
    double take_next_loss();
    /// What learn() has counted since this was asked last: one entry for each layer with experts.
    std::vector<ExpertUse> take_expert_use();
    /// The summed loss alone.
    double evaluate(const Batch& batch);
    /// Of a model of classes or tags: the logits [outputs, classes] of the batch evaluated last; of others
    /// nothing. Valid until the next run.
    std::span<const float> class_logits() const { return scored(traced_.logits); }
    /// The targets of these: the batch's, or those that a generator made.
    std::span<const std::int32_t> class_targets(const Batch& batch) const;
    /// Likewise [sequences, next_classes], where model.head.next is true.
    std::span<const float> next_logits() const { return scored(traced_.next_logits); }
    /// One step of the optimizer on the gradients gathered, which are then zero; optimize/optimizer.h tells
    /// when it is not taken. `step` counts from 1. Values above TracedModel::upper_bounds are set to them.
    StepResult update(const TrainConfig& config, std::int64_t step, StepOptions options = {});
    const std::vector<ParameterGroup>& groups() const { return groups_; }

    const TracedModel& traced() const { return traced_; }
    const Plan& plan() const { return learner_->plan(); }
    /// Rows of a space of the graph in the batch that was learned last.
    std::int64_t rows(SpaceId space) const { return learner_->rows(space); }
    std::vector<Tensor> parameters() const;
    std::int64_t parameter_count() const { return traced_.graph.parameter_count(); }
    std::int64_t trained_count() const;
    /// Whether the parameter with this number in the graph is trained.
    bool trains(std::size_t parameter) const { return offsets_[parameter] >= 0; }

    /// Whether all trained parameters are finite.
    bool finite() const;

    Optimizer& optimizer() { return *optimizer_; }

    /// Bytes that a Learner of this config takes.
    static std::size_t bytes(const ModelConfig& config, std::int64_t rows, int threads,
                             const std::vector<ParameterGroup>& groups, const LearnerStart& start = {},
                             const LearnerNumbers& numbers = {});

  private:
    void initialise(std::uint64_t seed);
    std::span<const float> scored(NodeId node) const;
    static double summed(const Executor<float>& executor, NodeId node);
    void add_generator_loss(const Executor<float>& executor);

    TracedModel traced_;
    std::vector<ParameterGroup> groups_;
    int threads_;
    std::vector<ParameterStart> starts_;  // of each parameter
    std::vector<std::int64_t> offsets_;   // … in the arenas; -1: not trained
    Arena values_, gradients_;
    std::optional<Optimizer> optimizer_;
    std::vector<ExpertUse> use_;
    double router_loss_ = 0, next_loss_ = 0;
    NodeId generator_loss_ = none, made_targets_ = none;  // where there is a generator
    double generator_nats_ = 0;
    std::int64_t generator_rows_ = 0;
    std::optional<Executor<float>> learner_, evaluator_;
};

}  // namespace linnet
