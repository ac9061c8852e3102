// What may stand in the place of attention: recurrences, whose state does not grow with the sequence.
#pragma once
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "model/config/config.h"

namespace linnet {

/// What the tracer hands to parts of a block that are traced elsewhere.
class BlockParts {
  public:
    virtual ~BlockParts() = default;
    virtual Graph& graph() = 0;
    virtual const ModelConfig& config() const = 0;
    virtual std::int64_t layer() const = 0;
    virtual bool training() const = 0;
    virtual bool keeps_states() const = 0;    // of what is traced now
    virtual bool both_ways() const = 0;       // rows may look ahead: an encoder's
    virtual double residual_std() const = 0;  // of first weights that end a branch
    virtual double branch_std() const = 0;    // … of others in one, but of queries and keys
    /// As Graph::parameter; layers that share weights get the same one.
    virtual ParameterId parameter(Parameter parameter) = 0;
    /// x · Wᵀ (+ b), of the parameters `name`.weight and `name`.bias.
    virtual NodeId linear(const std::string& path, const std::string& name, NodeId x, std::int64_t out,
                          bool bias, double std) = 0;
    /// `product`, a node that multiplies with `weight`, and what adapters add to it.
    virtual NodeId with_adapters(ParameterId weight, NodeId product) = 0;
    /// Training is to leave none of the parameter's values above this one.
    virtual void at_most(ParameterId parameter, double value) = 0;

    /// The products of a feed-forward layer, `width` wide within, of the parameters `blk`.ffn_up`of` and so
    /// on: down(act(up x)); with ffn.gated down(act(gate x) ∘ up x) (Shazeer 2020, "GLU variants").
    NodeId feed_forward_layer(const std::string& path, const std::string& blk, const std::string& of,
                              NodeId x, std::int64_t width, bool bias);
    /// What stands between them; `gate`: none without ffn.gated.
    NodeId activated(const std::string& path, NodeId gate, NodeId up);

    NodeId first_values[2] = {none, none};  // rwkv7: those of the first layer that has some, each way
};

/// The mixer of the layer being traced (not attention), of the normed stream x [R,C]: [R,C]. Parameters are
/// named `blk`.*, as GGUF names them. In encoders it is two, the other one from the last row to the first
/// with weights of its own, `blk`.back.*, and their sum (Schuster & Paliwal 1997).
NodeId trace_mixer(BlockParts& parts, const std::string& blk, NodeId x);

/// RWKV's feed-forward layer, which sees the row before (Peng et al. 2023, section 3.1): key, relu², value;
/// with ffn.gated times σ(receptance).
NodeId trace_channel_mix(BlockParts& parts, const std::string& blk, NodeId x);

}  // namespace linnet
