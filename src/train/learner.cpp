#include "train/learner.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/rng.h"

namespace linnet {
namespace {

constexpr std::int64_t chunk_elements = 1
                                        << 14;  // 64 KiB of each of p, g, m, v: together they fit a core's L2

std::int64_t padded(std::int64_t n) {
    return (n + 15) / 16 * 16;
}

std::size_t element_bytes(const Graph& graph) {
    std::int64_t n = 0;
    for (const Parameter& p : graph.parameters()) n += padded(p.shape.count());
    return static_cast<std::size_t>(n) * sizeof(float);
}

Lowering lowering(Phase phase, std::int64_t rows, const ModelConfig& config) {
    Lowering l;
    l.phase = phase;
    l.capacity = {rows, rows, rows};  // rows, those with a loss of their own, and those of a source
    l.positions = config.context;
    return l;
}
Plan learning_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config) {
    return make_plan(m.graph, m.graph.program("loss"), lowering(Phase::train, rows, config));
}
Plan evaluation_plan(const TracedModel& m, std::int64_t rows, const ModelConfig& config) {
    return make_plan(m.graph, m.graph.program("score"), lowering(Phase::read, rows, config));
}

}  // namespace

std::size_t Learner::bytes(const ModelConfig& config, std::int64_t rows, int threads) {
    TracedModel m = trace(config, true);
    Plan learn = learning_plan(m, rows, config), evaluate = evaluation_plan(m, rows, config);
    return 4 * element_bytes(m.graph) + Executor<float>::bytes(m.graph, {&learn, &evaluate}, threads);
}

Learner::Learner(const ModelConfig& config, std::int64_t rows, int threads, std::uint64_t seed)
    : traced_(trace(config, true)), threads_(threads) {
    for (const Parameter& p : traced_.graph.parameters()) {
        offsets_.push_back(elements_);
        std::int64_t n = p.shape.count();
        for (std::int64_t i = 0; i < n; i += chunk_elements)
            chunks_.push_back({elements_ + i, std::min(chunk_elements, n - i), p.decay()});
        elements_ += padded(n);
    }
    std::size_t bytes = element_bytes(traced_.graph);
    for (Arena* arena : {&values_, &gradients_, &first_, &second_}) *arena = allocate_arena(bytes);
    initialise(seed);
    Plan learn = learning_plan(traced_, rows, config), evaluate = evaluation_plan(traced_, rows, config);
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

double Learner::summed(const Executor<float>& executor, NodeId node) {
    const float* rows = executor.value(node);
    double sum = 0;
    const std::int64_t count = executor.rows(executor.graph().node(node).space);
    for (std::int64_t r = 0; r < count; r++) sum += rows[r];
    return sum;
}

double Learner::learn(const Batch& batch) {
    learner_->run(batch);
    for (NodeId node : traced_.router_losses) router_loss_ += summed(*learner_, node) * batch.loss_scale;
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

std::vector<ExpertUse> Learner::take_expert_use() {
    std::vector<ExpertUse> taken = use_;
    for (ExpertUse& layer : use_) std::fill(layer.choices.begin(), layer.choices.end(), 0);
    return taken;
}

double Learner::evaluate(const Batch& batch) {
    evaluator_->run(batch);
    return summed(*evaluator_, traced_.loss);
}

double Learner::update(const TrainConfig& config, double learning_rate, std::int64_t step) {
    auto *values = static_cast<float*>(values_.get()), *gradients = static_cast<float*>(gradients_.get());
    const KernelTable<float>& k = kernels();
    std::vector<double> squares(chunks_.size());
    double norm = 0;
    AdamW<float> settings{};
    settings.lr = static_cast<float>(learning_rate);
    settings.beta1 = static_cast<float>(config.optimizer.beta1);
    settings.beta2 = static_cast<float>(config.optimizer.beta2);
    settings.epsilon = static_cast<float>(config.optimizer.epsilon);
    settings.correction1 =
        static_cast<float>(1 - std::pow(config.optimizer.beta1, static_cast<double>(step)));
    settings.correction2 =
        static_cast<float>(1 - std::pow(config.optimizer.beta2, static_cast<double>(step)));
    // Parts of about a tenth of a millisecond: chunks are apart from each other.
    const int each = static_cast<int>(std::clamp<std::size_t>(chunks_.size() / 16, 1, 16));
    auto chunks_of = [&](Worker part) { return part.share(static_cast<std::int64_t>(chunks_.size())); };
    auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    run_stages(threads_, [&](StageWalker& walker) {
        auto measure = [&](Worker part) {
            Range range = chunks_of(part);
            for (std::int64_t i = range.begin; i < range.end; i++)
                squares[at(i)] = k.sum_squares(chunks_[at(i)].size, gradients + chunks_[at(i)].begin);
        };
        auto step_chunks = [&](Worker part) {
            double sum = 0;  // every part adds all chunks in the same order
            for (double square : squares) sum += square;
            double total = std::sqrt(sum);
            if (part.index == 0) norm = total;
            bool clip = config.clip > 0 && total > config.clip;
            AdamW<float> a = settings;
            a.gradient_scale = clip ? static_cast<float>(config.clip / total) : 1.0f;
            Range range = chunks_of(part);
            for (std::int64_t i = range.begin; i < range.end; i++) {
                const Chunk& c = chunks_[at(i)];
                a.weight_decay = c.decay ? static_cast<float>(config.optimizer.weight_decay) : 0.0f;
                if (std::isfinite(total))
                    k.adamw(c.size, a, gradients + c.begin, values + c.begin, first_moment() + c.begin,
                            second_moment() + c.begin);
                std::memset(gradients + c.begin, 0, static_cast<std::size_t>(c.size) * sizeof(float));
            }
        };
        if (!walker.stage(each, measure) || !walker.stage(each, step_chunks)) return;
    });
    return norm;
}

}  // namespace linnet
