#include "model/trace/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "graph/plan.h"
#include "model/trace/adapters.h"
#include "model/trace/attention_settings.h"
#include "model/trace/deep_norm.h"
#include "model/trace/experts.h"
#include "model/trace/generator.h"
#include "model/trace/mixers.h"
#include "model/trace/picture_windows.h"
#include "model/trace/projections.h"
#include "model/trace/rope.h"
#include "model/trace/row_room.h"
#include "ops/pool.h"

namespace linnet {
namespace {

/// Builds one model. Parameter names are GGUF's; module paths are ours.
class Tracer : public BlockParts {
  public:
    Tracer(const ModelConfig& config, bool training, std::span<const AdapterShape> adapters,
           const std::optional<GeneratorShape>& generator = {})
        : c_(config), training_(training), beside_(adapters), generator_(generator) {}

    TracedModel run() {
        SpaceId tokens = graph().space({"tokens"});
        StreamId ids = c_.reads_patches()
                           ? graph().stream({"patches", c_.image.patch * c_.image.patch * c_.image.channels})
                           : graph().stream({"tokens"});
        StreamId targets = graph().stream({"targets"}), wanted = graph().stream({"outputs"});
        const Placement outputs{graph().space({"outputs", wanted}), wanted};
        if (generator_) streams_.emplace(graph());
        if (c_.head.next) {
            const StreamId follows = graph().stream({"next"});
            sequences_ = {graph().space({"next", follows}), follows};
        }
        ParameterId table = none;
        if (!c_.reads_patches()) table = matrix("token_embd.weight", c_.vocabulary, c_.width, c_.init_std);
        if (c_.kind == "encoder-decoder") {
            SpaceId source = graph().space({"source"});
            side_ = {"enc.", false, false, 0};
            encoded_ = blocks(embedded(table, {source, graph().stream({"source"})}), c_.layers);
            side_ = {"dec.", true, true, c_.layers};
        } else if (c_.is_encoder()) {
            if (generator_) replace(table, {tokens, ids}, outputs.space);
            side_ = {"", false, false, 0};
        }
        NodeId x = blocks(embedded(table, {tokens, ids}), c_.decoder_depth());
        if (c_.is_encoder())
            encoder_head(table, x, targets, outputs);
        else
            head(table, x, targets, outputs);
        if (c_.head.next) next_head(x);
        graph().add_program("loss", losses());
        graph().add_program("logits", with_states(model_.logits));
        std::vector<NodeId> score = with_states(model_.loss);
        if (tells_classes()) score.push_back(model_.logits);
        if (c_.head.next) score.push_back(model_.next_logits);
        if (replaced_) score.insert(score.end(), {replaced_->loss, replaced_->wrong});
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
    double branch_std() const override {
        return deep() ? c_.init_std * deep_norm(c_, encoded_ != none).beta : c_.init_std;
    }
    /// Projections that end a residual branch start smaller, by the root of how many branches the stack has,
    /// so that the stream's variance does not grow with depth (Radford et al. 2019, GPT-2, section 2.3).
    double residual_std() const override {
        if (c_.zero_init) return 0;
        if (deep()) return branch_std();
        const int each = 1 + (encoded_ != none ? 1 : 0) + (c_.ffn.kind != "none" ? 1 : 0);
        return c_.init_std / std::sqrt(static_cast<double>(each * layers_));
    }

    /// A parameter. A layer whose weights are another's takes that layer's, a generator the encoder's
    /// embedding.
    ParameterId parameter(Parameter p) override {
        const std::string block = side_.prefix + "blk.";
        const bool tied = c_.tie_layers > 0 && p.name.starts_with(block);
        if (tied)
            p.name = block + std::to_string(layer_ % c_.tie_layers) +
                     p.name.substr(p.name.find('.', block.size()));
        if (tied || generator_) {
            const auto& all = graph().parameters();
            for (std::size_t i = by_name_.size(); i < all.size(); i++)
                by_name_.emplace(all[i].name, static_cast<ParameterId>(i));
            if (auto found = by_name_.find(p.name); found != by_name_.end()) return found->second;
        }
        if (p.name.starts_with(generator_prefix)) p.adapter = helper;
        return graph().parameter(std::move(p));
    }

    NodeId linear(const std::string& path, const std::string& name, NodeId x, std::int64_t out, bool bias,
                  double std) override {
        Small<ParameterId, max_parameters> p{matrix(name + ".weight", out, graph().node(x).width, std)};
        if (bias) p.push_back(parameter({.name = name + ".bias", .shape = Shape(out)}));
        return with_adapters(p[0], graph().add(linear_op, path, {x}, p));
    }

    NodeId with_adapters(ParameterId weight, NodeId product) override {
        return beside_.add(graph(), weight, product, training_);
    }

    void at_most(ParameterId id, double value) override {
        model_.upper_bounds.emplace_back(id, static_cast<float>(value));
    }

  private:
    NodeId embedded(ParameterId table, Placement input) {
        const std::string& side = side_.prefix;
        input_ = input;
        NodeId x = c_.reads_patches() ? patches(input) : rows_of(side + "embed", table);
        x = scaled(side + "embed.scale", x, c_.embedding.scale);
        if (c_.segments > 0) x = segments(x, input.space);
        auto normed = [&] { return norm(side + "embed.norm", side_.embedding() + "token_embd_norm", x); };
        if (c_.embedding.norm && !c_.embedding.norm_last) x = normed();
        x = positions(x);
        if (c_.embedding.norm_last) x = normed();
        return dropout(side + "embed.dropout", x);
    }

    /// Rows of a table, for the tokens of the stack.
    NodeId rows_of(const std::string& path, ParameterId table) {
        if (replaced_) return graph().add(embedding_op, path, {replaced_->tokens}, {table});
        return graph().add(embedding_op, path, {}, {table}, {}, input_);
    }

    NodeId blocks(NodeId x, std::int64_t layers) {
        const std::string& side = side_.prefix;
        score_bias_ = none;  // of this side's rows
        experts_.begin();
        first_values[0] = first_values[1] = none;
        first_ = x;
        value_tables_.clear();
        rope_.begin(graph(), c_);
        projections_.begin(side);
        begin_score_bias();
        layers_ = layers;
        for (layer_ = 0; layer_ < layers; layer_++) {
            width_ = c_.width_at(layer_);
            graph().begin_block(static_cast<int>(side_.first_block + layer_));
            const std::string blk = side + "blk." + std::to_string(layer_);
            if (c_.image.merge.at(layer_)) x = merged(blk, x);
            x = block(blk, x);
            const std::int64_t every = c_.residual.halve_every;
            if (every > 0 && (layer_ + 1) % every == 0) x = scaled(blk + ".halved", x, 0.5);
        }
        graph().begin_block(none);
        return norm_ends_branch() ? x : norm(side + "norm", side + "output_norm", x);
    }

    /// A generator beside this encoder: its guesses, with BERT's layer before the words, put among the
    /// tokens.
    void replace(ParameterId table, Placement input, SpaceId outputs) {
        side_ = {generator_prefix, false, false, c_.layers};
        NodeId x = embedded(table, input);
        const ModelConfig whole = std::exchange(c_, generator_config(c_, generator_->share));
        x = linear("gen.narrow", "gen.embed_narrow", x, c_.width, true, c_.init_std);
        x = blocks(x, c_.layers);
        c_ = whole;
        x = graph().add(get_rows_op, "gen.chosen", {x}, {}, {}, {streams_->masks, streams_->rows});
        x = transformed(x);
        const ParameterId bias = parameter({.name = "gen.output.bias", .shape = Shape(c_.vocabulary)});
        replaced_ = replace_tokens(graph(), *streams_, *generator_, x, {table, bias}, input.space, outputs);
        graph().add_program("replaced", {replaced_->loss, replaced_->wrong});
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
        model_.loss = graph().add(cross_entropy_op, "loss", {x}, p, loss_settings(), {none, targets});
        NodeId last = graph().add(get_rows_op, "last", {x}, {}, {}, wanted);
        // Logits have the bits of writing also after a prompt: sampling must not depend on how a text came
        // in.
        model_.logits = scaled_and_capped(graph().add(linear_op, "logits", {last}, p, {{"written", 1}}));
    }

    /// Scale, cap and smoothing, which a loss applies itself.
    Attributes loss_settings() const {
        Attributes loss;
        if (c_.logits.scale != 1) loss.set("scale", c_.logits.scale);
        if (c_.logits.softcap != 0) loss.set("softcap", c_.logits.softcap);
        if (training_ && c_.label_smoothing > 0) loss.set("smoothing", c_.label_smoothing);
        return loss;
    }

    /// The same scale and cap, of logits that are wanted themselves.
    NodeId scaled_and_capped(NodeId y) {
        y = scaled("logits.scale", y, c_.logits.scale);
        if (c_.logits.softcap == 0) return y;
        return graph().add(softcap_op, "logits.softcap", {y}, {}, {{"value", c_.logits.softcap}});
    }

    Small<ParameterId, max_parameters> output_product(ParameterId table) {
        Small<ParameterId, max_parameters> p{
            c_.tie_embeddings ? table : matrix("output.weight", c_.vocabulary, c_.width, head_std())};
        if (c_.logits.bias)
            p.push_back(graph().parameter({.name = "output.bias", .shape = Shape(c_.vocabulary)}));
        return p;
    }

    /// Of an output matrix of its own.
    double head_std() const { return c_.zero_init ? 0 : c_.init_std; }

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
        if (c_.head.transform) y = kind == "tokens" ? transformed(y) : tanh_layer("head", y);
        Small<ParameterId, max_parameters> p;
        if (kind == "tokens") {
            p = output_product(table);
        } else {
            y = dropout("head.dropout", y);
            p = class_product(y, c_.head.classes);
        }
        Attributes loss = loss_settings();
        if (generator_) loss.set("weight", generator_->weight);
        model_.loss = replaced_ ? graph().add(cross_entropy_op, "loss", {y, replaced_->wrong}, p, loss)
                                : graph().add(cross_entropy_op, "loss", {y}, p, loss, {none, targets});
        model_.logits = scaled_and_capped(graph().add(linear_op, "logits", {y}, p, {{"written", 1}}));
    }

    /// Of two texts in a sequence, whether the second follows the first (Devlin et al. 2019, BERT,
    /// section 3.1, task 2): a loss of its own, of whole sequences.
    void next_head(NodeId x) {
        NodeId y = graph().add(pool_op, "next.first", {x}, {},
                               {{"kind", static_cast<double>(Pooling::first)}}, {sequences_.space});
        y = tanh_layer("next", y);
        const Small<ParameterId, max_parameters> p = class_product(y, next_classes);
        model_.next_loss =
            graph().add(cross_entropy_op, "next.loss", {y}, p, {{"sequences", 1}}, {none, sequences_.stream});
        model_.next_logits = graph().add(linear_op, "next.logits", {y}, p, {{"written", 1}});
        graph().add_program("next", {model_.next_logits});
    }

    Small<ParameterId, max_parameters> class_product(NodeId y, std::int64_t classes) {
        return {matrix("cls.output.weight", classes, graph().node(y).width, head_std()),
                graph().parameter({.name = "cls.output.bias", .shape = Shape(classes)})};
    }

    /// BERT's before classes.
    NodeId tanh_layer(const std::string& path, NodeId x) {
        x = linear(path, "cls", x, graph().node(x).width, true, c_.init_std);
        return graph().add(activation_op, path + ".act", {x}, {},
                           {{"kind", static_cast<double>(Activation::tanh)}});
    }

    /// BERT's before the words (Devlin et al. 2019; its program's "transform").
    NodeId transformed(NodeId x) {
        const std::string& side = side_.prefix;
        x = linear(side + "head", side + "output_transform", x, c_.width, true, c_.init_std);
        x = graph().add(activation_op, side + "head.act", {x}, {}, activation());
        return norm(side + "head.norm", side + "output_transform_norm", x);
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
        if (c_.head.next) roots.push_back(model_.next_loss);
        if (replaced_) roots.push_back(replaced_->loss);
        roots.insert(roots.end(), model_.router_losses.begin(), model_.router_losses.end());
        for (const auto& [layer, bounds] : model_.expert_bounds) roots.push_back(bounds);
        return roots;
    }

    ParameterId matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double std) {
        return parameter({.name = name, .shape = {rows, columns}, .init_std = std});
    }

    NodeId positions(NodeId x) {
        if (c_.position.kind.at(0) == "learned")
            return graph().add(
                position_embedding_op, side_.prefix + "positions", {x},
                {matrix(side_.embedding() + "position_embd.weight", c_.context, c_.width, c_.init_std)});
        if (c_.position.kind.at(0) == "sinusoidal")
            return graph().add(sinusoidal_op, side_.prefix + "positions", {x});
        if (c_.position.kind.at(0) == "bits")
            return graph().add(position_bits_op, side_.prefix + "positions", {x});
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
        if (c_.norm.weight)
            p.push_back(parameter({.name = name + ".weight", .shape = shape, .init_mean = 1}));
        if (c_.norm.weight && c_.norm.bias && layer)
            p.push_back(parameter({.name = name + ".bias", .shape = shape}));
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
        ParameterId w =
            parameter({.name = name + ".weight", .shape = Shape(width), .init_mean = 1, .parts = columns});
        return graph().add(c_.norm.kind == "layer" ? layer_norm_op : rms_norm_op, path, {x}, {w}, a);
    }

    bool deep() const { return c_.norm.placement == "deep"; }
    bool norm_ends_branch() const { return c_.norm.placement == "post" || deep(); }

    NodeId clamped(NodeId x) {
        if (c_.attention.clamp == 0) return x;
        return graph().add(clamp_op, graph().node(x).path + ".clamp", {x}, {},
                           {{"value", c_.attention.clamp}});
    }

    NodeId attention(const std::string& blk, NodeId x) {
        return attend(blk + ".attn", blk + ".attn", x, x, side_.causal);
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
            q = rope_.add(graph(), c_, layer_, path + ".q.rope", q),
            k = rope_.add(graph(), c_, layer_, path + ".k.rope", k);
        if (c_.attention.scale != 0)  // the op's own is 1 / sqrt(D)
            q = scaled(path + ".q.scale", q, c_.attention.scale * std::sqrt(static_cast<double>(d)));
        if (const std::int64_t rows = projected_at(c_, layer_, self, causal))
            projections_.add(path, name, rows, k, v);
        StateId state = none;
        if (keeps_states()) {
            const bool all = c_.attention.globals > 0 || c_.attention.random > 0 || !self;
            std::int64_t window = all ? 0 : c_.attention.window.at(layer_);
            state = graph().state(
                {.name = path, .planes = 2 * kv_heads, .width = d, .window = window, .source = !self});
            (self ? appends_ : source_appends_)
                .push_back(graph().add(append_op, path + ".append", {k, v}, {}, {{"kv_heads", kv}},
                                       {.writes = state}));
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
        NodeId rows = rows_of(name + ".value_embed", table->second);
        auto share = [&](const char* of) {
            return parameter({.name = name + of, .shape = Shape(1), .init_mean = 0.5});
        };
        const ParameterId own = share("_v_scale.weight"), theirs = share("_value_embd_scale.weight");
        return graph().add(mix_op, name + ".v.mix", {v, rows}, {own, theirs});
    }

    NodeId mixer(const std::string& blk, NodeId x) {
        if (c_.image.window > 0) return windows_.lines(blk, attention(blk, windows_.begin(blk, x)));
        if (c_.attends(layer_)) return attention(blk, x);
        return dropout(blk + ".mixer.dropout", trace_mixer(*this, blk, x));
    }

    /// Attention itself, with what its scores get besides their scale.
    NodeId scored(const std::string& path, const std::string& name, NodeId q, NodeId k, NodeId v,
                  StateId state, bool causal, bool self) {
        Attributes a = attention_settings(c_, layer_, self, causal, training_);
        if (c_.attention.score == "additive") {
            const std::int64_t width = graph().node(q).width;
            ParameterId w = parameter({.name = name + "_score.weight",
                                       .shape = Shape(width),
                                       .init_std = 1 / std::sqrt(static_cast<double>(c_.head_width))});
            return graph().add(additive_attention_op, path, {q, k, v}, {w}, a, {.reads = state});
        }
        if (c_.image.window > 0) {
            windows_.tell(a);
            return graph().add(biased_attention_op, path, {q, k, v, windows_.bias()}, {}, a);
        }
        if (score_bias_ == none || !self)
            return graph().add(attention_op, path, {q, k, v}, {}, a, {.reads = state});
        a.set("bias_zero", graph().node(score_bias_).attributes.number("bias_zero"));
        return graph().add(biased_attention_op, path, {q, k, v, score_bias_}, {}, a, {.reads = state});
    }

    /// T5's biases, which all layers share.
    void begin_score_bias() {
        if (c_.attention.buckets == 0) return;
        std::int64_t heads = c_.heads.at(0), reach = c_.attention.reach;
        SpaceId rows = graph().space({.name = "heads", .fixed = heads});
        score_bias_ = graph().add(
            score_bias_op, side_.prefix + "score_bias", {},
            {matrix(side_.prefix + "attn_rel_b.weight", c_.attention.buckets, heads, c_.init_std)},
            {{"reach", static_cast<double>(reach)},
             {"causal", side_.causal ? 1.0 : 0.0},
             {"bias_zero", static_cast<double>(reach + score_bias_lanes)}},
            {rows});
    }

    Attributes activation() const {
        return {{"kind", static_cast<double>(activation_from_name(c_.ffn.activation))}};
    }

    NodeId feed_forward(const std::string& blk, NodeId x) {
        if (c_.experts_at(layer_) > 0)
            return dropout(blk + ".ffn.dropout", experts_.trace(blk, x, branch_std()));
        std::string path = blk + ".ffn";
        if (c_.ffn.kind == "channel-mix") return dropout(path + ".dropout", trace_channel_mix(*this, blk, x));
        return dropout(path + ".dropout",
                       feed_forward_layer(path, blk, "", x, c_.ffn.width.at(layer_), c_.ffn.bias));
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
        x = add(path, deep() ? scaled(path + ".carry", x, deep_norm(c_, encoded_ != none).alpha) : x, y);
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
        ParameterId own = parameter({.name = blk + ".stream_scale.weight", .shape = shape, .init_mean = 1});
        ParameterId theirs = parameter({.name = blk + ".first_scale.weight", .shape = shape});
        return graph().add(mix_op, blk + ".first", {x, first_}, {own, theirs});
    }

    NodeId block(const std::string& blk, NodeId x) {
        x = with_first(blk, x);
        if (c_.residual.kind == "parallel") return parallel_block(blk, x);
        x = residual(blk + ".attn", blk + ".attn", x, [&](NodeId y) { return mixer(blk, y); });
        if (encoded_ != none)  // queries look at what the encoder made of the source
            x = residual(blk + ".cross", blk + ".cross_attn", x, [&](NodeId y) {
                return attend(blk + ".cross", blk + ".cross_attn", y, encoded_, false);
            });
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

    ModelConfig c_;  // of the stack being traced
    bool training_;
    AdapterTracer beside_;
    std::optional<GeneratorShape> generator_;
    std::optional<GeneratorStreams> streams_;
    Placement sequences_;                     // what head.next tells of each
    std::optional<ReplacedTokens> replaced_;  // what a generator, traced first, left to read
    /// The stack being traced: how its paths and parameters begin, whether it is a decoder, its first block.
    struct Side {
        std::string prefix;
        bool causal = true, states = true;
        std::int64_t first_block = 0;
        /// How those of its embedding begin, which a generator has not of its own.
        std::string embedding() const { return prefix == generator_prefix ? "" : prefix; }
    } side_;
    std::int64_t layers_ = 0;  // of that stack
    std::int64_t layer_ = 0;   // the block being traced
    std::int64_t width_ = 0;   // … and its stream's
    TracedModel model_;
    std::unordered_map<std::string, ParameterId> by_name_;  // the graph's, where parameters are shared
    NodeId encoded_ = none;                                 // the encoder's rows, in a decoder beside one
    std::vector<NodeId> appends_, source_appends_;
    RopeTracer rope_;
    ExpertsTracer experts_{*this, model_};
    NodeId score_bias_ = none;
    PictureWindows windows_{*this};
    Projections projections_{*this};
    Placement input_;                                   // of the stack: its tokens
    NodeId first_ = none;                               // … and what its first block reads
    std::map<std::int64_t, ParameterId> value_tables_;  // … and its tables of values, by number
};

}  // namespace

TracedModel trace(const ModelConfig& config, bool training, std::span<const AdapterShape> adapters) {
    return Tracer(config, training, adapters).run();
}

TracedModel trace_with_generator(const ModelConfig& config, std::span<const AdapterShape> adapters,
                                 const GeneratorShape& generator) {
    return Tracer(config, true, adapters, generator).run();
}

double forward_flops(const TracedModel& model, double length) {
    Lowering lowering;
    lowering.capacity = capacities(model.graph, {.tokens = 1});
    double flops = 0;
    for (const PlanStep& step : make_plan(model.graph, model.graph.program("loss"), lowering).steps)
        flops += model.graph.flops(model.graph.node(step.node), length);
    return flops;
}

}  // namespace linnet
