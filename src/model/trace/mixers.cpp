#include "model/trace/mixers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/split.h"
#include "model/trace/trace.h"

namespace linnet {
namespace {

/// Traces one mixer; `blk` begins its parameters' names, `path` its nodes'.
class Mixer {
  public:
    Mixer(BlockParts& parts, std::string blk, const char* path, bool back = false)
        : parts_(parts),
          c_(parts.config()),
          blk_(std::move(blk)),
          path_(blk_ + "." + path),
          first_values_(parts.first_values[back ? 1 : 0]) {}

    NodeId mamba(NodeId x);
    NodeId mamba2(NodeId x);
    NodeId rwkv7(NodeId x);
    NodeId rwkv6(NodeId x);
    NodeId lstm(NodeId x);
    NodeId linear_attention(NodeId x);
    NodeId channel_mix(NodeId x);

  private:
    Graph& graph() { return parts_.graph(); }
    std::int64_t width(NodeId x) { return graph().node(x).width; }
    std::string name(const char* own) const { return blk_ + "." + own; }
    std::string path(const char* own) const { return path_ + "." + own; }

    ParameterId vector(const std::string& own, std::int64_t n, double mean, std::int64_t parts = 0) {
        return parts_.parameter({.name = own, .shape = Shape(n), .init_mean = mean, .parts = parts});
    }
    /// A vector that starts as first … last, in each of its rows of `row` (0: one row).
    ParameterId ramp(const std::string& own, std::int64_t n, double first, double last,
                     std::int64_t row = 0) {
        return parts_.parameter(
            {.name = own, .shape = Shape(n), .init_mean = first, .ramp_end = last, .parts = row});
    }
    /// Mamba's A, from -1 to `last` in each of its rows. Files hold it, not the logarithm of -A that its
    /// authors train; so do we, and keep it from becoming 0 or positive, where states would grow.
    ParameterId decays(std::int64_t n, double last, std::int64_t row) {
        constexpr double slowest = -1e-4;
        const ParameterId a = ramp(name("ssm_a"), n, -1, last, row);
        parts_.at_most(a, slowest);
        return a;
    }
    NodeId linear(const char* to, const char* own, NodeId x, std::int64_t out, double std) {
        return parts_.linear(path(to), name(own), x, out, false, std);
    }
    NodeId linear(const char* to, const char* own, NodeId x, std::int64_t out) {
        return linear(to, own, x, out, c_.init_std);
    }
    NodeId product(const char* to, NodeId x, ParameterId w, ParameterId bias) {
        return parts_.with_adapters(w, graph().add(linear_op, path(to), {x}, {w, bias}));
    }
    NodeId biased(const char* to, const char* own, NodeId x, std::int64_t out, double std, ParameterId bias) {
        ParameterId w =
            parts_.parameter({.name = name(own) + ".weight", .shape = {out, width(x)}, .init_std = std});
        return product(to, x, w, bias);
    }
    NodeId activation(const char* to, NodeId x, Activation kind) {
        return graph().add(activation_op, path(to), {x}, {}, {{"kind", static_cast<double>(kind)}});
    }
    NodeId multiply(const char* to, NodeId a, NodeId b) { return graph().add(multiply_op, path(to), {a, b}); }
    NodeId add(const char* to, NodeId a, NodeId b) { return graph().add(add_op, path(to), {a, b}); }
    NodeId scaled(const char* to, NodeId x, double factor) {
        return graph().add(scale_op, path(to), {x}, {}, {{"value", factor}});
    }
    NodeId weighed(const char* to, NodeId x, ParameterId w) {
        return graph().add(weigh_op, path(to), {x}, {w});
    }
    NodeId gated(NodeId gate, NodeId x) {
        return graph().add(gated_op, path("gated"), {gate, x}, {},
                           {{"kind", static_cast<double>(Activation::silu)}});
    }

    /// Where a node takes up and leaves behind its state.
    Placement state(const char* of, std::int64_t planes, std::int64_t width) {
        if (!parts_.keeps_states()) return {};
        StateId id =
            graph().state({.name = path(of), .planes = planes, .width = width, .rewind = Rewind::snapshot});
        return {.reads = id, .writes = id};
    }
    NodeId shift(NodeId x) {
        return graph().add(shift_op, path("shift"), {x}, {}, {}, state("shift", 1, width(x)));
    }

    NodeId rate(const char* to, NodeId x) { return activation(to, x, Activation::sigmoid); }
    NodeId subtract(const char* to, NodeId a, NodeId b) {
        return add(to, a, scaled((std::string(to) + ".less").c_str(), b, -1));
    }
    /// One of the vectors that files hold as one tensor: how much of the row before is mixed in.
    ParameterId lerp(const std::string& to) {
        return ramp(name("time_mix_lerp_") + to + ".weight", c_.width, 1, 0, stacked);
    }
    /// x + w ∘ (what stood in the row before - x).
    NodeId mixed(const char* to, NodeId x, NodeId past) {
        ParameterId w = lerp(to);
        return add((std::string("x.") + to).c_str(), x,
                   weighed((std::string("past.") + to).c_str(), past, w));
    }
    /// A product of two thin matrices, with `between` and a bias behind it.
    NodeId thin(const char* own, NodeId x, std::int64_t rank, const Activation* between, ParameterId bias) {
        const std::string stem = std::string("time_mix_") + own;
        NodeId y = linear((std::string(own) + "1").c_str(), (stem + "1").c_str(), x, rank);
        if (between) y = activation((std::string(own) + ".act").c_str(), y, *between);
        return biased((std::string(own) + "2").c_str(), (stem + "2").c_str(), y, c_.width, c_.init_std, bias);
    }
    std::int64_t heads() const { return c_.heads.at(parts_.layer()); }
    /// LayerNorms of the heads, each with weights of its own (epsilon: that of RWKV's programs).
    NodeId heads_norm(NodeId y) {
        ParameterId w = vector(name("time_mix_ln.weight"), c_.width, 1),
                    b = vector(name("time_mix_ln.bias"), c_.width, 0);
        return graph().add(layer_norm_op, path("ln"), {y}, {w, b},
                           {{"epsilon", 64e-5}, {"groups", static_cast<double>(heads())}});
    }
    /// v times each head's sum of r ∘ k ∘ u: what a row adds to its own result.
    NodeId bonus(NodeId r, NodeId k, NodeId v, ParameterId u) {
        NodeId sum = graph().add(group_sum_op, path("bonus.sum"),
                                 {weighed("bonus.weighed", multiply("bonus.product", k, r), u)}, {},
                                 {{"heads", static_cast<double>(heads())}});
        return multiply("bonus", v, sum);
    }

    /// The causal convolution and SiLU. First weights as PyTorch's: uniform in ±1/√K has this deviation.
    NodeId convolved(const char* to, const char* own, NodeId x) {
        const std::int64_t k = c_.ssm.conv, channels = width(x);
        ParameterId w = parts_.parameter({.name = name(own) + ".weight",
                                          .shape = Shape(channels * k),
                                          .init_std = 1 / std::sqrt(3 * static_cast<double>(k)),
                                          .parts = k});
        NodeId y = graph().add(conv_op, path(to), {x}, {w, vector(name(own) + ".bias", channels, 0)},
                               {{"kernel", static_cast<double>(k)}},
                               k > 1 ? state(to, k - 1, channels) : Placement{});
        return activation((std::string(to) + ".act").c_str(), y, Activation::silu);
    }

    BlockParts& parts_;
    const ModelConfig& c_;
    std::string blk_, path_;
    NodeId& first_values_;
};

/// softplus⁻¹ of the step sizes' first values, 0.001 to 0.1 (Gu & Dao 2023, section 3.6).
constexpr double first_step = -6.907, last_step = -2.252;

/// Gu & Dao 2023, figure 3. With norms of dt, b and c as Jamba has them (Lieber et al. 2024, section 3.4).
NodeId Mixer::mamba(NodeId x) {
    const auto& m = c_.ssm;
    auto normed = [&](const char* to, const char* own, NodeId y) {
        if (m.norms == "none") return y;
        Small<ParameterId, max_parameters> p;
        if (m.norms == "weights") p.push_back(vector(name(own) + ".weight", width(y), 1));
        return graph().add(rms_norm_op, path(to), {y}, p, {{"epsilon", c_.norm.epsilon}});
    };
    NodeId in = linear("in", "ssm_in_x", x, m.inner), gate = linear("gate", "ssm_in_z", x, m.inner);
    NodeId u = convolved("conv", "ssm_conv1d", in);
    NodeId dt = normed("dt.norm", "ssm_dt_norm", linear("dt.rank", "ssm_x_dt", u, m.rank));
    NodeId b = normed("b.norm", "ssm_b_norm", linear("b", "ssm_x_b", u, m.state));
    NodeId c = normed("c.norm", "ssm_c_norm", linear("c", "ssm_x_c", u, m.state));
    const double std = 1 / std::sqrt(3 * static_cast<double>(m.rank));
    ParameterId w =
        parts_.parameter({.name = name("ssm_dt.weight"), .shape = {m.inner, m.rank}, .init_std = std});
    dt = product("dt", dt, w, ramp(name("ssm_dt.bias"), m.inner, first_step, last_step));
    // A starts as -1 … -N (Gu et al. 2022, S4D-Real).
    ParameterId a = decays(m.inner * m.state, -static_cast<double>(m.state), m.state);
    NodeId y = graph().add(selective_scan_op, path("scan"), {u, dt, b, c},
                           {a, vector(name("ssm_d"), m.inner, 1)}, {}, state("scan", m.state, m.inner));
    return linear("out", "ssm_out", gated(gate, y), c_.width, parts_.residual_std());
}

/// Dao & Gu 2024, "Transformers are SSMs", figure 6 (the parallel block), section 7.
NodeId Mixer::mamba2(NodeId x) {
    const auto& m = c_.ssm;
    const auto heads = static_cast<double>(m.heads), groups = static_cast<double>(m.groups);
    NodeId gate = linear("gate", "ssm_in_z", x, m.inner);
    NodeId u = convolved("conv.x", "ssm_conv1d_x", linear("in", "ssm_in_x", x, m.inner));
    auto shared = [&](const char* to, const char* in, const char* conv) {
        NodeId y = convolved((std::string("conv.") + to).c_str(), conv,
                             linear((std::string("in.") + to).c_str(), in, x, m.groups * m.state));
        if (m.heads == m.groups) return y;
        return graph().add(repeat_op, path(to), {y}, {}, {{"heads", heads}, {"groups", groups}});
    };
    NodeId b = shared("b", "ssm_in_b", "ssm_conv1d_b"), c = shared("c", "ssm_in_c", "ssm_conv1d_c");
    NodeId dt = biased("dt", "ssm_in_dt", x, m.heads, c_.init_std,
                       ramp(name("ssm_dt.bias"), m.heads, first_step, last_step));
    dt = activation("dt.act", dt, Activation::softplus);
    ParameterId a = decays(m.heads, -16, 1);
    NodeId decay = activation("decay", weighed("decay.log", dt, a), Activation::exp);
    NodeId y = graph().add(linear_scan_op, path("scan"), {c, decay, b, multiply("u.dt", u, dt)}, {},
                           {{"heads", heads}}, state("scan", m.heads * m.state, m.inner / m.heads));
    y = add("skipped", y, weighed("skip", u, vector(name("ssm_d"), m.heads, 1, 1)));
    y = graph().add(rms_norm_op, path("norm"), {gated(gate, y)},
                    {vector(name("ssm_norm.weight"), m.inner, 1, m.groups > 1 ? m.inner / m.groups : 0)},
                    {{"epsilon", c_.norm.epsilon}, {"groups", groups}});
    return linear("out", "ssm_out", y, c_.width, parts_.residual_std());
}

/// Peng et al. 2025, "RWKV-7 Goose", section 4. Decays are exp(-e^-½ σ(w)).
NodeId Mixer::rwkv7(NodeId x) {
    const std::int64_t width = c_.width, d = c_.head_width;
    const auto h = static_cast<double>(heads());
    const Activation tanh = Activation::tanh, sigmoid = Activation::sigmoid;
    NodeId past = shift(x);
    NodeId xr = mixed("r", x, past), xw = mixed("w", x, past), xk = mixed("k", x, past),
           xv = mixed("v", x, past), xa = mixed("a", x, past), xg = mixed("g", x, past);
    NodeId r = linear("r", "time_mix_receptance", xr, width), k = linear("k", "time_mix_key", xk, width),
           v = linear("v", "time_mix_value", xv, width);
    NodeId w = rate("w.rate",
                    thin("w", xw, c_.rwkv.decay, &tanh, ramp(name("time_mix_w0.weight"), width, -6.5, -1.5)));
    w = activation("w", scaled("w.log", w, -std::exp(-0.5)), Activation::exp);
    ParameterId v0 = vector(name("time_mix_v0.weight"), width, 0);
    if (first_values_ == none) {
        first_values_ = v;
        for (const char* unused :
             {"time_mix_v1.weight", "time_mix_v2.weight"})  // which files have all the same
            parts_.parameter(
                {.name = name(unused),
                 .shape = unused[10] == '1' ? Shape(c_.rwkv.rate, width) : Shape(width, c_.rwkv.rate),
                 .init_std = c_.init_std});
    } else {
        NodeId share = rate("v.share", thin("v", xv, c_.rwkv.value, nullptr, v0));
        v = add("v.mixed", v, multiply("v.first", subtract("v.far", first_values_, v), share));
    }
    NodeId a = rate("a", thin("a", xa, c_.rwkv.rate, nullptr, vector(name("time_mix_a0.weight"), width, 0)));
    NodeId g = linear("g2", "time_mix_g2",
                      activation("g.act", linear("g1", "time_mix_g1", xg, c_.rwkv.gate), sigmoid), width);
    // Removed keys, of length 1: the norm's mean of squares is the square of the length / D.
    NodeId removed = weighed("kk", k, vector(name("time_mix_k_k.weight"), width, 1));
    removed = graph().add(rms_norm_op, path("kk.norm"), {removed}, {}, {{"epsilon", 1e-24}, {"groups", h}});
    removed = scaled("kk.unit", removed, 1 / std::sqrt(static_cast<double>(d)));
    k = add("k.added", k,
            weighed("k.rated", subtract("k.less", multiply("k.rate", k, a), k),
                    vector(name("time_mix_k_a.weight"), width, 1)));
    NodeId y = graph().add(delta_scan_op, path("scan"),
                           {r, w, k, v, scaled("kk.less", removed, -1), multiply("kk.rate", removed, a)}, {},
                           {{"heads", h}}, state("scan", heads() * d, d));
    y = heads_norm(y);
    y = add("mixed", y, bonus(r, k, v, vector(name("time_mix_r_k.weight"), width, 0)));
    return linear("out", "time_mix_output", multiply("gated", y, g), width, parts_.residual_std());
}

/// Peng et al. 2024, "Eagle and Finch", section 4.2. Decays are exp(-e^w).
NodeId Mixer::rwkv6(NodeId x) {
    const std::int64_t width = c_.width, d = c_.head_width;
    NodeId past = shift(x);
    NodeId all =
        add("x.all", x, weighed("past.all", past, ramp(name("time_mix_lerp_x.weight"), width, 1, 0)));
    // How much of the row before each product sees depends on both rows.
    auto seen = [&](const std::string& to) {
        ParameterId share = lerp(to);
        NodeId y = linear(("mix1." + to).c_str(), ("time_mix_w1_" + to).c_str(), all, c_.rwkv.mix);
        y = activation(("mix." + to).c_str(), y, Activation::tanh);
        ParameterId w = parts_.parameter({.name = name("time_mix_w2_") + to + ".weight",
                                          .shape = {width, c_.rwkv.mix},
                                          .init_std = c_.init_std,
                                          .parts = 1});
        y = product(("mix2." + to).c_str(), y, w, share);
        return add(("x." + to).c_str(), x, multiply(("past." + to).c_str(), past, y));
    };
    NodeId xw = seen("w"), xk = seen("k"), xv = seen("v"), xr = seen("r"), xg = seen("g");
    NodeId r = linear("r", "time_mix_receptance", xr, width), k = linear("k", "time_mix_key", xk, width),
           v = linear("v", "time_mix_value", xv, width), g = linear("gate", "time_mix_gate", xg, width);
    NodeId w = activation("w.act", linear("w1", "time_mix_decay_w1", xw, c_.rwkv.decay), Activation::tanh);
    w = biased("w2", "time_mix_decay_w2", w, width, c_.init_std,
               ramp(name("time_mix_decay.weight"), width, -6, -1));
    w = activation("w", scaled("w.log", activation("w.exp", w, Activation::exp), -1), Activation::exp);
    NodeId y =
        graph().add(linear_scan_op, path("scan"), {r, w, k, v}, {},
                    {{"heads", static_cast<double>(heads())}, {"before", 1}}, state("scan", heads() * d, d));
    y = add("mixed", y, bonus(r, k, v, vector(name("time_mix_first.weight"), width, 0, d)));
    return linear("out", "time_mix_output", gated(g, heads_norm(y)), width, parts_.residual_std());
}

/// lstm.cpp's, of the width of the stream. Forget gates start open (Jozefowicz et al. 2015, section 3.2).
NodeId Mixer::lstm(NodeId x) {
    const std::int64_t width = c_.width;
    auto gate = [&](const char* to, const char* own, double bias) {
        return biased(to, own, x, width, c_.init_std, vector(name(own) + ".bias", width, bias));
    };
    NodeId i = gate("input", "lstm_input", 0), f = gate("forget", "lstm_forget", 1),
           g = gate("cell", "lstm_cell", 0), o = gate("output", "lstm_output", 0);
    ParameterId u = parts_.parameter(
        {.name = name("lstm_state.weight"), .shape = {4 * width, width}, .init_std = c_.init_std});
    return graph().add(lstm_op, path("scan"), {i, f, g, o}, {u}, {}, state("scan", 2, width));
}

/// Katharopoulos et al. 2020, section 3.2: attention whose scores are products of features elu(x) + 1.
NodeId Mixer::linear_attention(NodeId x) {
    const std::int64_t d = c_.head_width, all = heads() * d;
    NodeId q = activation("q.features", linear("q", "attn_q", x, all), Activation::elu1),
           k = activation("k.features", linear("k", "attn_k", x, all), Activation::elu1);
    NodeId y = graph().add(linear_attention_op, path("scan"), {q, k, linear("v", "attn_v", x, all)}, {},
                           {{"heads", static_cast<double>(heads())}}, state("scan", heads() * (d + 1), d));
    return linear("out", "attn_output", y, c_.width, parts_.residual_std());
}

NodeId Mixer::channel_mix(NodeId x) {
    NodeId past = shift(x);
    auto mixed = [&](const char* to, const char* own) {
        ParameterId w = ramp(name(own) + ".weight", c_.width, 1, 0);
        return add(to, x, weighed((std::string(to) + ".past").c_str(), past, w));
    };
    NodeId key =
        linear("key", "channel_mix_key", mixed("k", "channel_mix_lerp_k"), c_.ffn.width.at(parts_.layer()));
    NodeId y = linear("value", "channel_mix_value", activation("act", key, Activation::relu2), c_.width,
                      parts_.residual_std());
    if (!c_.ffn.gated) return y;
    NodeId r = linear("receptance", "channel_mix_receptance", mixed("r", "channel_mix_lerp_r"), c_.width);
    return multiply("gated", activation("gate", r, Activation::sigmoid), y);
}

struct MixerRow {
    const char* name;
    const char* path;
    NodeId (Mixer::*trace)(NodeId);
    bool heads = false;  // model.heads counts for it
};
constexpr MixerRow mixers[] = {
    {attention_mixer, "attn", nullptr, true},  // trace.cpp
    {"mamba", "ssm", &Mixer::mamba},
    {"mamba2", "ssm", &Mixer::mamba2},
    {"rwkv7", "time_mix", &Mixer::rwkv7, true},
    {"lstm", "lstm", &Mixer::lstm},
    {"rwkv6", "time_mix", &Mixer::rwkv6, true},
    {"linear-attention", "attn", &Mixer::linear_attention, true},
};

}  // namespace

const std::vector<std::string>& mixer_names() {
    static const std::vector<std::string> names = names_of(mixers);
    return names;
}

bool mixer_has_heads(std::string_view name) {
    return std::ranges::any_of(mixers, [&](const MixerRow& row) { return row.heads && row.name == name; });
}

NodeId BlockParts::feed_forward_layer(const std::string& path, const std::string& blk, const std::string& of,
                                      NodeId x, std::int64_t width, bool bias) {
    auto product = [&](const char* own, NodeId in, std::int64_t out, double std) {
        return linear(path + "." + own, blk + ".ffn_" + own + of, in, out, bias, std);
    };
    const NodeId gate = config().ffn.gated ? product("gate", x, width, branch_std()) : none;
    const NodeId between = activated(path, gate, product("up", x, width, branch_std()));
    return product("down", between, config().width_at(layer()), residual_std());
}

NodeId BlockParts::activated(const std::string& path, NodeId gate, NodeId up) {
    const Attributes kind{{"kind", static_cast<double>(activation_from_name(config().ffn.activation))}};
    if (gate == none) return graph().add(activation_op, path + ".act", {up}, {}, kind);
    return graph().add(gated_op, path + ".gated", {gate, up}, {}, kind);
}

NodeId trace_mixer(BlockParts& parts, const std::string& blk, NodeId x) {
    const std::string& name = parts.config().mixer.at(parts.layer());
    for (const MixerRow& row : mixers) {
        if (!row.trace || row.name != name) continue;
        const NodeId y = (Mixer(parts, blk, row.path).*row.trace)(x);
        if (!parts.both_ways()) return y;
        Graph& graph = parts.graph();
        const std::string back = blk + ".back";
        const NodeId turned = graph.add(reverse_op, back + ".turned", {x});
        const NodeId other = (Mixer(parts, back, row.path, true).*row.trace)(turned);
        return graph.add(add_op, back + ".add", {y, graph.add(reverse_op, back + ".again", {other})});
    }
    throw std::logic_error("a mixer without a row in the table");
}

NodeId trace_channel_mix(BlockParts& parts, const std::string& blk, NodeId x) {
    return Mixer(parts, blk, "ffn").channel_mix(x);
}

}  // namespace linnet
