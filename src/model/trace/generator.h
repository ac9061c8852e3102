// Replaced tokens (Clark et al. 2020, "ELECTRA", sections 2 and 3): beside an encoder stands a smaller one in
// training, the generator, which learns to guess masked tokens. Tokens drawn from its guesses take the places
// of the masked ones, and the encoder learns to tell which tokens are not those of the text. They share the
// embedding, whole; no gradient of the encoder goes through the drawing.
#pragma once
#include <span>

#include "model/trace/trace.h"

namespace linnet {

struct GeneratorShape {
    double share = 0.25;   // of the encoder's width, heads, feed-forward width and Mamba's channels
    double masked = 0.15;  // of the tokens: as many as the batch masks, about
    double weight = 50;    // of the encoder's loss; that of the generator has 1, each a mean over its rows
};

/// What its parameters' names begin with, and their Parameter::adapter: no model's file holds them.
inline constexpr const char* generator_prefix = "gen.";
inline constexpr std::int32_t helper = -2;

/// The graph for training of an encoder of two tags with a generator beside it. Its program "replaced" has
/// the generator's loss [masks, 1], and the targets of the encoder's that it made, integers [outputs, 1].
TracedModel trace_with_generator(const ModelConfig& config, std::span<const AdapterShape> adapters,
                                 const GeneratorShape& generator);

/// A generator's blocks: as the encoder's, narrower, with heads of the same width and without experts and
/// tables of values.
ModelConfig generator_config(const ModelConfig& encoder, double share);

/// What the encoder reads and has to tell, of the same rows: integers.
struct ReplacedTokens {
    NodeId loss;    // the generator's [masks, 1]
    NodeId tokens;  // [R, 1]
    NodeId wrong;   // [outputs, 1]: 1 where another token was drawn than stood there, else 0
};

/// The streams beside "tokens", which the generator reads. A batch without generator has none of them.
///   "masks"      the masked rows, ascending; entries of the space of that name
///   "originals"  of each, the token that stood there
///   "draws"      of each, a random number below 2^31
///   "given"      of each row its token, or -1 - k in the place of the k-th mask
///   "labels"     of each entry of "outputs" 0, or -1 - k likewise
struct GeneratorStreams {
    SpaceId masks;
    StreamId rows, originals, draws, given, labels;
    explicit GeneratorStreams(Graph& graph);
};

/// From the generator's rows [masks, C] before the product with `parameters`, a matrix and its bias.
ReplacedTokens replace_tokens(Graph& graph, const GeneratorStreams& streams, const GeneratorShape& shape,
                              NodeId guesses, const Small<ParameterId, max_parameters>& parameters,
                              SpaceId tokens, SpaceId outputs);

}  // namespace linnet
