#include "model/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "graph/plan.h"
#include "model/mixers.h"
#include "model/picture_windows.h"
#include "model/trace_adapters.h"
#include "ops/experts.h"
#include "ops/pool.h"

namespace linnet {
namespace {

struct ActivationName {
    std::string_view name;
    Activation kind;
};
constexpr ActivationName activations[] = {
    {"relu", Activation::relu},           {"relu2", Activation::relu2}, {"gelu", Activation::gelu},
    {"gelu-tanh", Activation::gelu_tanh}, {"silu", Activation::silu},
};

/// Builds one model. Parameter names are GGUF's; module paths are ours.
class Tracer : public BlockParts {
  public:
    Tracer(const ModelConfig& config, bool training, std::span<const AdapterShape> adapters)
        : c_(config), training_(training), beside_(adapters) {}

    TracedModel run() {
        SpaceId tokens = graph().space({"tokens"});
        StreamId ids = c_.reads_patches()
                           ? graph().stream({"patches", c_.image.patch * c_.image.patch * c_.image.channels})
                           : graph().stream({"tokens"});
        StreamId targets = graph().stream({"targets"}), wanted = graph().stream({"outputs"});
        const Placement outputs{graph().space({"outputs", wanted}), wanted};
        ParameterId table = none;
        if (!c_.reads_patches()) table = matrix("token_embd.weight", c_.vocabulary, c_.width, c_.init_std);
        if (c_.kind == "encoder-decoder") {
            SpaceId source = graph().space({"source"});
            side_ = {"enc.", false, false};
            encoded_ = stack(table, {source, graph().stream({"source"})}, c_.layers);
            side_ = {"dec.", true, true};
        } else if (c_.is_encoder()) {
            side_ = {"", false, false};
        }
        NodeId x = stack(table, {tokens, ids}, c_.decoder_layers ? c_.decoder_layers : c_.layers);
        if (c_.is_encoder())
            encoder_head(table, x, targets, outputs);
        else
            head(table, x, targets, outputs);
        graph().add_program("loss", losses());
        graph().add_program("logits", with_states(model_.logits));
        std::vector<NodeId> score = with_states(model_.loss);
        if (tells_classes()) score.push_back(model_.logits);
        graph().add_program("score", score);
        if (encoded_ != none) graph().add_program("encode", source_appends_);
        return std::move(model_);
    }

    Graph& graph() override { return model_.graph; }
    const ModelConfig& config() const override { return c_; }
    std::int64_t layer() const override { return layer_; }
    bool training() const override { return training_; }
    bool keeps_states() const override { return !training_ && side_.states; }
    bool both_ways() const override { return !side_.causal; }
    /// Projections that end a residual branch start smaller, so that the stream's variance does not grow with
    /// depth (Radford et al. 2019, GPT-2, section 2.3).
    double residual_std() const override {
        if (c_.zero_init) return 0;
        return deep() ? branch_std() : c_.init_std / std::sqrt(2.0 * static_cast<double>(c_.layers));
    }

    /// A parameter. A layer whose weights are another's takes that layer's.
    ParameterId parameter(std::string name, Shape shape, double mean, double std, std::int64_t parts = 0,
                          bool ramp = false) override {
        const std::string block = side_.prefix + "blk.";
        if (c_.tie_layers == 0 || !name.starts_with(block))
            return graph().parameter(std::move(name), shape, mean, std, parts, ramp);
        name = block + std::to_string(layer_ % c_.tie_layers) + name.substr(name.find('.', block.size()));
        const auto& all = graph().parameters();
        auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& p) { return p.name == name; });
        if (found != all.end()) return static_cast<ParameterId>(found - all.begin());
        return graph().parameter(std::move(name), shape, mean, std, parts, ramp);
    }

    NodeId linear(const std::string& path, const std::string& name, NodeId x, std::int64_t out, bool bias,
                  double std) override {
        Small<ParameterId, max_parameters> p{matrix(name + ".weight", out, graph().node(x).width, std)};
        if (bias) p.push_back(parameter(name + ".bias", Shape(out), 0, 0));
        return beside_.add(graph(), p[0], graph().add(linear_op, path, {x}, p), training_);
    }

  private:
    /// Embedding, blocks and last norm: of a decoder, or of one side of an encoder–decoder.
    NodeId stack(ParameterId table, Placement input, std::int64_t layers) {
        const std::string& side = side_.prefix;
        score_bias_ = none, places_ = bounds_ = none;  // of this side's rows
        first_values[0] = first_values[1] = none;
        NodeId x = c_.reads_patches() ? patches(input)
                                      : graph().add(embedding_op, side + "embed", {}, {table}, {}, input);
        x = scaled(side + "embed.scale", x, c_.embedding.scale);
        if (c_.segments > 0) x = segments(x, input.space);
        auto normed = [&] { return norm(side + "embed.norm", side + "token_embd_norm", x); };
        if (c_.embedding.norm && !c_.embedding.norm_last) x = normed();
        x = positions(x);
        if (c_.embedding.norm_last) x = normed();
        x = dropout(side + "embed.dropout", x);
        first_ = x, input_ = input;
        value_tables_.clear();
        begin_rope();
        begin_score_bias();
        for (layer_ = 0; layer_ < layers; layer_++) {
            width_ = c_.width_at(layer_);
            graph().begin_block(static_cast<int>(side_.causal ? c_.layers + layer_ : layer_));
            const std::string blk = side + "blk." + std::to_string(layer_);
            if (c_.image.merge.at(layer_)) x = merged(blk, x);
            x = block(blk, x);
            const std::int64_t every = c_.residual.halve_every;
            if (every > 0 && (layer_ + 1) % every == 0) x = scaled(blk + ".halved", x, 0.5);
        }
        graph().begin_block(none);
        return norm_ends_branch() ? x : norm(side + "norm", side + "output_norm", x);
    }

    /// Pictures, one patch per row. Where pooling takes the first row, that one has an empty patch, and its
    /// position's vector is the class token (Dosovitskiy et al. 2021, "An image is worth 16x16 words").
    NodeId patches(Placement input) {
        auto width = static_cast<double>(c_.image.patch * c_.image.patch * c_.image.channels);
        NodeId x = graph().add(vectors_op, "patches", {}, {}, {{"width", width}}, input);
        return linear("embed", "patch_embd", x, c_.width, true, 1 / std::sqrt(width));
    }

    /// Of 2 × 2 patches one, twice as wide.
    NodeId merged(const std::string& blk, NodeId x) {
        x = norm(blk + ".merge.norm", blk + ".merge_norm", windows_.merge(blk, x));
        return linear(blk + ".merge", blk + ".merge", x, width_, false, c_.init_std);
    }

    NodeId segments(NodeId x, SpaceId space) {
        NodeId s = graph().add(embedding_op, "segments", {},
                               {matrix("token_types.weight", c_.segments, c_.width, c_.init_std)}, {},
                               {space, graph().stream({"segments"})});
        return graph().add(add_op, "embed.add", {x, s});
    }

    /// The loss of rows x, and the logits of those that `wanted` names.
    void head(ParameterId table, NodeId x, StreamId targets, Placement wanted) {
        Small<ParameterId, max_parameters> p = output_product(table);
        Attributes finish;
        if (c_.logits.scale != 1) finish.set("scale", c_.logits.scale);
        if (c_.logits.softcap != 0) finish.set("softcap", c_.logits.softcap);
        smooth(finish);
        model_.loss = graph().add(cross_entropy_op, "loss", {x}, p, finish, {none, targets});
        NodeId last = graph().add(get_rows_op, "last", {x}, {}, {}, wanted);
        // Logits have the bits of writing also after a prompt: sampling must not depend on how a text came
        // in.
        NodeId y = graph().add(linear_op, "logits", {last}, p, {{"written", 1}});
        y = scaled("logits.scale", y, c_.logits.scale);
        if (c_.logits.softcap != 0)
            y = graph().add(softcap_op, "logits.softcap", {y}, {}, {{"value", c_.logits.softcap}});
        model_.logits = y;
    }

    Small<ParameterId, max_parameters> output_product(ParameterId table) {
        Small<ParameterId, max_parameters> p{
            c_.tie_embeddings ? table : matrix("output.weight", c_.vocabulary, c_.width, head_std())};
        if (c_.logits.bias) p.push_back(graph().parameter("output.bias", Shape(c_.vocabulary), 0, 0));
        return p;
    }

    /// Of an output matrix of its own.
    double head_std() const { return c_.zero_init ? 0 : c_.init_std; }

    void smooth(Attributes& loss) const {
        if (training_ && c_.label_smoothing > 0) loss.set("smoothing", c_.label_smoothing);
    }

    /// Of an encoder's rows: one vector for each sequence, in every way of pooling, and what they tell: of
    /// chosen rows a token or a tag, of sequences a class.
    void encoder_head(ParameterId table, NodeId x, StreamId targets, Placement outputs) {
        NodeId pooled = none;
        for (const std::string_view way : pooling_names) {
            const std::string name(way);
            NodeId one =
                graph().add(pool_op, name, {x}, {}, {{"kind", static_cast<double>(pooling_from_name(way))}},
                            {outputs.space});
            graph().add_program(name, {one});
            model_.pooled.push_back(one);
            if (c_.pooling == name) pooled = one;
        }
        const std::string& kind = c_.head.kind;
        NodeId y = kind == "classes" ? pooled : graph().add(get_rows_op, "chosen", {x}, {}, {}, outputs);
        if (c_.head.transform) y = transformed(y);
        Small<ParameterId, max_parameters> p;
        if (kind == "tokens") {
            p = output_product(table);
        } else {
            y = dropout("head.dropout", y);
            p = {matrix("cls.output.weight", c_.head.classes, graph().node(y).width, head_std()),
                 graph().parameter("cls.output.bias", Shape(c_.head.classes), 0, 0)};
        }
        Attributes loss;
        smooth(loss);
        model_.loss = graph().add(cross_entropy_op, "loss", {y}, p, loss, {none, targets});
        model_.logits = graph().add(linear_op, "logits", {y}, p, {{"written", 1}});
    }

    /// BERT's layer before the words (Devlin et al. 2019; its program's "transform"), or before classes its
    /// tanh layer.
    NodeId transformed(NodeId x) {
        if (c_.head.kind != "tokens")
            return graph().add(activation_op, "head.act",
                               {linear("head", "cls", x, graph().node(x).width, true, c_.init_std)}, {},
                               {{"kind", static_cast<double>(Activation::tanh)}});
        x = linear("head", "output_transform", x, c_.width, true, c_.init_std);
        x = graph().add(activation_op, "head.act", {x}, {}, activation());
        return norm("head.norm", "output_transform_norm", x);
    }

    NodeId scaled(const std::string& path, NodeId x, double factor) {
        return factor == 1 ? x : graph().add(scale_op, path, {x}, {}, {{"value", factor}});
    }

    /// Its head is of classes or tags, not of tokens.
    bool tells_classes() const { return c_.is_encoder() && c_.head.classes > 0; }

    std::vector<NodeId> with_states(NodeId root) const {
        std::vector<NodeId> roots{root};
        roots.insert(roots.end(), appends_.begin(), appends_.end());
        return roots;
    }

    /// What training minimises; and how the experts were used, kept for the log.
    std::vector<NodeId> losses() const {
        std::vector<NodeId> roots{model_.loss};
        if (!training_) return roots;
        roots.insert(roots.end(), model_.router_losses.begin(), model_.router_losses.end());
        for (const auto& [layer, bounds] : model_.expert_bounds) roots.push_back(bounds);
        return roots;
    }

    ParameterId matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double std) {
        return parameter(name, Shape(rows, columns), 0, std);
    }

    NodeId positions(NodeId x) {
        if (c_.position.kind.at(0) == "learned")
            return graph().add(
                position_embedding_op, side_.prefix + "positions", {x},
                {matrix(side_.prefix + "position_embd.weight", c_.context, c_.width, c_.init_std)});
        if (c_.position.kind.at(0) == "sinusoidal")
            return graph().add(sinusoidal_op, side_.prefix + "positions", {x});
        return x;
    }

    NodeId dropout(const std::string& path, NodeId x) {
        if (!training_ || c_.dropout == 0) return x;
        return graph().add(dropout_op, path, {x}, {}, {{"probability", c_.dropout}});
    }

    NodeId norm(const std::string& path, const std::string& name, NodeId x) {
        Small<ParameterId, max_parameters> p;
        bool layer = c_.norm.kind == "layer";
        const Shape shape(graph().node(x).width);
        if (c_.norm.weight) p.push_back(parameter(name + ".weight", shape, 1, 0));
        if (c_.norm.weight && c_.norm.bias && layer) p.push_back(parameter(name + ".bias", shape, 0, 0));
        return graph().add(layer ? layer_norm_op : rms_norm_op, path, {x}, p, {{"epsilon", c_.norm.epsilon}});
    }

    /// The norm of queries or keys: of each head, or of the full width; without biases.
    NodeId heads_norm(const std::string& path, const std::string& name, NodeId x, std::int64_t heads) {
        const std::string& kind = c_.attention.qk_norm;
        if (kind == "none") return x;
        std::int64_t width = kind == "head" ? c_.head_width : graph().node(x).width;
        Attributes a{{"epsilon", c_.norm.epsilon}};
        if (kind != "full") a.set("groups", static_cast<double>(heads));
        if (kind == "unit") return graph().add(rms_norm_op, path, {x}, {}, a);
        std::int64_t columns = kind == "each-head" ? c_.head_width : 0;
        return graph().add(c_.norm.kind == "layer" ? layer_norm_op : rms_norm_op, path, {x},
                           {parameter(name + ".weight", Shape(width), 1, 0, columns)}, a);
    }

    /// What RoPE's nodes of all layers have in common, and their factors.
    void begin_rope() {
        const auto& p = c_.position;
        const auto& kinds = p.kind.list();
        if (std::find(kinds.begin(), kinds.end(), "rope") == kinds.end() || !turn_factors_.empty()) return;
        const auto& scaling = p.scaling;
        turn_ = {{"head_width", static_cast<double>(c_.head_width)}, {"halves", p.halves ? 1.0 : 0.0}};
        std::int64_t turned = p.rotary_width ? p.rotary_width : c_.head_width;
        if (p.rotary_width) turn_.set("rotary_width", static_cast<double>(turned));
        bool yarn = scaling.kind == "yarn";
        if (yarn || p.long_factors)
            turn_.set("original", static_cast<double>(scaling.original ? scaling.original : c_.context));
        if (yarn) {
            turn_.set("extrapolation", scaling.extrapolation);
            turn_.set("beta_fast", scaling.beta_fast), turn_.set("beta_slow", scaling.beta_slow);
        }
        auto factors = [&](const char* name) {
            turn_factors_.push_back(graph().parameter(name, Shape(turned / 2), 1, 0));
        };
        if (p.factors) factors("rope_freqs.weight");
        if (p.long_factors) factors("rope_factors_short.weight"), factors("rope_factors_long.weight");
    }

    NodeId rope(const std::string& path, NodeId x) {
        Attributes turn = turn_;
        turn.set("theta", c_.position.theta.at(layer_));
        const auto& scaling = c_.position.scaling;
        if (double factor = scaling.factor.at(layer_); factor != 1) turn.set("factor", factor);
        if (double scale = scaling.attention.at(layer_); scale != 1) turn.set("scale", scale);
        return graph().add(rope_op, path, {x}, turn_factors_, turn);
    }

    bool deep() const { return c_.norm.placement == "deep"; }
    bool norm_ends_branch() const { return c_.norm.placement == "post" || deep(); }
    /// DeepNorm (Wang et al. 2022, "DeepNet", figure 2, decoder): x + f(x) becomes α x + f(x), and what makes
    /// f(x) linearly (values, outputs, feed-forward layers) starts β times as large.
    double deep_alpha() const { return std::pow(2.0 * static_cast<double>(c_.layers), 0.25); }
    double branch_std() const {
        return deep() ? c_.init_std * std::pow(8.0 * static_cast<double>(c_.layers), -0.25) : c_.init_std;
    }

    NodeId clamped(NodeId x) {
        if (c_.attention.clamp == 0) return x;
        return graph().add(clamp_op, graph().node(x).path + ".clamp", {x}, {},
                           {{"value", c_.attention.clamp}});
    }

    NodeId attention(const std::string& blk, NodeId x) {
        return attend(blk + ".attn", blk + ".attn", x, x, side_.causal);
    }

    /// Queries of the decoder look at what the encoder made of the source.
    NodeId cross_attention(const std::string& blk, NodeId x) {
        return attend(blk + ".cross", blk + ".cross_attn", x, encoded_, false);
    }

    /// Rows of x look at rows of `seen`: their own, or an encoder's.
    NodeId attend(const std::string& path, const std::string& name, NodeId x, NodeId seen, bool causal) {
        const bool self = x == seen;
        std::int64_t d = c_.head_width;
        std::int64_t heads = c_.heads.at(layer_), kv_heads = c_.kv_heads.at(layer_);
        auto kv = static_cast<double>(kv_heads);
        bool bias = c_.attention.bias;
        NodeId q = clamped(linear(path + ".q", name + "_q", x, heads * d, bias, c_.init_std));
        NodeId k = clamped(c_.attention.score == "general"
                               ? seen
                               : linear(path + ".k", name + "_k", seen, kv_heads * d, bias, c_.init_std));
        NodeId v = clamped(linear(path + ".v", name + "_v", seen, kv_heads * d, bias, branch_std()));
        if (self) v = with_token_values(name, v);
        q = heads_norm(path + ".q.norm", name + "_q_norm", q, heads);
        k = heads_norm(path + ".k.norm", name + "_k_norm", k, kv_heads);
        if (self && c_.position.kind.at(layer_) == "rope")
            q = rope(path + ".q.rope", q), k = rope(path + ".k.rope", k);
        if (c_.attention.scale != 0)  // the op's own is 1 / sqrt(D)
            q = scaled(path + ".q.scale", q, c_.attention.scale * std::sqrt(static_cast<double>(d)));
        StateId state = none;
        if (keeps_states()) {
            const bool all = c_.attention.globals > 0 || c_.attention.random > 0 || !self;
            std::int64_t window = all ? 0 : c_.attention.window.at(layer_);
            state = graph().state({path, 2 * kv_heads, d, Rewind::truncate, window, !self});
            (self ? appends_ : source_appends_)
                .push_back(graph().add(append_op, path + ".append", {k, v}, {}, {{"kv_heads", kv}},
                                       {none, none, none, state}));
        }
        NodeId a = scored(path, name, q, k, v, state, causal, self);
        NodeId y = linear(path + ".output", name + "_output", a, width_, bias && c_.attention.output_bias,
                          residual_std());
        return dropout(path + ".dropout", y);
    }

    /// Values mixed with the token's row of a table (K. Jordan et al. 2024, modded-nanogpt, "value
    /// embeddings"; after Zhou et al. 2024, "Value residual learning").
    NodeId with_token_values(const std::string& name, NodeId v) {
        const std::int64_t number = c_.attention.value_embedding.at(layer_);
        if (number == 0) return v;
        auto [table, first] = value_tables_.emplace(number, none);
        if (first)
            table->second = matrix(side_.prefix + "value_embd_" + std::to_string(number) + ".weight",
                                   c_.vocabulary, graph().node(v).width, c_.init_std);
        NodeId rows = graph().add(embedding_op, name + ".value_embed", {}, {table->second}, {}, input_);
        ParameterId own = parameter(name + "_v_scale.weight", Shape(1), 0.5, 0);
        ParameterId theirs = parameter(name + "_value_embd_scale.weight", Shape(1), 0.5, 0);
        return graph().add(mix_op, name + ".v.mix", {v, rows}, {own, theirs});
    }

    NodeId mixer(const std::string& blk, NodeId x) {
        if (c_.image.window > 0) return windows_.lines(blk, attention(blk, windows_.begin(blk, x)));
        if (c_.mixer.at(layer_) == mixer_names()[0]) return attention(blk, x);
        return dropout(blk + ".mixer.dropout", trace_mixer(*this, blk, x));
    }

    /// Attention itself, with what its scores get besides their scale.
    NodeId scored(const std::string& path, const std::string& name, NodeId q, NodeId k, NodeId v,
                  StateId state, bool causal, bool self) {
        const auto& c = c_.attention;
        Attributes a{{"heads", static_cast<double>(c_.heads.at(layer_))},
                     {"kv_heads", static_cast<double>(c_.kv_heads.at(layer_))},
                     {"head_width", static_cast<double>(c_.head_width)},
                     {"window", self ? static_cast<double>(c.window.at(layer_)) : 0},
                     {"causal", causal ? 1.0 : 0.0}};
        if (c.globals > 0 && self) a.set("globals", static_cast<double>(c.globals));
        if (c.random > 0 && self && c.window.at(layer_) > 0) {
            a.set("random", static_cast<double>(c.random));
            a.set("blocks", static_cast<double>((c_.context + choice_block - 1) / choice_block));
            a.set("seed",
                  static_cast<double>(c.random_seed * 4096 + layer_));  // another choice in every layer
        }
        if (c.softcap != 0) a.set("softcap", c.softcap);
        if (c.alibi != 0 && self) a.set("alibi", c.alibi);
        if (c.score == "additive") {
            const std::int64_t width = graph().node(q).width;
            ParameterId w = parameter(name + "_score.weight", Shape(width), 0,
                                      1 / std::sqrt(static_cast<double>(c_.head_width)));
            return graph().add(additive_attention_op, path, {q, k, v}, {w}, a, {none, none, state});
        }
        if (c_.image.window > 0) {
            windows_.tell(a);
            return graph().add(biased_attention_op, path, {q, k, v, windows_.bias()}, {}, a);
        }
        if (score_bias_ == none || !self)
            return graph().add(attention_op, path, {q, k, v}, {}, a, {none, none, state});
        a.set("bias_zero", graph().node(score_bias_).attributes.number("bias_zero"));
        return graph().add(biased_attention_op, path, {q, k, v, score_bias_}, {}, a, {none, none, state});
    }

    /// T5's biases, which all layers share.
    void begin_score_bias() {
        if (c_.attention.buckets == 0) return;
        std::int64_t heads = c_.heads.at(0), reach = c_.attention.reach;
        SpaceId rows = graph().space({"heads", none, none, 0, heads});
        score_bias_ = graph().add(
            score_bias_op, side_.prefix + "score_bias", {},
            {matrix(side_.prefix + "attn_rel_b.weight", c_.attention.buckets, heads, c_.init_std)},
            {{"reach", static_cast<double>(reach)},
             {"causal", side_.causal ? 1.0 : 0.0},
             {"bias_zero", static_cast<double>(reach + score_bias_lanes)}},
            {rows});
    }

    /// A mixture of experts: each token's, weighted, and the one that all tokens share.
    NodeId experts(const std::string& blk, NodeId x) {
        std::string path = blk + ".ffn";
        const auto& e = c_.experts;
        auto count = static_cast<double>(c_.experts_at(layer_)), used = static_cast<double>(e.used);
        SpaceId tokens = graph().node(x).space;
        if (places_ == none) {
            places_ = graph().space({"places", none, tokens, e.used});
            bounds_ = graph().space({"expert bounds", none, none, 0, c_.experts_at(layer_) + 1});
        }
        NodeId scores =
            linear(path + ".router", blk + ".ffn_gate_inp", x, c_.experts_at(layer_), false, c_.init_std);
        NodeId choice = graph().add(expert_choice_op, path + ".choice", {scores}, {}, {{"used", used}});
        NodeId weights = graph().add(expert_weights_op, path + ".weights", {scores, choice}, {},
                                     {{"used", used},
                                      {"sigmoid", e.score == "sigmoid" ? 1.0 : 0.0},
                                      {"renormalize", e.renormalize ? 1.0 : 0.0},
                                      {"scale", e.scale}});
        NodeId places =
            graph().add(expert_places_op, path + ".places", {choice}, {}, {{"experts", count}}, {places_});
        NodeId bounds = graph().add(expert_bounds_op, path + ".bounds", {choice}, {}, {}, {bounds_});
        model_.expert_bounds.emplace_back(layer_, bounds);
        if (training_ && (e.balance_loss != 0 || e.z_loss != 0))
            model_.router_losses.push_back(graph().add(router_loss_op, path + ".router_loss",
                                                       {scores, bounds}, {},
                                                       {{"balance", e.balance_loss},
                                                        {"z", e.z_loss},
                                                        {"sigmoid", e.score == "sigmoid" ? 1.0 : 0.0}}));
        NodeId there =
            graph().add(to_experts_op, path + ".there", {x, places}, {}, {{"used", used}}, {places_});
        auto product = [&](const char* name, NodeId in, std::int64_t out, double std) {
            ParameterId w = parameter(blk + ".ffn_" + name + "_exps.weight",
                                      Shape(c_.experts_at(layer_) * out, graph().node(in).width), 0, std,
                                      c_.experts_at(layer_));
            NodeId y = graph().add(expert_linear_op, path + "." + name, {in, bounds}, {w},
                                   {{"experts", count}, {"used", used}});
            return beside_.add(graph(), w, y, training_);
        };
        std::int64_t width = e.width ? e.width : c_.ffn.width.at(layer_);
        NodeId gate = product("gate", there, width, branch_std()),
               up = product("up", there, width, branch_std());
        NodeId y = graph().add(gated_op, path + ".gated", {gate, up}, {}, activation());
        y = product("down", y, width_, residual_std());
        y = graph().add(from_experts_op, path + ".back", {y, weights, places}, {}, {}, {tokens});
        if (e.shared > 0) y = graph().add(add_op, path + ".both", {y, shared_expert(blk, x)});
        return dropout(path + ".dropout", y);
    }

    NodeId shared_expert(const std::string& blk, NodeId x) {
        std::string path = blk + ".ffn.shared";
        NodeId gate =
            linear(path + ".gate", blk + ".ffn_gate_shexp", x, c_.experts.shared, false, branch_std());
        NodeId up = linear(path + ".up", blk + ".ffn_up_shexp", x, c_.experts.shared, false, branch_std());
        NodeId y = graph().add(gated_op, path + ".gated", {gate, up}, {}, activation());
        y = linear(path + ".down", blk + ".ffn_down_shexp", y, width_, false, residual_std());
        if (!c_.experts.shared_gate) return y;
        ParameterId w = parameter(blk + ".ffn_gate_inp_shexp.weight", Shape(1, width_), 0, c_.init_std, 1);
        NodeId open = graph().add(linear_op, path + ".open", {x}, {w});
        return graph().add(row_gate_op, path + ".gate_result", {y, open});
    }

    Attributes activation() const {
        return {{"kind", static_cast<double>(activation_from_name(c_.ffn.activation))}};
    }

    NodeId feed_forward(const std::string& blk, NodeId x) {
        if (c_.experts_at(layer_) > 0) return experts(blk, x);
        std::string path = blk + ".ffn";
        if (c_.ffn.kind == "channel-mix") return dropout(path + ".dropout", trace_channel_mix(*this, blk, x));
        std::int64_t width = c_.ffn.width.at(layer_);
        NodeId h;
        if (c_.ffn.gated) {
            NodeId gate = linear(path + ".gate", blk + ".ffn_gate", x, width, c_.ffn.bias, branch_std());
            NodeId up = linear(path + ".up", blk + ".ffn_up", x, width, c_.ffn.bias, branch_std());
            h = graph().add(gated_op, path + ".gated", {gate, up}, {}, activation());
        } else {
            NodeId up = linear(path + ".up", blk + ".ffn_up", x, width, c_.ffn.bias, branch_std());
            h = graph().add(activation_op, path + ".act", {up}, {}, activation());
        }
        NodeId y = linear(path + ".down", blk + ".ffn_down", h, width_, c_.ffn.bias, residual_std());
        return dropout(path + ".dropout", y);
    }

    /// pre: x + s f(norm x).  post: norm(x + s f x).  sandwich: x + s norm(f(norm x)) (Ding et al. 2021,
    /// CogView).  res-post: x + s norm(f x) (Liu et al. 2022, Swin Transformer V2).  deep: norm(α x + s f x).
    template <class Branch>
    NodeId residual(const std::string& path, const std::string& name, NodeId x, Branch branch) {
        const std::string& placement = c_.norm.placement;
        bool before = placement == "pre" || placement == "sandwich";
        NodeId y = branch(before ? norm(path + ".norm", name + "_norm", x) : x);
        if (placement == "sandwich" || placement == "res-post")
            y = norm(path + ".post_norm", name + "_post_norm", y);
        x = add(path, deep() ? scaled(path + ".carry", x, deep_alpha()) : x, y);
        return norm_ends_branch() ? norm(path + ".norm", name + "_norm", x) : x;
    }

    /// x + s y.
    NodeId add(const std::string& path, NodeId x, NodeId y) {
        return graph().add(add_op, path + ".add", {x, scaled(path + ".scale", y, c_.residual.scale)});
    }

    /// A block's input: the stream, to which all but the first get that one's input again (modded-nanogpt).
    NodeId with_first(const std::string& blk, NodeId x) {
        if (layer_ == 0 || c_.residual.first == "none") return x;
        const Shape shape(c_.residual.first == "vectors" ? c_.width : 1);
        ParameterId own = parameter(blk + ".stream_scale.weight", shape, 1, 0);
        ParameterId theirs = parameter(blk + ".first_scale.weight", shape, 0, 0);
        return graph().add(mix_op, blk + ".first", {x, first_}, {own, theirs});
    }

    NodeId block(const std::string& blk, NodeId x) {
        x = with_first(blk, x);
        if (c_.residual.kind == "parallel") return parallel_block(blk, x);
        x = residual(blk + ".attn", blk + ".attn", x, [&](NodeId y) { return mixer(blk, y); });
        if (encoded_ != none)
            x = residual(blk + ".cross", blk + ".cross_attn", x,
                         [&](NodeId y) { return cross_attention(blk, y); });
        if (c_.ffn.kind == "none") return x;
        return residual(blk + ".ffn", blk + ".ffn", x, [&](NodeId y) { return feed_forward(blk, y); });
    }

    /// x + s attention(norm x) + s ffn(norm x) (Wang & Komatsuzaki 2021, GPT-J).
    NodeId parallel_block(const std::string& blk, NodeId x) {
        NodeId in = norm(blk + ".attn.norm", blk + ".attn_norm", x);
        NodeId a = mixer(blk, in);
        if (!c_.residual.shared_norm) in = norm(blk + ".ffn.norm", blk + ".ffn_norm", x);
        return add(blk + ".ffn", add(blk + ".attn", x, a), feed_forward(blk, in));
    }

    const ModelConfig& c_;
    bool training_;
    AdapterTracer beside_;
    /// The stack being traced: how its paths and parameters begin, and whether it is a decoder.
    struct Side {
        std::string prefix;
        bool causal = true, states = true;
    } side_;
    std::int64_t layer_ = 0;  // the block being traced
    std::int64_t width_ = 0;  // … and its stream's
    TracedModel model_;
    NodeId encoded_ = none;  // the encoder's rows, in a decoder beside one
    std::vector<NodeId> appends_, source_appends_;
    Attributes turn_;  // of RoPE
    Small<ParameterId, max_parameters> turn_factors_;
    SpaceId places_ = none, bounds_ = none;  // of experts
    NodeId score_bias_ = none;
    PictureWindows windows_{*this};
    Placement input_;                                   // of the stack: its tokens
    NodeId first_ = none;                               // … and what its first block reads
    std::map<std::int64_t, ParameterId> value_tables_;  // … and its tables of values, by number
};

}  // namespace

TracedModel trace(const ModelConfig& config, bool training, std::span<const AdapterShape> adapters) {
    return Tracer(config, training, adapters).run();
}

double forward_flops(const TracedModel& model, double length) {
    Lowering lowering;
    lowering.capacity = {1};
    double flops = 0;
    for (const PlanStep& step : make_plan(model.graph, model.graph.program("loss"), lowering).steps)
        flops += model.graph.flops(model.graph.node(step.node), length);
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
