#include "model/encode/encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "graph/executor.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"

namespace linnet {
namespace {

// The executors of "logits" and, where the model has it, "next", behind those by Pooling.
constexpr std::size_t tells = pooling_names.size(), tells_next = tells + 1;

std::int64_t row_count(const ModelConfig& config, const EncoderInput& input) {
    if (!config.reads_patches()) return static_cast<std::int64_t>(input.tokens.size());
    const std::int64_t width = config.image.patch * config.image.patch * config.image.channels;
    return static_cast<std::int64_t>(input.patches.size()) / width;
}

}  // namespace

void add_to_batch(const ModelConfig& config, const EncoderInput& input, Batch& batch) {
    const std::int64_t count = row_count(config, input), first = batch.rows.count;
    const auto slot = static_cast<std::int64_t>(batch.rows.segments.size());
    if (config.reads_patches()) {
        batch.rows.add(count, 0, static_cast<std::int32_t>(slot));
        std::vector<float>& patches = batch.vectors("patches");
        patches.insert(patches.end(), input.patches.begin(), input.patches.end());
    } else {
        batch.add(input.tokens.data(), count, 0, slot);
    }
    if (config.segments > 0) {
        std::vector<std::int32_t>& segments = batch.stream("segments");
        const auto last = static_cast<std::int32_t>(config.segments - 1);
        for (std::int32_t segment : input.segments) segments.push_back(std::min(segment, last));
        segments.resize(static_cast<std::size_t>(batch.rows.count), 0);
    }
    for (std::int32_t row : input.wanted) batch.outputs.push_back(static_cast<std::int32_t>(first) + row);
}

struct Encoder::Impl {
    std::shared_ptr<const Model> model;
    std::int64_t rows;
    std::vector<std::optional<Executor<float>>> executors;  // of "mean", "first", "last", "logits", "next"

    Impl(std::shared_ptr<const Model> m, int threads, std::int64_t r) : model(std::move(m)) {
        const ModelConfig& config = model->config();
        if (!config.is_encoder())
            fail_input(model->path(), "model.kind", "encoder", config.kind,
                       "linnet generate and linnet eval serve other kinds");
        rows = std::max(r, config.context);
        const Graph& graph = model->traced().graph;
        Lowering lowering;
        lowering.phase = Phase::read;
        lowering.chosen_only = true;
        lowering.positions = config.context;
        lowering.capacity = capacities(graph, {.tokens = rows, .outputs = rows, .beside = rows});
        for (const Tensor& t : model->parameters()) lowering.stored.push_back(t.type);
        std::vector<Plan> plans;
        std::vector<const Plan*> all;
        for (std::string_view program : pooling_names)
            plans.push_back(make_plan(graph, graph.program(program), lowering));
        plans.push_back(make_plan(graph, graph.program("logits"), lowering));
        if (config.head.next) plans.push_back(make_plan(graph, graph.program("next"), lowering));
        for (const Plan& plan : plans) all.push_back(&plan);
        Binding<float> binding;
        binding.parameters = model->parameters();
        binding.tables = std::make_shared<Tables<float>>();
        binding.memory = make_run_memory<float>(graph, all, threads_or_cores(threads));
        for (Plan& plan : plans)
            executors.emplace_back().emplace(graph, std::move(plan), binding, threads_or_cores(threads));
    }

    void check(const EncoderInput& input) const {
        const ModelConfig& config = model->config();
        const std::int64_t count = row_count(config, input);
        if (count == 0) fail_input("", "text", "at least one token", "none");
        if (count > config.context)
            fail_input("", "context", "at most " + std::to_string(config.context) + " tokens",
                       std::to_string(count));
        require_ids(config, input.tokens);
    }

    const float* run(std::size_t program, NodeId node, std::span<const EncoderInput> inputs, bool each) {
        Batch batch;
        for (const EncoderInput& input : inputs) {
            check(input);
            add_to_batch(model->config(), input, batch);
        }
        if (each) {  // one row for each sequence
            batch.outputs.clear();
            for (const Segment& s : batch.rows.segments)
                batch.outputs.push_back(static_cast<std::int32_t>(s.first));
        }
        if (program == tells_next) batch.stream("next").assign(inputs.size(), -1);
        executors[program]->run(batch);
        return executors[program]->value(node);
    }

    std::span<const float> finite(std::span<const float> made) const {
        if (!std::ranges::all_of(made, [](float x) { return std::isfinite(x); })) fail_not_finite(*model);
        return made;
    }
};

Encoder::Encoder(std::shared_ptr<const Model> model, int threads, std::int64_t rows)
    : impl_(std::make_unique<Impl>(std::move(model), threads, rows)) {}
Encoder::~Encoder() = default;

const Model& Encoder::model() const {
    return *impl_->model;
}

std::size_t Encoder::fitting(std::span<const EncoderInput> inputs) const {
    std::int64_t rows = 0;
    std::size_t count = 0;
    while (count < inputs.size()) {
        rows += row_count(impl_->model->config(), inputs[count]);
        if (count > 0 && rows > impl_->rows) break;
        count++;
    }
    return count;
}

std::span<const float> Encoder::vectors(std::span<const EncoderInput> inputs, Pooling pooling) {
    const auto way = static_cast<std::size_t>(pooling);
    const float* made = impl_->run(way, impl_->model->traced().pooled[way], inputs, true);
    return impl_->finite(
        {made, inputs.size() * static_cast<std::size_t>(impl_->model->config().last_width())});
}

std::int64_t Encoder::classes() const {
    const ModelConfig& config = impl_->model->config();
    return config.head.kind == "tokens" ? config.vocabulary : config.head.classes;
}

std::span<const float> Encoder::logits(std::span<const EncoderInput> inputs) {
    const bool each = impl_->model->config().head.kind == "classes";
    std::size_t rows = each ? inputs.size() : 0;
    if (!each)
        for (const EncoderInput& input : inputs) rows += input.wanted.size();
    const float* made = impl_->run(tells, impl_->model->traced().logits, inputs, each);
    return impl_->finite({made, rows * static_cast<std::size_t>(classes())});
}

std::span<const float> Encoder::follows(std::span<const EncoderInput> inputs) {
    const float* made = impl_->run(tells_next, impl_->model->traced().next_logits, inputs, true);
    return impl_->finite({made, inputs.size() * next_classes});
}

}  // namespace linnet
