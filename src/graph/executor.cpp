#include "graph/executor.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/clock.h"
#include "base/signals.h"
#include "ops/matmul.h"

namespace linnet {

namespace {

/// The widest rows of weights that are unpacked as they are used, in bytes of a member's workspace.
template <class Real>
std::size_t unpack_workspace(const Graph& graph, const Plan& plan) {
    std::size_t most = 0;
    const std::vector<DType>& stored = plan.lowering.stored;
    for (std::size_t i = 0; i < stored.size(); i++) {
        const Shape& w = graph.parameters()[i].shape;
        most = std::max(most, unpack_bytes<Real>(stored[i], w.dim[1], w.dim[0]));
    }
    return most;
}

template <class Real>
std::size_t workspace_bytes(const Graph& graph, const std::vector<const Plan*>& plans) {
    std::size_t unpack = 0;
    for (const Plan* plan : plans) unpack = std::max(unpack, unpack_workspace<Real>(graph, *plan));
    return (kernel_workspace(kernels_for<Real>()) + unpack + 4095) / 4096 * 4096;
}

std::size_t arena_bytes_of(const std::vector<const Plan*>& plans) {
    std::size_t most = 0;
    for (const Plan* plan : plans) most = std::max(most, plan->arena_bytes);
    return most;
}

/// Of a member's workspace, what the products of this plan will touch: panels no larger than their matrices.
/// (Memory that is never touched is never given by the operating system.)
template <class Real>
std::size_t touched_workspace(const Graph& graph, const Plan& plan) {
    const KernelTable<Real>& kernels = kernels_for<Real>();
    std::int64_t most = 0, narrow = 0;
    auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        most = std::max(most, std::min(k, kernels.gemm_block_k) *
                                  (std::min(m, kernels.gemm_block_m) + std::min(n, kernels.gemm_block_n)));
        const std::int64_t bytes = plan.lowering.products == ProductKernel::split ? 4 : 2;  // of an element
        if (plan.lowering.products != ProductKernel::panels)
            narrow = std::max(
                narrow, std::min((m + n) * k * bytes, static_cast<std::int64_t>(kernels.narrow.workspace)));
    };
    for (const PlanStep& step : plan.steps) {
        const Node& node = graph.node(step.node);
        if (!node.op->product || step.kind == StepKind::convert) continue;
        const Shape& w = graph.parameters()[node.parameters[0]].shape;
        std::int64_t rows = capacity_of(graph, plan.lowering, step.space), out = w.dim[0], in = w.dim[1];
        product(rows, out, in);
        if (step.kind == StepKind::backward) product(rows, in, out), product(out, in, rows);
    }
    return std::max(static_cast<std::size_t>(most) * sizeof(Real), static_cast<std::size_t>(narrow)) +
           std::max(kernels.attention_workspace, kernels.narrow.attention_split_workspace) +
           unpack_workspace<Real>(graph, plan);
}

}  // namespace

template <class Real>
std::shared_ptr<RunMemory> make_run_memory(const Graph& graph, const std::vector<const Plan*>& plans,
                                           int threads) {
    auto memory = std::make_shared<RunMemory>();
    memory->arena_bytes = arena_bytes_of(plans);
    memory->workspace_stride = workspace_bytes<Real>(graph, plans);
    memory->arena = allocate_arena(memory->arena_bytes, "activations");
    memory->workspaces =
        allocate_arena(memory->workspace_stride * static_cast<std::size_t>(threads), "threads' workspaces");
    return memory;
}

template <class Real>
std::size_t Executor<Real>::bytes(const Graph& graph, const std::vector<const Plan*>& plans, int threads) {
    std::size_t workspace = 0;
    for (const Plan* plan : plans) workspace = std::max(workspace, touched_workspace<Real>(graph, *plan));
    return arena_bytes_of(plans) + table_elements(graph, plans) * sizeof(Real) +
           std::min(workspace, workspace_bytes<Real>(graph, plans)) * static_cast<std::size_t>(threads);
}

template <class Real>
Executor<Real>::Executor(const Graph& graph, Plan plan, Binding<Real> binding, int threads)
    : graph_(graph), plan_(std::move(plan)), binding_(std::move(binding)), threads_(threads) {
    if (!binding_.tables) binding_.tables = std::make_shared<Tables<Real>>();
    if (!binding_.memory) binding_.memory = make_run_memory<Real>(graph_, {&plan_}, threads_);
    if (plan_.lowering.arithmetic != kernel_type<Real> || binding_.memory->arena_bytes < plan_.arena_bytes ||
        (plan_.lowering.states && binding_.states.size() != graph_.states().size()))
        throw std::logic_error("an executor's plan does not fit its binding");
    prepare();
}

template <class Real>
Real* Executor<Real>::at(ValueId value) const {
    if (value == none) return nullptr;
    return reinterpret_cast<Real*>(static_cast<std::byte*>(binding_.memory->arena.get()) +
                                   plan_.values[value].offset);
}

template <class Real>
const Real* Executor<Real>::value(NodeId node) const {
    return at(plan_.value[node]);
}

template <class Real>
typename Executor<Real>::InputShape Executor<Real>::input_of(const PlanStep& step, std::size_t i) const {
    if (i < step.in.size() && step.in[i] != none) {
        const Value& v = plan_.values[step.in[i]];
        return {v.space, v.width};
    }
    const Node& node = graph_.node(graph_.node(step.node).inputs[i]);
    return {node.space, node.width};
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
        c.product = s.product;
        c.phase = plan_.lowering.phase;
        c.node = s.node;
        c.width = s.out == none ? node.width : plan_.values[s.out].width;
        if (s.out != none) c.out_type = plan_.values[s.out].type;
        c.out = at(s.out), c.add = at(s.add), c.saved = at(s.saved), c.scratch = at(s.scratch),
        c.dout = at(s.dout);
        for (std::size_t k = 0; k < s.in.size(); k++) {
            c.in[k] = at(s.in[k]);
            if (s.in[k] != none) c.in_type[k] = plan_.values[s.in[k]].type;
        }
        for (std::size_t k = 0; k < s.din.size(); k++)
            c.din[k] = at(s.din[k]), c.accumulate[k] = s.accumulate[k];
        if (s.kind == StepKind::convert) continue;
        for (std::size_t k = 0; k < node.inputs.size(); k++) c.in_width[k] = input_of(s, k).width;
        for (std::size_t k = 0; k < node.parameters.size(); k++) {
            const ParameterId p = node.parameters[k];
            c.parameter[k] = binding_.parameters[p];
            if (!binding_.gradients.empty()) c.parameter_grad[k] = binding_.gradients[p];
        }
        if (plan_.lowering.states) {
            if (node.reads != none) c.reads = binding_.states[node.reads];
            if (node.writes != none) c.writes = binding_.states[node.writes];
        }
        if (node.op->has_table())
            c.constants = binding_.tables->get(graph_, node, plan_.lowering.positions, binding_.parameters);
    }
}

/// The rows of space i, which are counted, as sequences of equal length.
template <class Real>
const Rows* Executor<Real>::sequences(std::size_t i, std::int64_t length) {
    made_.resize(graph_.spaces().size());  // once: there is no other number of them
    Rows& rows = made_[i];
    if (rows.count != counts_[i]) rows = {};
    for (std::int32_t slot = 0; rows.count < counts_[i]; slot++) rows.add(length, 0, slot);
    return &rows;
}

/// The rows of space i: of each sequence of its parent as many, up to `most`. A batch may lack the parent.
template <class Real>
const Rows* Executor<Real>::shortened(std::size_t i, const Rows* parent, std::int64_t most) {
    made_.resize(graph_.spaces().size());
    Rows& rows = made_[i];
    rows.count = 0, rows.segments.clear(), rows.positions.clear();  // which keep their memory
    if (!parent) return nullptr;
    for (const Segment& s : parent->segments) rows.add(std::min(s.length, most), 0, s.slot);
    return &rows;
}

/// Finds the batch's spaces and streams by the graph's names.
template <class Real>
void Executor<Real>::admit(const Batch& batch) {
    const auto& streams = graph_.streams();
    ids_.assign(streams.size(), {});
    vectors_.assign(streams.size(), nullptr);
    for (std::size_t i = 0; i < streams.size(); i++) {
        if (streams[i].width > 0) {
            if (const auto* found = batch.find_vectors(streams[i].name)) vectors_[i] = found->data();
        } else if (const auto* found = batch.find_stream(streams[i].name)) {
            ids_[i] = *found;
        }
    }
    const auto& spaces = graph_.spaces();
    rows_.assign(spaces.size(), nullptr);
    counts_.assign(spaces.size(), 0);
    for (std::size_t i = 0; i < spaces.size(); i++) {
        const RowSpace& s = spaces[i];
        if (s.fixed > 0)
            counts_[i] = s.fixed;
        else if (s.most > 0)
            rows_[i] = shortened(i, rows_[s.parent], s.most), counts_[i] = made_[i].count;
        else if (s.parent != none)
            counts_[i] = counts_[s.parent] * s.per_parent / s.parents;
        else if (s.entries != none)
            counts_[i] = static_cast<std::int64_t>(ids_[s.entries].size());
        else if ((rows_[i] = batch.find_space(s.name)))
            counts_[i] = rows_[i]->count;
        if (s.sequence > 0) rows_[i] = sequences(i, s.sequence);
        if (counts_[i] > capacity_of(graph_, plan_.lowering, static_cast<SpaceId>(i)))
            throw std::logic_error("a batch has more rows of " + s.name + " than its plan has room for");
    }
    std::int32_t last = -1;
    for (const Rows* rows : rows_)
        if (rows)
            for (std::int32_t position : rows->positions) last = std::max(last, position);
    reach(last + std::int64_t{1});
}

/// Fills what tables of positions lack of [0, end). They are made many positions at a time, so that few of
/// the tokens that are written one by one come to look at the plan again.
template <class Real>
void Executor<Real>::reach(std::int64_t end) {
    if (end <= reached_) return;
    std::int64_t ready = std::numeric_limits<std::int64_t>::max();  // of a plan without such tables
    for (const PlanStep& step : plan_.steps) {
        const Node& node = graph_.node(step.node);
        if (node.op->position_table && step.kind != StepKind::convert)
            ready = std::min(ready, binding_.tables->reach(graph_, node, plan_.lowering.positions,
                                                           binding_.parameters, end));
    }
    reached_ = std::max(end, ready);
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

/// A copy of a value in another storage type: one of the two is that of arithmetic.
template <class Real>
void convert(const Call<Real>& call, DType from, DType to) {
    Range i = call.worker.share(call.rows * call.width, 64);
    auto at = [&](const void* base, DType type) {
        return static_cast<const std::byte*>(base) + i.begin * info(type).bytes;
    };
    if (from == kernel_type<Real>)
        call.kernels->store(i.size(), to, call.in[0] + i.begin, const_cast<std::byte*>(at(call.out, to)));
    else
        call.kernels->load(i.size(), from, at(call.in[0], from), call.out + i.begin);
}

/// How long a product takes, in multiply-adds: few rows take as long as reading the matrix does.
double work_of_product(double elements, double rows) {
    constexpr double read = 8;
    return elements * std::max(rows, read);
}

/// Parts of a stage per member. Smaller ones let others take more of the share of a member that has lost its
/// processor, but every part of a product packs its operands again: up to four, from a millisecond on, cost
/// prompts of a 124M model 11 % and its training steps 5 %; two, from about six milliseconds on, cost
/// nothing.
int parts_of(double work, int members) {
    constexpr double least = 4e8, most = 2;
    return static_cast<int>(std::clamp(work / members / least, 1.0, most));
}

}  // namespace

template <class Real>
Call<Real> Executor<Real>::call_of(std::size_t step, const Batch& batch, Worker part, int member) const {
    const PlanStep& s = plan_.steps[step];
    const Node& node = graph_.node(s.node);
    Call<Real> call = calls_[step];
    call.worker = part;
    call.batch = &batch;
    call.space = rows_[s.space];
    call.rows = counts_[s.space];
    if (node.stream != none) {
        call.ids = ids_[node.stream];
        call.vectors = vectors_[node.stream];
    }
    for (std::size_t k = 0; k < node.inputs.size(); k++) {
        const SpaceId space = input_of(s, k).space;
        call.in_space[k] = rows_[space];
        call.in_rows[k] = counts_[space];
    }
    if (const std::size_t last = node.op->inputs; node.inputs.size() > last)  // made by a node, not a stream
        call.ids = {call.integers(last), static_cast<std::size_t>(call.in_rows[last])};
    call.workspace = static_cast<std::byte*>(binding_.memory->workspaces.get()) +
                     binding_.memory->workspace_stride * static_cast<std::size_t>(member);
    return call;
}

template <class Real>
void Executor<Real>::part_of(Round round, const Batch& batch, Worker part, int member) const {
    const PlanStep& step = plan_.steps[round.step];
    const Node& node = graph_.node(step.node);
    Call<Real> call = call_of(round.step, batch, part, member);
    call.round = round.number;
    switch (step.kind) {
        case StepKind::convert: {
            auto type = [&](ValueId v) { return plan_.values[v].type; };
            return convert(call, type(step.in[0]), type(step.out));
        }
        case StepKind::forward:
        case StepKind::recompute:
            return node.op->forward(call);
        case StepKind::backward:
            if (node.op->passes_gradient && round.number == 0) pass_gradient(call);
            return node.op->backward(call);
    }
}

/// Cuts the plan into stages, where a step or a round needs what another made.
template <class Real>
void Executor<Real>::arrange(const Batch& batch) {
    std::vector<std::int64_t> sizes = counts_;
    for (const Rows* rows : rows_) sizes.push_back(rows ? rows->longest() : 0);
    if (arranged_ == sizes) return;
    arranged_ = std::move(sizes);
    rounds_.clear(), stages_.clear();
    for (std::size_t i = 0; i < plan_.steps.size(); i++) {
        const PlanStep& step = plan_.steps[i];
        const Node& node = graph_.node(step.node);
        const bool converts = step.kind == StepKind::convert, backward = step.kind == StepKind::backward;
        const Call<Real> call = call_of(i, batch, {}, 0);
        const Rounds& rule = backward ? node.op->backward_rounds : node.op->forward_rounds;
        const std::int64_t rounds = converts ? 1 : rule.of(call);
        double work = 0;
        if (node.op->product && !converts)
            work = work_of_product(static_cast<double>(call.parameter[0].shape.count()),
                                   static_cast<double>(call.rows)) *
                   (backward ? 2 : 1) / static_cast<double>(rounds) /
                   panel_product(*call.kernels, step.product).speed;
        for (std::int64_t number = 0; number < rounds; number++) {
            if (stages_.empty() || step.barrier || number > 0)
                stages_.push_back({rounds_.size(), rounds_.size(), 0});
            rounds_.push_back({i, number});
            stages_.back().end++;
            stages_.back().work += work;
        }
    }
}

template <class Real>
void Executor<Real>::run(const Batch& batch) {
    admit(batch);
    arrange(batch);
    run_stages(threads_, [&](StageWalker& walker) {
        for (const Stage& stage : stages_) {
            if (binding_.heeds_signals && walker.index() == 0)
                if (const int signal = stop_signal()) throw Stopped{signal};
            auto work = [&](Worker part) {
                for (std::size_t i = stage.begin; i < stage.end; i++)
                    part_of(rounds_[i], batch, part, walker.index());
            };
            if (!walker.stage(parts_of(stage.work, walker.count()), work)) return;
        }
    });
}

template <class Real>
void Executor<Real>::watch(const Batch& batch, const std::function<void(const Watched&)>& see) {
    admit(batch);
    arrange(batch);
    double seconds = 0;
    std::vector<Real> widened;
    for (std::size_t i = 0; i < rounds_.size(); i++) {
        const auto start = Clock::now();
        run_team(threads_, [&](Worker member) { part_of(rounds_[i], batch, member, member.index); });
        seconds += seconds_since(start);
        if (i + 1 < rounds_.size() && rounds_[i + 1].step == rounds_[i].step) continue;
        const PlanStep& s = plan_.steps[rounds_[i].step];
        const Node& node = graph_.node(s.result);
        ValueId made = s.runs_forward() || (s.kind == StepKind::backward && node.op->loss) ? s.out
                       : s.din.empty()                                                     ? none
                                                                                           : s.din[0];
        const std::int64_t rows = counts_[s.space];
        std::span<const Real> values;
        if (made != none && !node.op->integers) {
            const Value& v = plan_.values[made];
            const std::int64_t count = counts_[v.space] * v.width;
            const DType type = v.type;
            values = {at(made), static_cast<std::size_t>(count)};
            if (type != kernel_type<Real>) {
                widened.resize(values.size());
                kernels_for<Real>().load(count, type, at(made), widened.data());
                values = widened;
            }
        }
        see({s, call_of(rounds_[i].step, batch, {}, 0), values, rows, seconds});
        seconds = 0;
    }
}

template class Executor<float>;
template class Executor<double>;
template std::shared_ptr<RunMemory> make_run_memory<float>(const Graph&, const std::vector<const Plan*>&,
                                                           int);
template std::shared_ptr<RunMemory> make_run_memory<double>(const Graph&, const std::vector<const Plan*>&,
                                                            int);

}  // namespace linnet
