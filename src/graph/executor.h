// Runs a plan: every member of the team walks the same stages of it and does parts of them (README.md has the
// measurement behind that choice).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "graph/plan.h"
#include "graph/tables.h"

namespace linnet {

/// The arena and the members' workspaces, for executors that never run at the same time.
struct RunMemory {
    Arena arena, workspaces;
    std::size_t arena_bytes = 0, workspace_stride = 0;
};
/// Large enough for each of the plans.
template <class Real>
std::shared_ptr<RunMemory> make_run_memory(const Graph& graph, const std::vector<const Plan*>& plans,
                                           int threads);

/// What differs between training and inference: how parameters are bound, and whether states are kept.
template <class Real>
struct Binding {
    ById<Tensor> parameters;               // of each parameter; vectors are Real
    ById<Real*> gradients;                 // of each parameter, null: not trained; empty: nothing is
    ById<StateView> states;                // of each state; empty where the plan has none
    std::shared_ptr<Tables<Real>> tables;  // null: the executor's own
    std::shared_ptr<RunMemory> memory;     // null: the executor's own
    bool heeds_signals = false;            // run() may end early: see there
};

template <class Real>
class Executor {
  public:
    /// The graph must outlive the executor.
    Executor(const Graph& graph, Plan plan, Binding<Real> binding, int threads);

    /// Where it heeds signals: throws Stopped soon after one that asks the program to end (base/signals.h);
    /// what was made by then, states too, is of no use.
    void run(const Batch& batch);
    /// A step that has run by itself: its arguments, what it made (empty where that is nothing, or integers),
    /// the rows of its space, and how long it took. All of it holds until `see` returns.
    struct Watched {
        const PlanStep& step;
        const Call<Real>& call;  // as the team's first member had it; an input may lie where the output does
        std::span<const Real> values;
        std::int64_t rows;
        double seconds;
    };
    /// Step after step, calling `see` after each.
    void watch(const Batch& batch, const std::function<void(const Watched&)>& see);

    /// The value of a node after a run: [rows of its space, width]. Only the roots' outlive the run for
    /// certain, and only until another executor uses the same memory; with Lowering::chosen_only, only they
    /// are certain to have all rows.
    const Real* value(NodeId node) const;
    /// Rows of a space in the last run.
    std::int64_t rows(SpaceId space) const { return counts_[space]; }
    const Plan& plan() const { return plan_; }
    const Graph& graph() const { return graph_; }

    /// Bytes of memory that executors of these plans, sharing all they can, come to touch.
    static std::size_t bytes(const Graph& graph, const std::vector<const Plan*>& plans, int threads);

  private:
    /// A round of a step's op.
    struct Round {
        std::size_t step;
        std::int64_t number;
    };
    /// Rounds that need none of each other's results.
    struct Stage {
        std::size_t begin = 0, end = 0;  // of rounds_
        double work = 0;                 // takes about as long as so many multiply-adds
    };
    struct InputShape {
        SpaceId space;
        std::int64_t width;
    };
    /// Of input i of a step: its value's, or where the step does without one (it may be in a state) the
    /// node's.
    InputShape input_of(const PlanStep& step, std::size_t i) const;
    void prepare();
    void admit(const Batch& batch);
    void reach(std::int64_t end);
    const Rows* sequences(std::size_t space, std::int64_t length);
    const Rows* shortened(std::size_t space, const Rows* parent, std::int64_t most);
    void arrange(const Batch& batch);
    void part_of(Round round, const Batch& batch, Worker part, int member) const;
    Call<Real> call_of(std::size_t step, const Batch& batch, Worker part, int member) const;
    Real* at(ValueId value) const;

    const Graph& graph_;
    Plan plan_;
    Binding<Real> binding_;
    int threads_;
    std::int64_t reached_ = 0;                 // positions that all its tables hold
    std::vector<Call<Real>> calls_;            // one per step, all but batch, rows and worker filled in
    ById<const Rows*> rows_;                   // of each space in this run; null where it has no sequences
    ById<std::int64_t> counts_;                // of each space in this run
    ById<Rows> made_;                          // of spaces whose sequences follow from others
    ById<std::span<const std::int32_t>> ids_;  // of each stream in this run
    ById<const float*> vectors_;
    std::vector<Round> rounds_;  // of this run; the number of rows and the longest sequence decide
    std::vector<Stage> stages_;
    std::vector<std::int64_t> arranged_;  // sizes that rounds_ and stages_ were made for
};

}  // namespace linnet
