#include "train/step/learner.h"

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "model/trace/row_room.h"

namespace linnet {
namespace {

/// The start of every parameter in a graph.
std::vector<ParameterStart> starts_of(const Graph& graph, const LearnerStart& start) {
    std::vector<ParameterStart> all;
    std::size_t own = 0;
    for (const Parameter& p : graph.parameters()) {
        ParameterStart& s = all.emplace_back();
        if (p.adapter == none && !start.own.empty()) s = start.own[own++];
        if (p.adapter == none || start.adapter_rates.empty()) continue;
        const std::vector<AdapterTarget>& targets = start.adapters[0].targets;
        for (std::size_t i = 0; i < targets.size(); i++) {
            bool its = p.name == targets[i].tensor + lora_a;
            for (const std::string& part : targets[i].parameters) its |= p.name == part + lora_b;
            if (its) s.rate = start.adapter_rates[i];
        }
    }
    return all;
}

/// As the optimizer takes them.
std::vector<double> rates_of(const std::vector<ParameterStart>& starts) {
    std::vector<double> rates;
    for (const ParameterStart& s : starts) rates.push_back(s.trained ? s.rate : 0);
    return rates;
}

std::size_t element_bytes(const Graph& graph, const std::vector<ParameterStart>& starts) {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < starts.size(); i++)
        if (starts[i].trained) n += padded(graph.parameters()[i].shape.count());
    return static_cast<std::size_t>(n) * sizeof(float);
}

Lowering lowering(const Graph& graph, Phase phase, std::int64_t rows, const ModelConfig& config,
                  const std::vector<ParameterStart>& starts, const LearnerNumbers& numbers) {
    Lowering l;
    l.phase = phase;
    l.capacity = capacities(graph, {.tokens = rows, .outputs = rows, .beside = rows});
    l.positions = std::min(config.context, rows);  // a sequence is no longer
    l.products = numbers.products;
    if (phase == Phase::train) {
        l.activation = numbers.activation;
        l.recompute = numbers.recompute;
    }
    for (const ParameterStart& start : starts) {
        l.trained.push_back(start.trained);
        l.stored.push_back(start.trained ? DType::f32 : start.stored.type);
    }
    return l;
}
Plan learning_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config,
                   const std::vector<ParameterStart>& starts, const LearnerNumbers& numbers) {
    return make_plan(m.graph, m.graph.program("loss"),
                     lowering(m.graph, Phase::train, rows, config, starts, numbers));
}
Plan evaluation_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config,
                     const std::vector<ParameterStart>& starts, const LearnerNumbers& numbers) {
    return make_plan(m.graph, m.graph.program("score"),
                     lowering(m.graph, Phase::read, rows, config, starts, numbers));
}

}  // namespace

TracedModel training_graph(const ModelConfig& config, const LearnerStart& start) {
    return start.generator ? trace_with_generator(config, start.adapters, *start.generator)
                           : trace(config, true, start.adapters);
}

std::size_t Learner::bytes(const ModelConfig& config, std::int64_t rows, int threads,
                           const std::vector<ParameterGroup>& groups, const LearnerStart& start,
                           const LearnerNumbers& numbers) {
    TracedModel m = training_graph(config, start);
    const std::vector<ParameterStart> starts = starts_of(m.graph, start);
    Plan learn = learning_plan(m, rows, config, starts, numbers),
         evaluate = evaluation_plan(m, rows, config, starts, numbers);
    return 2 * element_bytes(m.graph, starts) +
           Optimizer::bytes(m.graph, groups, threads, rates_of(starts), numbers.products) +
           Executor<float>::bytes(m.graph, {&learn, &evaluate}, threads);
}

Learner::Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed,
                 const std::vector<ParameterGroup>& groups, const LearnerStart& start,
                 const LearnerNumbers& numbers)
    : traced_(training_graph(config, start)),
      groups_(groups),
      threads_(threads),
      starts_(starts_of(traced_.graph, start)) {
    if (start.generator) {
        const std::vector<NodeId>& made = traced_.graph.program("replaced").roots;
        generator_loss_ = made[0], made_targets_ = made[1];
    }
    std::int64_t elements = 0;
    for (std::size_t p = 0; p < starts_.size(); p++) {
        offsets_.push_back(starts_[p].trained ? elements : -1);
        if (starts_[p].trained) elements += padded(traced_.graph.parameters()[p].shape.count());
    }
    std::size_t bytes = element_bytes(traced_.graph, starts_);
    for (Arena* arena : {&values_, &gradients_}) *arena = allocate_arena(bytes, "weights and gradients");
    optimizer_.emplace(traced_.graph, groups, threads, rates_of(starts_), numbers.products);
    initialise(seed);
    Plan learn = learning_plan(traced_, rows, config, starts_, numbers),
         evaluate = evaluation_plan(traced_, rows, config, starts_, numbers);
    Binding<float> binding;
    binding.parameters = parameters();
    binding.tables = std::make_shared<Tables<float>>();
    binding.memory = make_run_memory<float>(traced_.graph, {&learn, &evaluate}, threads);
    evaluator_.emplace(traced_.graph, std::move(evaluate), binding, threads);
    for (std::int64_t offset : offsets_)
        binding.gradients.push_back(offset < 0 ? nullptr : static_cast<float*>(gradients_.get()) + offset);
    learner_.emplace(traced_.graph, std::move(learn), binding, threads);
    for (const auto& [layer, bounds] : traced_.expert_bounds)
        use_.push_back(
            {layer, std::vector<std::int64_t>(static_cast<std::size_t>(config.experts_at(layer)))});
}

std::vector<Tensor> Learner::parameters() const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < offsets_.size(); i++) {
        tensors.push_back(starts_[i].stored);
        if (trains(i))
            tensors.back() = {static_cast<float*>(values_.get()) + offsets_[i], DType::f32,
                              traced_.graph.parameters()[i].shape};
    }
    return tensors;
}

bool Learner::finite() const {
    for (std::size_t i = 0; i < offsets_.size(); i++) {
        if (!trains(i)) continue;
        const float* values = static_cast<const float*>(values_.get()) + offsets_[i];
        // Counted to the end: the compiler makes no vectors of a loop that may stop at any value.
        if (std::count_if(values, values + traced_.graph.parameters()[i].shape.count(),
                          [](float v) { return !std::isfinite(v); }) > 0)
            return false;
    }
    return true;
}

std::int64_t Learner::trained_count() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < offsets_.size(); i++)
        if (trains(i)) count += traced_.graph.parameters()[i].shape.count();
    return count;
}

void Learner::initialise(std::uint64_t seed) {
    constexpr std::uint64_t stream = 0x77656967687473;  // "weights"; the parameter's number is added
    run_team(threads_, [&](Worker worker) {
        for (std::size_t i = 0; i < offsets_.size(); i++) {
            const Parameter& p = traced_.graph.parameters()[i];
            if (!trains(i)) continue;
            auto* to = static_cast<float*>(values_.get()) + offsets_[i];
            const Range range = worker.share(p.shape.count(), 1024);  // whole blocks of every type
            if (const Tensor& from = starts_[i].stored; from.data) {
                kernels().load(
                    range.size(), from.type,
                    static_cast<const std::byte*>(from.data) + stored_bytes(from.type, range.begin),
                    to + range.begin);
                continue;
            }
            Rng rng(seed, stream + i);
            for (std::int64_t k = range.begin; k < range.end; k += 2) {
                std::array<double, 2> noise{};
                if (p.init_std > 0) noise = rng.normals(static_cast<std::uint64_t>(k / 2));
                to[k] = static_cast<float>(p.start(k, noise[0]));
                if (k + 1 < range.end) to[k + 1] = static_cast<float>(p.start(k + 1, noise[1]));
            }
        }
    });
}

double Learner::summed(const Executor<float>& executor, NodeId node) {
    const float* rows = executor.value(node);
    double sum = 0;
    const std::int64_t count = executor.rows(executor.graph().node(node).space);
    for (std::int64_t r = 0; r < count; r++) sum += rows[r];
    return sum;
}

void Learner::add_generator_loss(const Executor<float>& executor) {
    if (generator_loss_ == none) return;
    generator_nats_ += summed(executor, generator_loss_);
    generator_rows_ += executor.rows(executor.graph().node(generator_loss_).space);
}

double Learner::learn(const Batch& batch) {
    learner_->run(batch);
    add_generator_loss(*learner_);
    if (traced_.next_loss != none) next_loss_ += summed(*learner_, traced_.next_loss) * batch.sequence_scale;
    for (NodeId node : traced_.router_losses)
        router_loss_ += summed(*learner_, node) * batch.step_share /
                        static_cast<double>(learner_->rows(learner_->graph().node(node).space));
    for (std::size_t i = 0; i < traced_.expert_bounds.size(); i++) {
        const auto* bounds =
            reinterpret_cast<const std::int32_t*>(learner_->value(traced_.expert_bounds[i].second));
        for (std::size_t e = 0; e < use_[i].choices.size(); e++)
            use_[i].choices[e] += bounds[e + 1] - bounds[e];
    }
    return summed(*learner_, traced_.loss);
}

double Learner::take_router_loss() {
    return std::exchange(router_loss_, 0);
}

double Learner::take_generator_loss() {
    const auto rows = static_cast<double>(std::max<std::int64_t>(1, std::exchange(generator_rows_, 0)));
    return std::exchange(generator_nats_, 0) / rows;
}

double Learner::take_next_loss() {
    return std::exchange(next_loss_, 0);
}

std::vector<ExpertUse> Learner::take_expert_use() {
    std::vector<ExpertUse> taken = use_;
    for (ExpertUse& layer : use_) std::fill(layer.choices.begin(), layer.choices.end(), 0);
    return taken;
}

double Learner::evaluate(const Batch& batch) {
    evaluator_->run(batch);
    add_generator_loss(*evaluator_);
    return summed(*evaluator_, traced_.loss);
}

std::span<const float> Learner::scored(NodeId wanted) const {
    const auto& roots = traced_.graph.program("score").roots;
    if (wanted == none || std::find(roots.begin(), roots.end(), wanted) == roots.end()) return {};
    const Node& node = traced_.graph.node(wanted);
    return {evaluator_->value(wanted), static_cast<std::size_t>(evaluator_->rows(node.space) * node.width)};
}

std::span<const std::int32_t> Learner::class_targets(const Batch& batch) const {
    if (made_targets_ == none) return batch.targets;
    const auto* made = reinterpret_cast<const std::int32_t*>(evaluator_->value(made_targets_));
    return {made, batch.outputs.size()};
}

StepResult Learner::update(const TrainConfig& config, std::int64_t step, StepOptions options) {
    options.step = step, options.span = rate_span(config), options.clip = config.clip;
    StepResult result = optimizer_->step(groups_, options, static_cast<float*>(values_.get()),
                                         static_cast<float*>(gradients_.get()));
    for (const auto& [parameter, most] : traced_.upper_bounds) {
        const auto i = static_cast<std::size_t>(parameter);
        if (!result.applied || !trains(i)) continue;
        float* values = static_cast<float*>(values_.get()) + offsets_[i];
        const std::int64_t count = traced_.graph.parameters()[i].shape.count();
        for (std::int64_t k = 0; k < count; k++) values[k] = std::min(values[k], most);
    }
    return result;
}

}  // namespace linnet
