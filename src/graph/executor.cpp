#include "graph/executor.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace linnet {

namespace {

std::string constant_key(const Graph& graph, const Node& node) {
    Graph::Shapes s = graph.shapes(node);
    return std::string(node.op->name) + " " + node.attributes.text() + " " + std::to_string(s.in.at(0));
}

template <class Visit>
void each_constant(const Graph& graph, const Plan& plan, Visit visit) {
    std::map<std::string, std::size_t> seen;
    for (std::size_t i = 0; i < plan.steps.size(); i++) {
        const Node& node = graph.node(plan.steps[i].node);
        if (!node.op->constants) continue;
        auto [place, fresh] = seen.try_emplace(constant_key(graph, node), seen.size());
        visit(i, node, place->second, fresh);
    }
}

std::vector<double> constants_of(const Graph& graph, const Node& node) {
    Graph::Shapes s = graph.shapes(node);
    return node.op->constants({s.in, s.parameters, node.attributes});
}

template <class Real>
std::size_t workspace_bytes() {
    const KernelTable<Real>& k = kernels_for<Real>();
    return (std::max(k.gemm_workspace, k.attention_workspace) + 4095) / 4096 * 4096;
}

/// Of a member's workspace, what the products of this plan will touch: panels no larger than their matrices.
/// (Memory that is never touched is never given by the operating system.)
template <class Real>
std::size_t touched_workspace(const Graph& graph, const Plan& plan) {
    const KernelTable<Real>& kernels = kernels_for<Real>();
    std::int64_t most = 0;
    auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        most = std::max(most, std::min(k, kernels.gemm_block_k) *
                                  (std::min(m, kernels.gemm_block_m) + std::min(n, kernels.gemm_block_n)));
    };
    for (const PlanStep& step : plan.steps)
        for (ParameterId id : graph.node(step.node).parameters) {
            const Shape& w = graph.parameters()[static_cast<std::size_t>(id)].shape;
            if (w.rank != 2 || graph.node(step.node).inputs.empty()) continue;
            std::int64_t rows = plan.options.rows, out = w.dim[0], in = w.dim[1];
            product(rows, out, in);
            if (step.phase == Phase::backward) product(rows, in, out), product(out, in, rows);
        }
    return static_cast<std::size_t>(most) * sizeof(Real) + kernels.attention_workspace;
}

}  // namespace

std::int64_t constant_count(const Graph& graph, const Plan& plan) {
    std::int64_t count = 0;
    each_constant(graph, plan, [&](std::size_t, const Node& node, std::size_t, bool fresh) {
        if (fresh) count += static_cast<std::int64_t>(constants_of(graph, node).size());
    });
    return count;
}

template <class Real>
std::size_t Executor<Real>::bytes(const Graph& graph, const Plan& plan, int threads) {
    return static_cast<std::size_t>(plan.arena_size + constant_count(graph, plan)) * sizeof(Real) +
           std::min(touched_workspace<Real>(graph, plan), workspace_bytes<Real>()) *
               static_cast<std::size_t>(threads);
}

template <class Real>
Executor<Real>::Executor(const Graph& graph, Plan plan, Binding<Real> binding, int threads)
    : graph_(graph),
      plan_(std::move(plan)),
      binding_(std::move(binding)),
      threads_(threads),
      arena_(allocate_arena(static_cast<std::size_t>(plan_.arena_size) * sizeof(Real))),
      workspaces_(allocate_arena(workspace_bytes<Real>() * static_cast<std::size_t>(threads))),
      workspace_stride_(workspace_bytes<Real>()) {
    prepare();
}

template <class Real>
Real* Executor<Real>::at(BufferId buffer) const {
    if (buffer == none) return nullptr;
    return static_cast<Real*>(arena_.get()) + plan_.buffers[static_cast<std::size_t>(buffer)].offset;
}

template <class Real>
const Real* Executor<Real>::value(NodeId node) const {
    return at(plan_.value[static_cast<std::size_t>(node)]);
}

template <class Real>
void Executor<Real>::prepare() {
    calls_.resize(plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size(); i++) {
        const PlanStep& s = plan_.steps[i];
        const Node& node = graph_.node(s.node);
        Call<Real>& c = calls_[i];
        c.kernels = &kernels_for<Real>();
        c.attributes = &node.attributes;
        c.node = s.node;
        c.width = node.width;
        for (std::size_t k = 0; k < node.inputs.size(); k++)
            c.in_width[k] = graph_.node(node.inputs[k]).width;
        for (std::size_t k = 0; k < max_inputs; k++) {
            c.in[k] = at(s.in[k]);
            c.din[k] = at(s.din[k]);
            c.accumulate[k] = s.accumulate[k];
        }
        for (std::size_t k = 0; k < node.parameters.size(); k++) {
            auto p = static_cast<std::size_t>(node.parameters[k]);
            c.parameter[k] = binding_.parameters[p];
            if (!binding_.gradients.empty()) c.parameter_grad[k] = binding_.gradients[p];
        }
        if (!binding_.caches.empty()) c.cache = binding_.caches[static_cast<std::size_t>(s.node)];
        c.out = at(s.out), c.add = at(s.add), c.saved = at(s.saved), c.scratch = at(s.scratch),
        c.dout = at(s.dout);
    }
    each_constant(graph_, plan_, [&](std::size_t i, const Node& node, std::size_t index, bool fresh) {
        if (fresh) {
            std::vector<double> table = constants_of(graph_, node);
            constants_.emplace_back(table.begin(), table.end());
        }
        calls_[i].constants = constants_[index].data();
    });
}

namespace {

/// An op whose inputs' gradients equal its output's, where the plan could not let them share: copied or
/// added.
template <class Real>
void pass_gradient(const Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    for (std::size_t k = 0; k < max_inputs; k++) {
        if (!call.din[k] || call.din[k] == call.dout) continue;
        if (call.accumulate[k])
            call.kernels->add(i.size(), call.din[k] + i.begin, call.dout + i.begin, call.din[k] + i.begin);
        else
            std::copy(call.dout + i.begin, call.dout + i.end, call.din[k] + i.begin);
    }
}

}  // namespace

template <class Real>
void Executor<Real>::step(const PlanStep& step, const Call<Real>& prepared, const Batch& batch,
                          Worker worker) const {
    const Node& node = graph_.node(step.node);
    Call<Real> call = prepared;
    call.worker = worker;
    call.batch = &batch;
    call.rows =
        node.space == RowSpace::tokens ? batch.rows() : static_cast<std::int64_t>(batch.outputs.size());
    call.workspace = static_cast<std::byte*>(workspaces_.get()) +
                     workspace_stride_ * static_cast<std::size_t>(worker.index);
    if (step.phase == Phase::forward) return node.op->forward(call);
    if (node.op->passes_gradient) pass_gradient(call);
    node.op->backward(call);
}

template <class Real>
void Executor<Real>::run(const Batch& batch) {
    run_team(threads_, [&](Worker worker) {
        for (std::size_t i = 0; i < plan_.steps.size(); i++) {
            if (plan_.steps[i].barrier) worker.sync();
            step(plan_.steps[i], calls_[i], batch, worker);
        }
    });
}

template <class Real>
void Executor<Real>::check(const Batch& batch,
                           const std::function<void(const PlanStep&, const Real*, std::int64_t)>& see) {
    run_team(1, [&](Worker worker) {
        for (std::size_t i = 0; i < plan_.steps.size(); i++) {
            const PlanStep& s = plan_.steps[i];
            step(s, calls_[i], batch, worker);
            const Node& node = graph_.node(s.result);
            std::int64_t rows = node.space == RowSpace::tokens
                                    ? batch.rows()
                                    : static_cast<std::int64_t>(batch.outputs.size());
            see(s, at(s.phase == Phase::forward || node.op->loss ? s.out : s.din[0]), rows * node.width);
        }
    });
}

template class Executor<float>;
template class Executor<double>;

}  // namespace linnet
