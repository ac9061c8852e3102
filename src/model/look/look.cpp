#include "model/look/look.h"

#include <algorithm>

#include "base/error.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"

namespace linnet {
namespace {

void check(const Model& model, const std::vector<TokenId>& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (count == 0 || count > model.config().context)
        fail_input("", "text",
                   "1 to " + std::to_string(model.config().context) + " tokens, the model's context",
                   std::to_string(count));
}

/// The weights are what the op makes of the identity in the place of values: row s of it is 1 in column s of
/// a head's width, so the op's own masks, biases and caps are in them. A head's width of keys at a time.
AttentionMap map_of(const Graph& graph, const Node& node, const Call<float>& call) {
    const std::int64_t width = call.attributes->integer("head_width");
    AttentionMap map;
    map.path = node.path;
    map.in_source = graph.spaces()[static_cast<std::size_t>(node.space)].name == "source";
    map.cross = call.in_space[1] != call.space;
    map.heads = call.attributes->integer("heads");
    map.queries = call.rows, map.keys = call.in_rows[1];
    map.weights.resize(static_cast<std::size_t>(map.heads * map.queries * map.keys));
    std::vector<float> values(static_cast<std::size_t>(map.keys * call.in_width[2]));
    std::vector<float> out(static_cast<std::size_t>(map.queries * call.width));
    std::vector<float> saved(static_cast<std::size_t>(map.queries * map.heads));
    Call<float> own = call;
    own.in[2] = values.data(), own.out = out.data(), own.saved = saved.data();
    own.worker = {0, 1};
    for (std::int64_t first = 0; first < map.keys; first += width) {
        const std::int64_t some = std::min(width, map.keys - first);
        std::fill(values.begin(), values.end(), 0.0f);
        for (std::int64_t s = 0; s < some; s++)
            for (std::int64_t column = s; column < own.in_width[2]; column += width)
                values[static_cast<std::size_t>((first + s) * own.in_width[2] + column)] = 1;
        node.op->forward(own);
        for (std::int64_t h = 0; h < map.heads; h++)
            for (std::int64_t q = 0; q < map.queries; q++)
                std::copy_n(out.begin() + q * call.width + h * width, some,
                            map.weights.begin() + (h * map.queries + q) * map.keys + first);
    }
    return map;
}

}  // namespace

Batch batch_of(const Model& model, const LookedAt& text) {
    const ModelConfig& config = model.config();
    if (config.reads_patches())
        fail_input(model.path(), "model.image.patch", "0, a model of texts",
                   std::to_string(config.image.patch));
    check(model, text.tokens);
    Batch batch;
    batch.add(text.tokens.data(), static_cast<std::int64_t>(text.tokens.size()), 0, 0);
    batch.outputs = {static_cast<std::int32_t>(text.tokens.size() - 1)};
    if (config.segments > 0) batch.stream("segments").assign(text.tokens.size(), 0);
    if (config.kind == "encoder-decoder") {
        const std::vector<TokenId>& source = text.source.empty() ? text.tokens : text.source;
        check(model, source);
        batch.stream("source") = source;
        batch.space("source").add(static_cast<std::int64_t>(source.size()), 0, 0);
    }
    return batch;
}

void look_at_values(const Model& model, const LookedAt& text,
                    const std::function<void(const Executor<float>::Watched&)>& see) {
    const Batch batch = batch_of(model, text);
    const Rows* source = batch.find_space("source");
    const std::int64_t rows = source ? source->count : 0;
    const Graph& graph = model.traced().graph;
    Lowering lowering;
    lowering.capacity = capacities(graph, {.tokens = batch.rows.count, .outputs = 1, .beside = rows});
    lowering.positions = std::max(batch.rows.count, rows);
    Binding<float> binding;
    binding.parameters = model.parameters();
    for (const Tensor& t : binding.parameters) lowering.stored.push_back(t.type);
    Executor<float> executor(graph, make_plan(graph, graph.program("logits"), lowering), binding, 1);
    executor.watch(batch, see);
}

std::vector<AttentionMap> attention_maps(const Model& model, const LookedAt& text) {
    std::vector<AttentionMap> maps;
    look_at_values(model, text, [&](const Executor<float>::Watched& made) {
        const Graph& graph = model.traced().graph;
        const Node& node = graph.node(made.step.node);
        // Projected keys are no rows of the text.
        if (node.attributes.has("projected")) return;
        if (node.op == &attention_op || node.op == &biased_attention_op || node.op == &additive_attention_op)
            maps.push_back(map_of(graph, node, made.call));
    });
    return maps;
}

}  // namespace linnet
