#include "train/optimize/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "model/architectures.h"

namespace linnet {
namespace {

// 64 KiB of each of p, g, m, v: together they fit a core's L2.
constexpr std::int64_t chunk_elements = std::int64_t{1} << 14;

// Multiply-adds of a product: up to here (width 512) one member takes a whole matrix through all its stages:
// parts of smaller products are packed anew by each, and the team waits for its last. (384 × 384 and 384 ×
// 1024, two threads of Emerald Rapids: 176 ms a step instead of 280.)
constexpr std::int64_t most_alone = std::int64_t{1} << 28;

std::size_t at_index(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Bytes that a member needs for the products of a matrix.
std::size_t product_workspace(ProductKernel products) {
    return (panel_product(kernels(), products).workspace + 63) / 64 * 64;
}

/// "blk.3" of "blk.3.attn_q.weight", "enc.blk.3" of an encoder's, else the name without its suffix.
std::string block_of(const std::string& name) {
    if (const std::size_t at = name.find("blk."); at != name.npos)
        return name.substr(0, name.find('.', at + 4));
    return name.substr(0, name.rfind('.'));
}

bool orthogonalised(const OptimizerKind& kind, const Parameter& p) {
    return kind.orthogonalises && p.shape.rank > 1 && !parts_of(p.name).layer.empty();
}

}  // namespace

struct Optimizer::Running {
    const std::vector<ParameterGroup>& groups;
    const StepOptions& options;
    float *values, *gradients;
    double norm = 0;
    bool applied = false;
    float gradient_scale = 1;

    CurrentRate rate(std::size_t group) const {
        return {group_rate(groups[group], options.span, options.step - 1),
                group_rate_share(groups[group], options.span, options.step - 1)};
    }
};

Optimizer::Optimizer(const Graph& graph, const std::vector<ParameterGroup>& groups,
                     const std::vector<double>& rates, LayoutOnly) {
    const std::vector<std::size_t> group_of = assign_groups(groups, graph, "");
    std::map<std::string, std::size_t> blocks;
    std::int64_t begin = 0;
    std::vector<int> moments;  // of each parameter; -1: it is not trained
    for (std::size_t i = 0; i < group_of.size(); i++) {
        const Parameter& p = graph.parameters()[i];
        moments.push_back(-1);
        if (!rates.empty() && rates[i] == 0) continue;
        const OptimizerConfig& config = groups[group_of[i]].optimizer;
        const OptimizerKind& wanted = optimizer_kind(config.kind);
        const bool matrix = orthogonalised(wanted, p);
        Chunk like;
        like.kind = wanted.orthogonalises && !matrix ? &optimizer_kind("adamw") : &wanted;
        if (!rates.empty()) like.rate = rates[i];
        like.group = group_of[i], like.decays = p.decay(), like.in_matrix = matrix;
        auto [block, is_new] = blocks.try_emplace(block_of(p.name), block_names_.size());
        if (is_new) block_names_.push_back(block->first);
        like.block = block->second;
        moments.back() = moments_of(*like.kind, config);
        if (moments.back() > 0) like.first = state_elements_, state_elements_ += padded(p.shape.count());
        add_parameter(p, begin, like, matrix);
        begin += padded(p.shape.count());
    }
    // Second moments stand behind all first ones.
    std::size_t chunk = 0;
    for (std::size_t i = 0; i < group_of.size(); i++) {
        if (moments[i] < 0) continue;
        const std::int64_t count = graph.parameters()[i].shape.count(), first = state_elements_;
        for (std::int64_t done = 0; done < count; done += chunks_[chunk++].size)
            if (moments[i] > 1) chunks_[chunk].second = first + done;
        if (moments[i] > 1) state_elements_ += padded(count);
    }
    direction_squares_.resize(chunks_.size());
}

void Optimizer::add_parameter(const Parameter& p, std::int64_t begin, Chunk like, bool matrix) {
    // A matrix may be stored as several, one after another.
    const std::int64_t count = p.shape.count(), parts = matrix && p.parts > 0 ? p.parts : 1;
    const std::int64_t each = count / parts, first_moment = like.first;
    for (std::int64_t part = 0; part < parts; part++) {
        const std::size_t first = chunks_.size();
        for (std::int64_t i = 0; i < each; i += chunk_elements) {
            like.begin = begin + part * each + i, like.size = std::min(chunk_elements, each - i);
            if (first_moment >= 0) like.first = first_moment + part * each + i;
            chunks_.push_back(like);
        }
        if (!matrix) continue;
        const std::int64_t rows = p.shape.dim[0] / parts, columns = p.shape.dim[1];
        const bool alone = each * std::min(rows, columns) <= most_alone;
        matrices_.push_back({rows, columns, first, chunks_.size(), alone});
        std::int64_t& scratch = alone ? scratch_alone_ : scratch_shared_;
        scratch = std::max(scratch, padded(padded(each) + Orthogonaliser::scratch(rows, columns)));
    }
}

Optimizer::Optimizer(const Graph& graph, const std::vector<ParameterGroup>& groups, int threads,
                     const std::vector<double>& rates, ProductKernel products)
    : Optimizer(graph, groups, rates, LayoutOnly()) {
    threads_ = threads, products_ = products;
    state_ =
        allocate_arena(static_cast<std::size_t>(state_elements_) * sizeof(float), "the optimizer's state");
    if (matrices_.empty()) return;
    std::stable_partition(matrices_.begin(), matrices_.end(), [](const Matrix& m) { return m.alone; });
    scratch_ = allocate_arena(scratch_bytes(threads), "the optimizer's scratch");
    workspace_bytes_ = product_workspace(products);
    workspaces_ = allocate_arena(workspace_bytes_ * static_cast<std::size_t>(threads));
}

std::size_t Optimizer::state_bytes(const Graph& graph, const std::vector<ParameterGroup>& groups,
                                   const std::vector<double>& rates) {
    const Optimizer layout(graph, groups, rates, LayoutOnly());
    return static_cast<std::size_t>(layout.state_elements_) * sizeof(float);
}

std::size_t Optimizer::bytes(const Graph& graph, const std::vector<ParameterGroup>& groups, int threads,
                             const std::vector<double>& rates, ProductKernel products) {
    const Optimizer layout(graph, groups, rates, LayoutOnly());
    std::size_t all = static_cast<std::size_t>(layout.state_elements_) * sizeof(float);
    if (!layout.matrices_.empty())
        all +=
            layout.scratch_bytes(threads) + product_workspace(products) * static_cast<std::size_t>(threads);
    return all;
}

StepResult Optimizer::step(const std::vector<ParameterGroup>& groups, const StepOptions& options,
                           float* values, float* gradients) {
    Running run{groups, options, values, gradients};
    // Parts of about a tenth of a millisecond: chunks are apart from each other.
    const int each = static_cast<int>(std::clamp<std::size_t>(chunks_.size() / 16, 1, 16));
    run_stages(threads_, [&](StageWalker& walker) {
        if (!walker.stage(each, [&](Worker part) { measure(run, part); })) return;
        if (!walker.stage(each, [&](Worker part) { step_chunks(run, part); })) return;
        const auto shared = std::ranges::find(matrices_, false, &Matrix::alone);
        const std::int64_t alone = shared - matrices_.begin();
        auto take_alone = [&](Worker part) {
            const Range range = part.share(alone);
            for (std::int64_t i = range.begin; run.applied && i < range.end; i++)
                step_alone(run, matrices_[at_index(i)], walker.index());
        };
        const int parts = static_cast<int>((alone + threads_ - 1) / threads_);
        if (alone > 0 && !walker.stage(parts, take_alone)) return;
        for (auto matrix = shared; matrix != matrices_.end(); ++matrix)
            if (!step_together(run, *matrix, walker)) return;
    });
    return {run.norm, run.applied, options.watch ? block_steps() : std::vector<BlockStep>()};
}

void Optimizer::measure(const Running& run, Worker part) {
    Range range = part.share(static_cast<std::int64_t>(chunks_.size()));
    for (std::int64_t i = range.begin; i < range.end; i++) {
        Chunk& c = chunks_[at_index(i)];
        c.square = kernels().sum_squares(c.size, run.gradients + c.begin);
    }
}

Update<float> Optimizer::update_for(const Running& run, const Chunk& c) const {
    return update_of(*c.kind, run.groups[c.group].optimizer, c.decays, c.rate, run.rate(c.group),
                     run.options.step);
}

void Optimizer::step_chunks(Running& run, Worker part) {
    double sum = 0;  // every part adds all chunks in the same order
    for (const Chunk& c : chunks_) sum += c.square;
    const double norm = std::sqrt(sum);
    const bool applied = std::isfinite(norm) && norm <= run.options.skip_above;
    const bool clip = run.options.clip > 0 && norm > run.options.clip;
    const float scale = clip ? static_cast<float>(run.options.clip / norm) : 1.0f;
    if (part.index == 0) run.norm = norm, run.applied = applied, run.gradient_scale = scale;
    Range range = part.share(static_cast<std::int64_t>(chunks_.size()));
    for (std::int64_t i = range.begin; i < range.end; i++) {
        Chunk& c = chunks_[at_index(i)];
        if (applied && c.in_matrix) continue;  // its own stages follow
        if (applied) {
            Update<float> update = update_for(run, c);
            update.gradient_scale = scale;
            take(run, c, update, run.gradients + c.begin, at(c.first), at(c.second));
        }
        std::memset(run.gradients + c.begin, 0, at_index(c.size) * sizeof(float));
    }
}

/// Takes the update; where the step is watched, also its size.
void Optimizer::take(const Running& run, Chunk& c, const Update<float>& update, const float* gradient,
                     float* m, float* v) {
    const KernelTable<float>& k = kernels();
    float* p = run.values + c.begin;
    if (!run.options.watch) return k.update(c.size, update, gradient, p, m, v);
    std::vector<float> before(p, p + c.size);
    c.weight = k.sum_squares(c.size, before.data());
    k.update(c.size, update, gradient, p, m, v);
    k.scale(c.size, -1, before.data(), before.data());
    k.add(c.size, p, before.data(), before.data());
    c.update = k.sum_squares(c.size, before.data());
}

/// The direction before it is made orthogonal: the momentum's, with nesterov a step ahead. The kernel
/// subtracts -1 times it from 0.
void Optimizer::gather_momentum(const Running& run, const Matrix& matrix, float* direction, Worker part) {
    const std::int64_t first = chunks_[matrix.first].begin;
    Range range = part.share(static_cast<std::int64_t>(matrix.last - matrix.first));
    for (std::int64_t i = range.begin; i < range.end; i++) {
        const std::size_t at_chunk = matrix.first + at_index(i);
        Chunk& c = chunks_[at_chunk];
        Update<float> update = update_for(run, c);
        update.lr = -1, update.weight_decay = 0, update.cautious = false;
        update.gradient_scale = run.gradient_scale;
        float *to = direction + (c.begin - first), *gradient = run.gradients + c.begin;
        std::memset(to, 0, at_index(c.size) * sizeof(float));
        kernels().update(c.size, update, gradient, to, at(c.first), nullptr);
        std::memset(gradient, 0, at_index(c.size) * sizeof(float));
        direction_squares_[at_chunk] = kernels().sum_squares(c.size, to);
    }
}

void Optimizer::normalise(const Matrix& matrix, float* direction, Worker part) {
    double sum = 0;
    for (std::size_t i = matrix.first; i < matrix.last; i++) sum += direction_squares_[i];
    const auto factor = static_cast<float>(1 / (std::sqrt(sum) + 1e-7));
    Range range = part.share(matrix.rows * matrix.columns, 1024);
    kernels().scale(range.size(), factor, direction + range.begin, direction + range.begin);
}

/// Liu et al. 2025, "Muon is scalable for LLM training", section 2.2: times 0.2 · √max(rows, columns) the
/// update's root mean square is what AdamW's usually is, so one rate and one decay serve both.
void Optimizer::apply(const Running& run, const Matrix& matrix, const float* direction, Worker part) {
    const std::int64_t first = chunks_[matrix.first].begin;
    Range range = part.share(static_cast<std::int64_t>(matrix.last - matrix.first));
    for (std::int64_t i = range.begin; i < range.end; i++) {
        Chunk& c = chunks_[matrix.first + at_index(i)];
        Update<float> update = update_for(run, c);
        update.gradient_scale =
            static_cast<float>(0.2 * std::sqrt(static_cast<double>(std::max(matrix.rows, matrix.columns))));
        take(run, c, update, direction + (c.begin - first), nullptr, nullptr);
    }
}

Orthogonaliser Optimizer::orthogonaliser(const Matrix& matrix, float* direction) const {
    return {matrix.rows, matrix.columns, direction, direction + padded(matrix.rows * matrix.columns),
            panel_product(kernels(), products_)};
}

void Optimizer::step_alone(const Running& run, const Matrix& matrix, int member) {
    const Worker all;
    float* const direction = scratch() + scratch_alone_ * member;
    gather_momentum(run, matrix, direction, all);
    normalise(matrix, direction, all);
    const Orthogonaliser orthogonal = orthogonaliser(matrix, direction);
    for (int i = 0; i < Orthogonaliser::stages; i++) orthogonal.run(i, all, workspace(member));
    apply(run, matrix, orthogonal.result(), all);
}

bool Optimizer::step_together(const Running& run, const Matrix& matrix, StageWalker& walker) {
    const Orthogonaliser orthogonal = orthogonaliser(matrix, scratch());
    auto stage = [&](auto&& work) {
        return walker.stage(1, [&](Worker part) {
            if (run.applied) work(part);
        });
    };
    if (!stage([&](Worker part) { gather_momentum(run, matrix, scratch(), part); })) return false;
    if (!stage([&](Worker part) { normalise(matrix, scratch(), part); })) return false;
    void* const room = workspace(walker.index());
    for (int i = 0; i < Orthogonaliser::stages; i++)
        if (!stage([&](Worker part) { orthogonal.run(i, part, room); })) return false;
    return stage([&](Worker part) { apply(run, matrix, orthogonal.result(), part); });
}

std::vector<BlockStep> Optimizer::block_steps() const {
    std::vector<BlockStep> blocks;
    for (const std::string& name : block_names_) blocks.push_back({name});
    for (const Chunk& c : chunks_) {
        BlockStep& block = blocks[c.block];
        block.gradient += c.square, block.update += c.update, block.weight += c.weight;
    }
    for (BlockStep& block : blocks)
        for (double* square : {&block.gradient, &block.update, &block.weight}) *square = std::sqrt(*square);
    return blocks;
}

}  // namespace linnet
