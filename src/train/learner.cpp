#include "train/learner.h"

#include <utility>

#include "base/rng.h"

namespace linnet {
namespace {

std::int64_t padded(std::int64_t n) {
    return (n + 15) / 16 * 16;
}

std::size_t element_bytes(const Graph& graph) {
    std::int64_t n = 0;
    for (const Parameter& p : graph.parameters()) n += padded(p.shape.count());
    return static_cast<std::size_t>(n) * sizeof(float);
}

Lowering lowering(Phase phase, std::int64_t rows, const ModelConfig& config, const LearnerNumbers& numbers) {
    Lowering l;
    l.phase = phase;
    l.capacity = {rows};
    l.positions = config.context;
    l.products = numbers.products;
    if (phase == Phase::train) {
        l.activation = numbers.activation;
        l.recompute = numbers.recompute;
    }
    return l;
}
Plan learning_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config,
                   const LearnerNumbers& numbers) {
    return make_plan(m.graph, m.graph.program("loss"), lowering(Phase::train, rows, config, numbers));
}
Plan evaluation_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config,
                     const LearnerNumbers& numbers) {
    return make_plan(m.graph, m.graph.program("score"), lowering(Phase::read, rows, config, numbers));
}

}  // namespace

std::size_t Learner::bytes(const ModelConfig& config, std::int64_t rows, int threads,
                           const std::vector<ParameterGroup>& groups, const LearnerNumbers& numbers) {
    TracedModel m = trace(config, true);
    Plan learn = learning_plan(m, rows, config, numbers),
         evaluate = evaluation_plan(m, rows, config, numbers);
    return 2 * element_bytes(m.graph) + Optimizer::bytes(m.graph, groups, threads) +
           Executor<float>::bytes(m.graph, {&learn, &evaluate}, threads);
}

Learner::Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed,
                 const std::vector<ParameterGroup>& groups, const LearnerNumbers& numbers)
    : traced_(trace(config, true)), threads_(threads) {
    for (const Parameter& p : traced_.graph.parameters()) {
        offsets_.push_back(elements_);
        elements_ += padded(p.shape.count());
    }
    std::size_t bytes = element_bytes(traced_.graph);
    for (Arena* arena : {&values_, &gradients_}) *arena = allocate_arena(bytes);
    optimizer_.emplace(traced_.graph, groups, threads);
    initialise(seed);
    Plan learn = learning_plan(traced_, rows, config, numbers),
         evaluate = evaluation_plan(traced_, rows, config, numbers);
    Binding<float> binding;
    binding.parameters = bound(values_);
    binding.tables = std::make_shared<Tables<float>>();
    binding.memory = make_run_memory<float>(traced_.graph, {&learn, &evaluate}, threads);
    evaluator_.emplace(traced_.graph, std::move(evaluate), binding, threads);
    for (const Tensor& t : bound(gradients_)) binding.gradients.push_back(t.as<float>());
    learner_.emplace(traced_.graph, std::move(learn), binding, threads);
    for (const auto& [layer, bounds] : traced_.expert_bounds)
        use_.push_back(
            {layer, std::vector<std::int64_t>(static_cast<std::size_t>(config.experts_at(layer)))});
}

std::vector<Tensor> Learner::bound(const Arena& memory) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < offsets_.size(); i++)
        tensors.push_back({static_cast<float*>(memory.get()) + offsets_[i], DType::f32,
                           traced_.graph.parameters()[i].shape});
    return tensors;
}

void Learner::initialise(std::uint64_t seed) {
    constexpr std::uint64_t stream = 0x77656967687473;  // "weights"; the parameter's number is added
    run_team(threads_, [&](Worker worker) {
        for (std::size_t i = 0; i < offsets_.size(); i++) {
            const Parameter& p = traced_.graph.parameters()[i];
            Rng rng(seed, stream + i);
            auto* to = static_cast<float*>(values_.get()) + offsets_[i];
            Range range = worker.share(p.shape.count(), 1024);
            for (std::int64_t k = range.begin; k < range.end; k += 2) {
                std::array<double, 2> noise{};
                if (p.init_std > 0 && !p.ramp) noise = rng.normals(static_cast<std::uint64_t>(k / 2));
                to[k] = static_cast<float>(p.start(k, noise[0]));
                if (k + 1 < range.end) to[k + 1] = static_cast<float>(p.start(k + 1, noise[1]));
            }
        }
    });
}

double Learner::summed(const Executor<float>& executor, NodeId node, const Batch& batch) {
    const float* rows = executor.value(node);
    double sum = 0;
    for (std::int64_t r = 0; r < batch.rows.count; r++) sum += rows[r];
    return sum;
}

double Learner::learn(const Batch& batch) {
    learner_->run(batch);
    for (NodeId node : traced_.router_losses)
        router_loss_ += summed(*learner_, node, batch) * batch.loss_scale;
    for (std::size_t i = 0; i < traced_.expert_bounds.size(); i++) {
        const auto* bounds =
            reinterpret_cast<const std::int32_t*>(learner_->value(traced_.expert_bounds[i].second));
        for (std::size_t e = 0; e < use_[i].choices.size(); e++)
            use_[i].choices[e] += bounds[e + 1] - bounds[e];
    }
    return summed(*learner_, traced_.loss, batch);
}

double Learner::take_router_loss() {
    return std::exchange(router_loss_, 0);
}

std::vector<ExpertUse> Learner::take_expert_use() {
    std::vector<ExpertUse> taken = use_;
    for (ExpertUse& layer : use_) std::fill(layer.choices.begin(), layer.choices.end(), 0);
    return taken;
}

double Learner::evaluate(const Batch& batch) {
    evaluator_->run(batch);
    return summed(*evaluator_, traced_.loss, batch);
}

StepResult Learner::update(const TrainConfig& config, std::int64_t step, StepOptions options) {
    options.step = step, options.span = rate_span(config), options.clip = config.clip;
    return optimizer_->step(groups_of(config), options, static_cast<float*>(values_.get()),
                            static_cast<float*>(gradients_.get()));
}

}  // namespace linnet
