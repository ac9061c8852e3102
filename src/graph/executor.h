// Runs a plan: one parallel region a run, every member of the team walking the same steps (README.md has the
// measurement behind that choice).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "graph/plan.h"

namespace linnet {

/// What differs between training and inference: how parameters are bound, and whether attention has a cache.
template <class Real>
struct Binding {
    std::vector<Tensor> parameters;   // of each parameter; vectors are Real
    std::vector<Real*> gradients;     // empty where nothing is trained
    std::vector<Cache<Real>> caches;  // of each node; empty where there is none
};

template <class Real>
class Executor {
  public:
    /// The graph must outlive the executor.
    Executor(const Graph& graph, Plan plan, Binding<Real> binding, int threads);

    void run(const Batch& batch);
    /// Serially, calling `see` after each step with the values it made (`--check`).
    void check(const Batch& batch,
               const std::function<void(const PlanStep&, const Real*, std::int64_t)>& see);

    /// The value of a node after a run: [rows of its space, width]. Only the root's outlives the run for
    /// certain.
    const Real* value(NodeId node) const;
    const Plan& plan() const { return plan_; }
    const Graph& graph() const { return graph_; }
    Binding<Real>& binding() { return binding_; }

    /// Bytes of memory that an executor of this plan comes to touch.
    static std::size_t bytes(const Graph& graph, const Plan& plan, int threads);

  private:
    void prepare();
    void step(const PlanStep& step, const Call<Real>& prepared, const Batch& batch, Worker worker) const;
    Real* at(BufferId buffer) const;

    const Graph& graph_;
    Plan plan_;
    Binding<Real> binding_;
    int threads_;
    Arena arena_, workspaces_;
    std::size_t workspace_stride_ = 0;
    std::vector<std::vector<Real>> constants_;  // one a distinct (op, attributes, widths)
    std::vector<Call<Real>> calls_;             // one a step, all but batch and worker filled in
};

/// Constants of all nodes in elements (rotary angles, sinusoids), each distinct table once.
std::int64_t constant_count(const Graph& graph, const Plan& plan);

}  // namespace linnet
