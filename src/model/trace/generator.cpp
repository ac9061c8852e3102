#include "model/trace/generator.h"

#include <algorithm>
#include <cmath>

#include "ops/sample.h"

namespace linnet {
namespace {

std::int64_t part_of(std::int64_t whole, double share) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(whole) * share));
}

PerLayer<std::int64_t> parts_of(const PerLayer<std::int64_t>& whole, double share) {
    std::vector<std::int64_t> parts;
    for (const std::int64_t each : whole.list()) parts.push_back(part_of(each, share));
    return PerLayer<std::int64_t>(std::move(parts));
}

/// Mamba's channels, and Mamba-2's heads of the same width.
void narrow_ssm(ModelConfig& c, double share) {
    auto& ssm = c.ssm;
    if (ssm.inner == 0) return;  // no layer has one
    if (ssm.rank > 0) ssm.rank = part_of(ssm.rank, share);
    const std::int64_t head = ssm.heads > 0 ? ssm.inner / ssm.heads : 0;
    if (head == 0) {
        ssm.inner = part_of(ssm.inner, share);
        return;
    }
    ssm.heads = part_of(ssm.heads, share);
    while (ssm.heads % ssm.groups != 0) ssm.groups--;
    ssm.inner = ssm.heads * head;
}

}  // namespace

ModelConfig generator_config(const ModelConfig& encoder, double share) {
    ModelConfig c = encoder;
    c.width = part_of(c.width, share);
    c.heads = parts_of(c.heads, share);
    c.ffn.width = parts_of(c.ffn.width, share);
    std::vector<std::int64_t> kv_heads;  // as many queries to a key as there, or the next fewer that fit
    for (std::int64_t layer = 0; layer < c.layers; layer++) {
        const std::int64_t heads = c.heads.at(layer);
        std::int64_t each = std::min(heads, encoder.heads.at(layer) / encoder.kv_heads.at(layer));
        while (heads % each != 0) each--;
        kv_heads.push_back(heads / each);
    }
    c.kv_heads = PerLayer<std::int64_t>(std::move(kv_heads));
    narrow_ssm(c, share);
    c.experts = {};
    c.attention.value_embedding = 0;
    return c;
}

GeneratorStreams::GeneratorStreams(Graph& graph) {
    rows = graph.stream({"masks"});
    masks = graph.space({"masks", rows});
    originals = graph.stream({"originals"}), draws = graph.stream({"draws"});
    given = graph.stream({"given"}), labels = graph.stream({"labels"});
}

ReplacedTokens replace_tokens(Graph& graph, const GeneratorStreams& streams, const GeneratorShape& shape,
                              NodeId guesses, const Small<ParameterId, max_parameters>& parameters,
                              SpaceId tokens, SpaceId outputs) {
    // Gradients are scaled for a mean over all rows, of which masks are this share.
    ReplacedTokens replaced{};
    replaced.loss = graph.add(cross_entropy_op, "gen.loss", {guesses}, parameters,
                              {{"weight", 1 / shape.masked}}, {none, streams.originals});
    const NodeId drawn = graph.add(sample_op, "gen.sample", {guesses}, parameters, {}, {none, streams.draws});
    const NodeId wrong = graph.add(differ_op, "gen.wrong", {drawn}, {}, {}, {none, streams.originals});
    replaced.tokens = graph.add(insert_op, "replaced", {drawn}, {}, {}, {tokens, streams.given});
    replaced.wrong = graph.add(insert_op, "labels", {wrong}, {}, {}, {outputs, streams.labels});
    return replaced;
}

}  // namespace linnet
