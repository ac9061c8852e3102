#include "model/session.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "graph/executor.h"
#include "model/trace.h"

namespace linnet {

struct Session::Impl {
    std::shared_ptr<const Model> model;
    std::int64_t context, batch, position = 0;
    int threads;
    Arena cache_memory;
    Binding<float> binding;
    std::optional<Executor<float>> logits, loss;  // the second is made when it is first asked for
    Batch work;

    Impl(std::shared_ptr<const Model> m, const SessionOptions& options) : model(std::move(m)) {
        const ModelConfig& config = model->config();
        context = options.context == 0 ? config.context : options.context;
        if (context < 1 || context > config.context)
            fail(Exit::usage, "", "context", "1 to " + std::to_string(config.context) + ", the model's",
                 std::to_string(context));
        batch = std::clamp<std::int64_t>(options.batch, 1, context);
        threads = options.threads > 0 ? options.threads : physical_cores();
        make_caches();
        const TracedModel& traced = model->traced();
        logits.emplace(traced.graph, make_plan(traced.graph, traced.logits, {batch, 1}), binding, threads);
    }

    /// Keys and values [kv_heads, context, D] of every attention node, one after another.
    void make_caches() {
        const Graph& graph = model->traced().graph;
        const ModelConfig& config = model->config();
        std::int64_t one = config.kv_heads * context * config.head_width, count = 0;
        for (const Node& node : graph.nodes()) count += node.op->cached;
        cache_memory = allocate_arena(static_cast<std::size_t>(2 * one * count) * sizeof(float));
        auto* next = static_cast<float*>(cache_memory.get());
        binding.parameters = model->parameters();
        binding.caches.resize(graph.nodes().size());
        for (std::size_t i = 0; i < graph.nodes().size(); i++) {
            if (!graph.nodes()[i].op->cached) continue;
            binding.caches[i] = {next, next + one, context};
            next += 2 * one;
        }
    }

    void start(std::span<const TokenId> tokens) {
        work = Batch();
        work.add(tokens.data(), static_cast<std::int64_t>(tokens.size()), position, 0);
    }

    void admit(std::span<const TokenId> tokens) const {
        std::int64_t vocabulary = model->config().vocabulary;
        for (TokenId id : tokens)
            if (id < 0 || id >= vocabulary)
                fail_input("", "token id", "0 to " + std::to_string(vocabulary - 1), std::to_string(id));
        if (position + static_cast<std::int64_t>(tokens.size()) > context)
            fail_input("", "context", "at most " + std::to_string(context) + " tokens",
                       std::to_string(position + static_cast<std::int64_t>(tokens.size())));
    }
};

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Session::~Session() = default;

std::int64_t Session::context() const {
    return impl_->context;
}
std::int64_t Session::position() const {
    return impl_->position;
}
void Session::rewind(std::int64_t position) {
    impl_->position = std::clamp<std::int64_t>(position, 0, impl_->position);
}

std::span<const float> Session::append(std::span<const TokenId> tokens) {
    Impl& s = *impl_;
    s.admit(tokens);
    const TracedModel& traced = s.model->traced();
    while (!tokens.empty()) {
        auto piece = tokens.subspan(0, std::min(tokens.size(), static_cast<std::size_t>(s.batch)));
        tokens = tokens.subspan(piece.size());
        s.start(piece);
        if (tokens.empty()) s.work.outputs = {static_cast<std::int32_t>(piece.size() - 1)};
        s.logits->run(s.work);
        s.position += static_cast<std::int64_t>(piece.size());
    }
    return {s.logits->value(traced.logits), static_cast<std::size_t>(s.model->config().vocabulary)};
}

double Session::append_nll(std::span<const TokenId> tokens) {
    Impl& s = *impl_;
    s.admit(tokens);
    const TracedModel& traced = s.model->traced();
    if (!s.loss)
        s.loss.emplace(traced.graph, make_plan(traced.graph, traced.loss, {s.batch, 0}), s.binding,
                       s.threads);
    double sum = 0;
    for (std::size_t first = 0; first < tokens.size(); first += static_cast<std::size_t>(s.batch)) {
        auto piece =
            tokens.subspan(first, std::min(tokens.size() - first, static_cast<std::size_t>(s.batch)));
        s.start(piece);
        for (std::size_t i = first + 1; i <= first + piece.size(); i++)
            s.work.targets.push_back(i < tokens.size() ? tokens[i] : -1);
        s.loss->run(s.work);
        for (std::size_t i = 0; i < piece.size(); i++) sum += s.loss->value(traced.loss)[i];
        s.position += static_cast<std::int64_t>(piece.size());
    }
    return sum;
}

}  // namespace linnet
