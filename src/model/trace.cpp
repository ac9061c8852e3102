#include "model/trace.h"

#include <cmath>
#include <stdexcept>

#include "graph/plan.h"

namespace linnet {
namespace {

struct ActivationName {
    std::string_view name;
    Activation kind;
};
constexpr ActivationName activations[] = {
    {"relu", Activation::relu},
    {"gelu", Activation::gelu},
    {"gelu-tanh", Activation::gelu_tanh},
    {"silu", Activation::silu},
};

/// Builds one model. Parameter names are GGUF's; module paths are ours.
class Tracer {
  public:
    Tracer(const ModelConfig& config, bool training) : c_(config), training_(training) {}

    TracedModel run() {
        SpaceId tokens = graph().space({"tokens"});
        StreamId ids = graph().stream({"tokens"}), targets = graph().stream({"targets"});
        StreamId wanted = graph().stream({"outputs"});
        SpaceId outputs = graph().space({"outputs", wanted});
        ParameterId table = matrix("token_embd.weight", c_.vocabulary, c_.width, c_.init_std);
        NodeId x = graph().add(embedding_op, "embed", {}, {table}, {}, {tokens, ids});
        x = dropout("embed.dropout", positions(x));
        for (layer_ = 0; layer_ < c_.layers; layer_++) {
            graph().begin_block(static_cast<int>(layer_));
            x = block("blk." + std::to_string(layer_), x);
        }
        graph().begin_block(none);
        if (c_.norm.placement != "post") x = norm("norm", "output_norm", x);
        ParameterId head =
            c_.tie_embeddings ? table : matrix("output.weight", c_.vocabulary, c_.width, c_.init_std);
        model_.loss = graph().add(cross_entropy_op, "loss", {x}, {head}, {}, {none, targets});
        NodeId last = graph().add(take_rows_op, "last", {x}, {}, {}, {outputs, wanted});
        // Logits have the bits of writing also after a prompt: sampling must not depend on how a text came
        // in.
        model_.logits = graph().add(linear_op, "logits", {last}, {head}, {{"written", 1}});
        graph().add_program("loss", {model_.loss});
        graph().add_program("logits", with_states(model_.logits));
        graph().add_program("score", with_states(model_.loss));
        return std::move(model_);
    }

  private:
    Graph& graph() { return model_.graph; }

    std::vector<NodeId> with_states(NodeId root) const {
        std::vector<NodeId> roots{root};
        roots.insert(roots.end(), appends_.begin(), appends_.end());
        return roots;
    }

    ParameterId matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double std) {
        return graph().parameter(name, Shape(rows, columns), 0, std);
    }

    NodeId positions(NodeId x) {
        if (c_.position.kind.at(0) == "learned")
            return graph().add(position_embedding_op, "positions", {x},
                               {matrix("position_embd.weight", c_.context, c_.width, c_.init_std)});
        if (c_.position.kind.at(0) == "sinusoidal") return graph().add(sinusoidal_op, "positions", {x});
        return x;
    }

    NodeId dropout(const std::string& path, NodeId x) {
        if (!training_ || c_.dropout == 0) return x;
        return graph().add(dropout_op, path, {x}, {}, {{"probability", c_.dropout}});
    }

    NodeId norm(const std::string& path, const std::string& name, NodeId x) {
        Small<ParameterId, max_parameters> p{graph().parameter(name + ".weight", Shape(c_.width), 1, 0)};
        bool layer = c_.norm.kind == "layer";
        if (layer) p.push_back(graph().parameter(name + ".bias", Shape(c_.width), 0, 0));
        return graph().add(layer ? layer_norm_op : rms_norm_op, path, {x}, p, {{"epsilon", c_.norm.epsilon}});
    }

    NodeId linear(const std::string& path, const std::string& name, NodeId x, std::int64_t out, bool bias,
                  double std) {
        Small<ParameterId, max_parameters> p{matrix(name + ".weight", out, graph().node(x).width, std)};
        if (bias) p.push_back(graph().parameter(name + ".bias", Shape(out), 0, 0));
        return graph().add(linear_op, path, {x}, p);
    }

    /// Projections that end a residual branch start smaller, so that the stream's variance does not grow with
    /// depth (Radford et al. 2019, GPT-2, section 2.3).
    double residual_std() const { return c_.init_std / std::sqrt(2.0 * static_cast<double>(c_.layers)); }

    NodeId attention(const std::string& blk, NodeId x) {
        std::string path = blk + ".attn";
        std::int64_t d = c_.head_width;
        std::int64_t heads = c_.heads.at(layer_), kv_heads = c_.kv_heads.at(layer_);
        auto h = static_cast<double>(heads), kv = static_cast<double>(kv_heads);
        bool bias = c_.attention.bias;
        NodeId q = linear(path + ".q", blk + ".attn_q", x, heads * d, bias, c_.init_std);
        NodeId k = linear(path + ".k", blk + ".attn_k", x, kv_heads * d, bias, c_.init_std);
        NodeId v = linear(path + ".v", blk + ".attn_v", x, kv_heads * d, bias, c_.init_std);
        if (c_.position.kind.at(layer_) == "rope") {
            Attributes turn{{"head_width", static_cast<double>(d)},
                            {"theta", c_.position.theta},
                            {"halves", c_.position.halves ? 1.0 : 0.0}};
            q = graph().add(rope_op, path + ".q.rope", {q}, {}, turn);
            k = graph().add(rope_op, path + ".k.rope", {k}, {}, turn);
        }
        StateId state = none;
        if (!training_) {
            state = graph().state({path, 2 * kv_heads, d, Rewind::truncate, c_.attention.window.at(layer_)});
            appends_.push_back(graph().add(append_op, path + ".append", {k, v}, {}, {{"kv_heads", kv}},
                                           {none, none, none, state}));
        }
        NodeId a = graph().add(attention_op, path, {q, k, v}, {},
                               {{"heads", h},
                                {"kv_heads", kv},
                                {"head_width", static_cast<double>(d)},
                                {"window", static_cast<double>(c_.attention.window.at(layer_))},
                                {"causal", 1}},
                               {none, none, state});
        NodeId y = linear(path + ".output", blk + ".attn_output", a, c_.width,
                          bias && c_.attention.output_bias, residual_std());
        return dropout(path + ".dropout", y);
    }

    NodeId feed_forward(const std::string& blk, NodeId x) {
        std::string path = blk + ".ffn";
        Attributes kind{{"kind", static_cast<double>(activation_from_name(c_.ffn.activation))}};
        std::int64_t width = c_.ffn.width.at(layer_);
        NodeId h;
        if (c_.ffn.gated) {
            NodeId gate = linear(path + ".gate", blk + ".ffn_gate", x, width, c_.ffn.bias, c_.init_std);
            NodeId up = linear(path + ".up", blk + ".ffn_up", x, width, c_.ffn.bias, c_.init_std);
            h = graph().add(gated_op, path + ".gated", {gate, up}, {}, kind);
        } else {
            NodeId up = linear(path + ".up", blk + ".ffn_up", x, width, c_.ffn.bias, c_.init_std);
            h = graph().add(activation_op, path + ".act", {up}, {}, kind);
        }
        NodeId y = linear(path + ".down", blk + ".ffn_down", h, c_.width, c_.ffn.bias, residual_std());
        return dropout(path + ".dropout", y);
    }

    /// pre: x + f(norm x).  post: norm(x + f x).  sandwich: x + norm(f(norm x)) (Ding et al. 2021, CogView).
    template <class Branch>
    NodeId residual(const std::string& path, const std::string& name, NodeId x, Branch branch) {
        bool pre = c_.norm.placement != "post";
        NodeId y = branch(pre ? norm(path + ".norm", name + "_norm", x) : x);
        if (c_.norm.placement == "sandwich") y = norm(path + ".post_norm", name + "_post_norm", y);
        x = graph().add(add_op, path + ".add", {x, y});
        return pre ? x : norm(path + ".norm", name + "_norm", x);
    }

    NodeId block(const std::string& blk, NodeId x) {
        x = residual(blk + ".attn", blk + ".attn", x, [&](NodeId y) { return attention(blk, y); });
        return residual(blk + ".ffn", blk + ".ffn", x, [&](NodeId y) { return feed_forward(blk, y); });
    }

    const ModelConfig& c_;
    bool training_;
    std::int64_t layer_ = 0;  // the block being traced
    TracedModel model_;
    std::vector<NodeId> appends_;
};

}  // namespace

TracedModel trace(const ModelConfig& config, bool training) {
    return Tracer(config, training).run();
}

double forward_flops(const TracedModel& model, double length) {
    Lowering lowering;
    lowering.capacity = {1};
    double flops = 0;
    for (const PlanStep& step : make_plan(model.graph, model.graph.program("loss"), lowering).steps) {
        const Node& node = model.graph.node(step.node);
        Graph::Shapes s = model.graph.shapes(node);
        flops += node.op->flops({s.in, s.parameters, node.attributes}, length);
    }
    return flops;
}

Activation activation_from_name(std::string_view name) {
    for (const ActivationName& a : activations)
        if (a.name == name) return a.kind;
    throw std::logic_error("an activation without a row in the table");
}

std::vector<std::string> activation_names() {
    std::vector<std::string> names;
    for (const ActivationName& a : activations) names.emplace_back(a.name);
    return names;
}

}  // namespace linnet
