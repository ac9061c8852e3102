// A model is data: what a config may say of one, with its defaults and its checks. models/README.md explains
// every key.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/repeating.h"

namespace linnet {

inline constexpr std::int64_t most_layers = 4096;  // that a model may have
inline constexpr std::int64_t most_width = 1 << 24, most_heads = 1 << 16;
inline constexpr const char* attention_mixer = "attention";  // what other mixers stand in the place of

/// A setting that differs by layer: a value, or a list that repeats over the layers (`at(layer)`).
template <class T>
using PerLayer = Repeating<T>;

/// The `model` part of a config. Letters: C width, H heads, D head width, F feed-forward width, V vocabulary.
struct ModelConfig {
    std::string kind = "decoder";
    std::int64_t context = 256;  // positions; of an encoder–decoder, on either side
    std::int64_t width = 0;      // C
    std::int64_t layers = 0;
    std::int64_t decoder_layers = 0;  // of an encoder–decoder, whose encoder has layers; 0: as many
    std::int64_t segments = 0;        // kinds of stretches that have an embedding (BERT: 2); 0: none
    std::int64_t start_token = -1;    // an encoder–decoder's answers begin behind it; -1: begin or end
    std::string pooling = "mean";     // how an encoder's rows become one vector
    PerLayer<std::string> mixer = attention_mixer;  // of mixer_names()
    PerLayer<std::int64_t> heads = 0;               // H
    PerLayer<std::int64_t> kv_heads = 0;            // 0 in a config: H
    std::int64_t head_width = 0;                    // D; 0 in a config: C / H
    std::int64_t vocabulary = 0;                    // V; from the tokenizer
    struct {  // of the mixers mamba and mamba2; 0 in a config: as models/README.md says
        std::int64_t inner = 0, state = 0, conv = 4;  // channels; numbers (of mamba2: keys) of a state; rows
        std::int64_t rank = 0;                        // of mamba: of the step sizes' product
        std::int64_t heads = 0, groups = 1;           // of mamba2
        std::string norms = "none";                   // of mamba: of step sizes, b and c
    } ssm;
    struct {  // of the mixers rwkv6 and rwkv7: ranks of thin products; 0 in a config: see models/README.md
        std::int64_t decay = 0, rate = 0, value = 0, gate = 0;
        std::int64_t mix = 0;  // rwkv6
    } rwkv;
    struct {
        std::string kind = "mlp";
        PerLayer<std::int64_t> width = 0;  // F; 0 in a config: 4 C
        std::string activation = "gelu-tanh";
        bool gated = false;
        bool bias = true;
    } ffn;
    struct {                               // a mixture in place of the feed-forward layer
        PerLayer<std::int64_t> count = 0;  // 0: no mixture
        std::int64_t used = 0, width = 0;  // by each token; of one expert, 0: ffn.width
        std::int64_t shared = 0;           // width of one that all tokens use; 0: none
        bool shared_gate = false;          // its result is gated
        std::string score = "softmax";
        bool renormalize = true;              // the weights of the experts that are used sum to 1
        double scale = 1;                     // of the weights
        std::int64_t leading_dense = 0;       // so many first layers have a feed-forward layer instead
        double balance_loss = 0, z_loss = 0;  // of router_loss.cpp, in training
    } experts;
    struct {
        std::string kind = "layer", placement = "pre";
        double epsilon = 1e-5;
        bool weight = true, bias = true;  // what it learns; of LayerNorm alone: bias
    } norm;
    struct {
        std::string kind = "sequential";
        bool shared_norm = false;      // parallel: attention and feed-forward layer read one norm's result
        double scale = 1;              // of what a branch adds
        std::int64_t halve_every = 0;  // after so many layers the stream is halved (RWKV, for f16); 0: never
        std::string first = "none";    // how blocks get the first one's input again, by learned weights
    } residual;
    struct {
        PerLayer<std::string> kind = "learned";  // a list has rope and none alone
        PerLayer<double> theta = 10000;
        bool halves = false;            // RoPE in NeoX order: pairs (i, i + D/2), not (2i, 2i + 1)
        std::int64_t rotary_width = 0;  // elements of a head that RoPE turns; 0: all
        bool factors = false;           // each pair's angle is divided by its number in the tensor rope_freqs
        bool long_factors = false;  // likewise, by rope_factors_short or, in long contexts, rope_factors_long
        struct {
            std::string kind = "linear";
            PerLayer<double> factor = 1;     // the context is so many times as long as in the first training
            std::int64_t original = 0;       // positions of the first training; 0: context
            PerLayer<double> attention = 1;  // scale of turned queries and keys
            double extrapolation = 1, beta_fast = 32, beta_slow = 1;  // of YaRN
        } scaling;
    } position;
    struct {
        bool bias = true;                          // of the projections q, k, v and output
        bool output_bias = true;                   // false: of q, k and v alone
        PerLayer<std::int64_t> window = 0;         // tokens; 0: none
        std::string score = "scaled";              // what a query and a key make; resolved: not dot, cosine
        std::string qk_norm = "none";              // of queries and keys, before RoPE
        double scale = 0;                          // of scores; 0: 1 / sqrt(D)
        double clamp = 0;                          // largest absolute value of q, k and v; 0: any
        double softcap = 0;                        // c: scores become c tanh(score / c); 0: none
        double alibi = 0;                          // ALiBi: head h of H has the slope 2^(-alibi h/H); 0: none
        std::int64_t buckets = 0, reach = 128;     // of learned biases by distance (T5); 0: none
        std::int64_t globals = 0;                  // first positions that all see, beside a window
        std::int64_t random = 0, random_seed = 0;  // blocks of 64 positions that each block sees beside it
        PerLayer<std::int64_t> projected = 0;      // keys and values become so many (Linformer); 0: none
        std::string projected_share = "headwise";  // … by matrices that these share
        PerLayer<std::int64_t> value_embedding = 0;  // number of the table that values get rows of; 0: none
        double dropout = 0;                          // of weights behind the softmax, in training
    } attention;
    struct {
        double scale = 1;
        bool norm = false;
        bool norm_last = false;  // behind positions and segments, not before them
    } embedding;
    struct {                          // what an encoder's rows are for
        std::string kind = "tokens";  // tokens, classes (one per sequence), tags (one per chosen row)
        std::int64_t classes = 0;     // or tags; from the data
        bool transform = false;       // a layer before the output product, as BERT has
        bool next = false;            // beside tokens: whether the second of two texts follows the first
    } head;
    struct {                                                          // pictures in the place of tokens
        std::int64_t width = 0, height = 0, channels = 1, patch = 0;  // patch: its side; 0: no pictures
        std::int64_t window = 0;           // attention within windows of so many patches a side; 0: none
        PerLayer<std::int64_t> shift = 0;  // … which begin so many patches further
        PerLayer<std::int64_t> merge = 0;  // 1: before the layer 2 × 2 patches become one, twice as wide
    } image;
    struct {
        double scale = 1, softcap = 0;  // softcap c: c tanh(x / c), after the scale; 0: none
        bool bias = false;
    } logits;
    std::int64_t tie_layers = 0;  // blocks that have weights; layer i has those of i modulo this; 0: all
    bool tie_embeddings = true;
    double dropout = 0, label_smoothing = 0;  // in training
    double init_std = 0.02;
    bool zero_init = false;  // matrices that end a branch, and an output matrix of its own, start at 0

    bool uses(std::string_view some_mixer) const;  // in one of its layers
    /// Whether the layer's own rows look at each other by attention.
    bool attends(std::int64_t layer) const { return mixer.at(layer) == attention_mixer; }
    bool has_attention() const;  // between its own rows, or to a source's
    /// Blocks of positions in the context, of which attention.random chooses some for each.
    std::int64_t choice_blocks() const;
    bool is_encoder() const { return kind == "encoder"; }
    bool has_encoder() const { return kind != "decoder"; }
    bool has_decoder() const { return kind != "encoder"; }
    bool reads_patches() const { return image.patch > 0; }
    /// Positions up to which LongRoPE's short factors hold, or that YaRN stretches.
    std::int64_t original_context() const {
        return position.scaling.original ? position.scaling.original : context;
    }
    /// Layers of an encoder–decoder's decoder; of others, all.
    std::int64_t decoder_depth() const { return decoder_layers > 0 ? decoder_layers : layers; }
    /// Layers of the deeper side.
    std::int64_t deepest() const { return std::max(layers, decoder_layers); }
    /// Merges before the layer's block, of which each halves a picture's sides and doubles the stream's
    /// width.
    std::int64_t merges_at(std::int64_t layer) const;
    std::int64_t width_at(std::int64_t layer) const { return width << merges_at(layer); }
    std::int64_t last_width() const { return width_at(layers - 1); }

    /// Experts in this layer; 0: a feed-forward layer.
    std::int64_t experts_at(std::int64_t layer) const {
        return layer < experts.leading_dense ? 0 : experts.count.at(layer);
    }
};

// Names of what trace/ has, which is above this: its tables are the one place where they stand.

/// Attention, and what may stand in its place.
const std::vector<std::string>& mixer_names();
/// Whether model.heads and head_width count for the mixer.
bool mixer_has_heads(std::string_view name);
/// What configs call activations.
std::vector<std::string> activation_names();

/// The settings of `config` as a table, keys beginning with "model." (all but the vocabulary, which is the
/// tokenizer's).
std::vector<Field> model_fields(ModelConfig& config);

/// Makes every list as short as it can be and say the same of config.deepest() layers.
void shorten_lists(ModelConfig& config);

/// Fills in what was left out, makes lists as short as they can be and checks that nothing contradicts:
/// Error(Exit::input) naming the key.
void resolve(ModelConfig& config, std::string_view file);

/// Refuses what a file may have but a model that begins from nothing could not learn: Error(Exit::input)
/// naming the key. `config` must be resolved.
void require_learnable(const ModelConfig& config, std::string_view file);

}  // namespace linnet
