// The numeric inner loops, as one table of functions per instruction set. Kernels never allocate, never
// throw, and know nothing of threads: a caller hands each thread its own part of the output.
//
// Letters: R rows (tokens), C width, H heads, D head width, F feed-forward width, V vocabulary, T time.
// A matrix product here gives each output element the same bits whatever part of the output is asked for, so
// that the split over threads never shows in the result.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace linnet {

/// An operand of a matrix product: element (i, j) stands at data[i * row + j * col], counted in elements.
struct Operand {
    const void* data = nullptr;
    DType type = DType::f32;  // f32, f16, bf16 (f64 in the table for double); B also a block type, where told
    std::int64_t row = 0, col = 1;
};

/// C[M,N] = start + A[M,K] · B[K,N], for the outputs in [m_begin, m_end) × [n_begin, n_end).
/// start is the sum of whichever are given: C itself (accumulate), bias[N], add[M,N].
template <class Real>
struct Gemm {
    std::int64_t m = 0, n = 0, k = 0;
    Operand a, b;
    Real* c = nullptr;
    std::int64_t c_row = 0;
    bool accumulate = false;
    std::uint16_t* bf16 = nullptr;  // NarrowProducts::rounded: C, rounded, instead of c; not accumulated to
    const Real* bias = nullptr;     // [N] or null
    const Real* add = nullptr;      // [M,N] or null, rows add_row apart; may be c itself
    std::int64_t add_row = 0;
    std::int64_t m_begin = 0, m_end = 0, n_begin = 0, n_end = 0;
    int streams = 1;  // rows of W that products of writing read together: 1 or 4 (no bit depends on it)
};

/// Inverted dropout (Srivastava et al. 2014): element i is kept where its 16 bits of Philox' stream are at
/// least `limit`. A block of Philox, counter c, serves the elements [8c, 8c + 8).
template <class Real>
struct Dropout {
    std::uint64_t key = 0, stream = 0, counter = 0;  // counter: of the first elements
    std::uint32_t limit = 0;                         // of 65536; 0: all are kept
    Real factor = 1;                                 // of those that are kept
};
/// Elements that a block of Philox serves: parts of an array begin at multiples.
inline constexpr std::int64_t dropout_draws = 8;

/// What a table of score biases has at either end, so that it can be read in vectors.
inline constexpr std::int64_t score_bias_lanes = 16;
/// Positions of a block of Attention::chosen.
inline constexpr std::int64_t choice_block = 64;
/// Elements of Attention::dropout from one row of weights to the next: more than there are keys.
inline constexpr std::int64_t weight_row = std::int64_t{1} << 27;

/// One sequence's attention. Query row i sits at position cached + i and sees key positions j with
///   j <= cached + i (causal) and |j - cached - i| < window (window > 0), or j < globals (as far as causal);
/// not causal, a query at a position below globals sees all keys (Longformer: Beltagy et al. 2020,
/// section 3.1); and the keys of blocks that are chosen for its own block (BigBird: Zaheer et al. 2020,
/// section 2), as far as causal. Query head h reads key/value head h / (heads / kv_heads). Its score with a
/// key at distance d = j - position is scale · q·k, then soft capped, then - slope · |d| + bias(d).
template <class Real>
struct Attention {
    std::int64_t rows = 0, cached = 0, keys = 0;  // T queries; keys are [0, keys)
    std::int64_t heads = 0, kv_heads = 0, head_width = 0, window = 0;
    std::int64_t globals = 0;  // the first positions, which every query sees whatever its window
    bool causal = true;
    Real scale = 1, softcap = 0;   // softcap c > 0: c · tanh(score / c)
    const Real* slopes = nullptr;  // [H] (ALiBi, Press et al. 2022); null: 0
    /// [H, bias_row], null: 0. Distance d stands in column bias_zero + d; distances beyond the ends are as
    /// the ends, whose outermost score_bias_lanes columns are alike.
    const Real* bias = nullptr;
    std::int64_t bias_row = 0, bias_zero = 0;
    /// > 0: biases by places instead, bias_row of them for each head: key j of query i in i · bias_keys + j;
    /// a multiple of score_bias_lanes, at least the keys.
    std::int64_t bias_keys = 0;
    /// [blocks, chosen_row] of blocks of choice_block positions: not 0 where the keys of a column's block are
    /// seen by the queries of a row's; null: none.
    const Real* chosen = nullptr;
    std::int64_t chosen_row = 0;
    /// Of the weights, behind their softmax: key j's weight for query row i of head h is element (i · heads +
    /// h) · weight_row + j. What reads states knows none.
    Dropout<Real> dropout = {};
    const Real* q = nullptr;
    const void *k = nullptr, *v = nullptr;
    /// Of k and v: rows of D, in whole blocks. In NarrowProducts::attention it may be bf16, and q and out are
    /// bf16, too.
    DType stored = sizeof(Real) == 8 ? DType::f64 : DType::f32;
    std::int64_t q_row = 0, k_row = 0, v_row = 0;     // elements from one position to the next
    std::int64_t q_head = 0, k_head = 0, v_head = 0;  // elements from one head to the next
    /// Position j's key and value stand in row j % ring, a multiple of attention_ring where keys reach it.
    std::int64_t ring = INT64_MAX;
    Real* out = nullptr;  // [T, H·D]: head h at h * D
    std::int64_t out_row = 0;
    Real* lse = nullptr;  // [H, T] log-sum-exp of each query's scores (null where no backward follows)
};

/// Writes dq, dk and dv, or adds to them where accumulate_* says so, for the same sequence (no cache: cached
/// must be 0). dq/dk/dv have the strides of q/k/v (k and v: Real); dout has those of out.
template <class Real>
struct AttentionBackward {
    Attention<Real> forward;
    const Real* dout = nullptr;
    Real *dq = nullptr, *dk = nullptr, *dv = nullptr;
    Real* dbias = nullptr;  // as forward.bias, added to; null: not wanted
    bool accumulate_q = false, accumulate_k = false, accumulate_v = false;
};

enum class Activation : std::uint8_t {
    relu,
    gelu,
    gelu_tanh,
    silu,
    relu2,
    tanh,
    sigmoid,
    softplus,
    exp,
    elu1  // elu(x) + 1
};

// Recurrences over the rows of one sequence: scan.h.
template <class Real>
struct SelectiveScan;
template <class Real>
struct SelectiveScanBackward;
template <class Real>
struct MatrixScan;
template <class Real>
struct MatrixScanBackward;

/// Update u of d = gradient_scale · gradient + l2 · p (Adam: Kingma & Ba 2015; Lion: Chen et al. 2023).
enum class UpdateRule : std::uint8_t {
    adam,  // m ← β1·m + (1-β1)·d, v ← β2·v + (1-β2)·d²; u = rectified · m̂ / (√v̂ + ε); rectified 0: m̂
    momentum,  // m ← β1·m + d; u = m, with nesterov d + β1·m; where m is null: d
    lion,      // u = sign(β1·m + (1-β1)·d); m ← β2·m + (1-β2)·d
};

/// One step: p ← p - lr · (u + weight_decay · p) (decoupled decay: Loshchilov & Hutter 2019).
template <class Real>
struct Update {
    UpdateRule rule = UpdateRule::adam;
    Real lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
    Real correction1 = 1, correction2 = 1;  // m̂ = m / correction1, v̂ = v / correction2
    Real gradient_scale = 1;                // from clipping
    Real l2 = 0, rectified = 1;
    bool nesterov = false;
    bool cautious = false;  // decays only where u and p have the same sign (Chen et al. 2025)
};

/// Where a product may be cut into parts, and what a part costs beside its multiply-adds.
struct ProductCut {
    std::int64_t tile_m, tile_n;
    // What packing an element of A or of B costs, in multiply-adds. A part packs its A once, and its B once
    // for each `block_m` of its rows.
    double packing_a, packing_b;
    std::int64_t block_m = INT64_MAX;
};

/// What products of reading multiply: 16-bit integers (block types: activations of 12 bits; halves: of 15),
/// bytes by small matrices or by dot products of four, or bf16 on matrix units. Sets with the same numbers
/// give the same bits.
enum class PanelNumbers { integers, bytes, dots, bf16 };

/// gemm and gemv for B of a block type (`halves`: of f16 and bf16), stored [N,K], and A with col 1: the same
/// promises, and gemm's workspace. Null: unpack B and use the plain ones.
template <class Real>
struct BlockProducts {
    /// Reading. Activations are rounded to what numbers_of says of B's type.
    void (*panels)(const Gemm<Real>&, void* workspace) = nullptr;
    PanelNumbers panel_numbers = PanelNumbers::integers;
    ProductCut panel_cut = {};   // tile_m 0: as other products are
    std::uint64_t dots_too = 0;  // bit t: DType t is read by dots whatever panel_numbers says
    /// Reading with B of f16 and bf16, whose rows may have any length. Rounding loses less, in root mean
    /// square, than activations in f16 would. Null: the plain product.
    void (*halves)(const Gemm<Real>&, void* workspace) = nullptr;
    PanelNumbers half_numbers = PanelNumbers::integers;
    PanelNumbers numbers_of(DType type) const {
        if (info(type).block == 1) return half_numbers;
        return dots_too >> static_cast<int>(type) & 1 ? PanelNumbers::dots : panel_numbers;
    }
    /// What reads with B of this type; null: nothing of its own.
    auto reading(DType type) const {
        return info(type).block > 1 ? panels : type == DType::f16 || type == DType::bf16 ? halves : nullptr;
    }
    /// Writing. Activations are rounded to integers of 8 bits. K is at most rows_longest.
    void (*rows)(const Gemm<Real>&, void* workspace) = nullptr;
    std::int64_t rows_longest = 0;
};

/// Products whose operands are rounded to bf16, or become two of bf16 each, as they are packed; sums are f32.
/// Of training: gemm's promises, for operands of f32, f16 and bf16 of which one stride is 1. Null: this set
/// has none.
template <class Real>
struct NarrowProducts {
    void (*rounded)(const Gemm<Real>&, void* workspace) = nullptr;
    std::int64_t rounded_longest = 0;  // K up to which Gemm::bf16 may be asked for
    /// Each number as two of bf16 and each product as three of those: error about 5e-6, where f32 has 1e-6.
    void (*split)(const Gemm<Real>&, void* workspace) = nullptr;
    /// As in KernelTable, where keys and values are Real or bf16. Null: this set has none.
    void (*attention)(const Attention<Real>&, std::int64_t head, std::int64_t query_begin,
                      std::int64_t query_end, void* workspace) = nullptr;
    void (*attention_backward)(const AttentionBackward<Real>&, std::int64_t kv_head,
                               void* workspace) = nullptr;
    /// Of reading: as KernelTable::attention, for all that may be stored, with numbers and products as in
    /// `split`. Null: use KernelTable::attention.
    void (*attention_split)(const Attention<Real>&, std::int64_t head, std::int64_t query_begin,
                            std::int64_t query_end, void* workspace) = nullptr;
    std::size_t attention_split_workspace = 0;  // bytes, at most `workspace`
    std::size_t workspace = 0;                  // bytes, of any of them
    ProductCut cut = {};
    double speed = 1;  // about: how often as fast as gemm
};

template <class Real>
struct KernelTable {
    const char* name;  // as select_kernels takes it, or "double"

    // Matrix products. The tile a caller should cut outputs at, and the bytes of scratch (64-byte aligned) a
    // call needs.
    std::int64_t gemm_tile_m, gemm_tile_n;
    std::size_t gemm_workspace;
    std::int64_t gemm_block_m, gemm_block_n, gemm_block_k;  // what it packs at once: m·k of A, k·n of B
    void (*gemm)(const Gemm<Real>&, void* workspace);
    /// The same product for few rows: A has col 1; B(p, j) stands at b.data[j * b.col + p] (b.row = 1), i.e.
    /// stored [N,K]; every row's bits are the same whatever m is. Reads B once, at memory speed. No
    /// workspace.
    void (*gemv)(const Gemm<Real>&);

    BlockProducts<Real> block = {};
    NarrowProducts<Real> narrow = {};

    // Attention without a stored T×T matrix (Dao et al. 2022; online softmax of Milakov & Gimelshein 2018).
    std::size_t attention_workspace;  // bytes, for any head width up to attention_max_head_width
    std::int64_t attention_max_head_width;
    std::int64_t attention_ring;   // keys [i · this, (i + 1) · this) are read where they lie together
    std::int64_t attention_block;  // queries per task: a task is (head h, queries [i, i + attention_block))
    void (*attention)(const Attention<Real>&, std::int64_t head, std::int64_t query_begin,
                      std::int64_t query_end, void* workspace);
    /// The same, query after query: for few of them over many keys, which are read where they lie. In both, a
    /// query's bits do not depend on the others.
    void (*attention_decode)(const Attention<Real>&, std::int64_t head, std::int64_t query_begin,
                             std::int64_t query_end, void* workspace);
    /// One key/value head: all its query heads, all queries.
    void (*attention_backward)(const AttentionBackward<Real>&, std::int64_t kv_head, void* workspace);

    // Channels [begin, end) of one sequence; one head of one sequence (scan.h).
    void (*selective_scan)(const SelectiveScan<Real>&, std::int64_t begin, std::int64_t end);
    void (*selective_scan_backward)(const SelectiveScanBackward<Real>&, std::int64_t begin, std::int64_t end);
    void (*matrix_scan)(const MatrixScan<Real>&);
    void (*matrix_scan_backward)(const MatrixScanBackward<Real>&);

    // Rows of C. x, y: [R, C] contiguous. mean_rstd: [R, 2] written by forward, read by backward (null: not
    // kept).
    void (*layer_norm)(std::int64_t rows, std::int64_t width, const Real* x, const Real* weight,
                       const Real* bias, Real epsilon, Real* y, Real* mean_rstd);
    /// dx (added to where accumulate). Weight and bias gradients: norm_backward_weights.
    void (*layer_norm_backward)(std::int64_t rows, std::int64_t width, const Real* x, const Real* weight,
                                const Real* mean_rstd, const Real* dy, Real* dx, bool accumulate);
    /// Mean is 0 for RMSNorm (mean_rstd[r] = {0, 1/rms}). weight null: 1.
    void (*rms_norm)(std::int64_t rows, std::int64_t width, const Real* x, const Real* weight, Real epsilon,
                     Real* y, Real* mean_rstd);
    void (*rms_norm_backward)(std::int64_t rows, std::int64_t width, const Real* x, const Real* weight,
                              const Real* mean_rstd, const Real* dy, Real* dx, bool accumulate);
    /// dweight[c] += sum_r dy[r,c] · (x[r,c] - mean) · rstd and dbias[c] += sum_r dy[r,c] for c in [begin,
    /// end), rows in order. dbias null: none.
    void (*norm_backward_weights)(std::int64_t rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                                  const Real* x, const Real* mean_rstd, const Real* dy, Real* dweight,
                                  Real* dbias);
    /// out[c] += sum_r x[r * row + c] for c in [begin, end), rows in order.
    void (*column_sum)(std::int64_t rows, std::int64_t row, std::int64_t begin, std::int64_t end,
                       const Real* x, Real* out);

    // Elementwise over n values; pointers need no alignment. "accumulate": add to the output. The output may
    // be an input of activation, gated, add, scale and multiply.
    void (*activation)(Activation, std::int64_t n, const Real* x, Real* y);
    void (*activation_backward)(Activation, std::int64_t n, const Real* x, const Real* dy, Real* dx,
                                bool accumulate);
    /// y = activation(gate) · up (Shazeer 2020: SwiGLU with silu, GeGLU with gelu).
    void (*gated)(Activation, std::int64_t n, const Real* gate, const Real* up, Real* y);
    void (*gated_backward)(Activation, std::int64_t n, const Real* gate, const Real* up, const Real* dy,
                           Real* dgate, Real* dup, bool accumulate_gate, bool accumulate_up);
    void (*add)(std::int64_t n, const Real* a, const Real* b, Real* y);
    void (*scale)(std::int64_t n, Real factor, const Real* x, Real* y);
    void (*multiply)(std::int64_t n, const Real* a, const Real* b, Real* y, bool accumulate);
    void (*dropout)(std::int64_t n, const Dropout<Real>&, const Real* x, Real* y, bool accumulate);
    double (*sum_squares)(std::int64_t n, const Real* x);  // accumulated in double
    /// Rotates pairs of one row of one head: (x0, x1) -> (x0·cos - x1·sin, x0·sin + x1·cos); sign = -1
    /// rotates back. Pairs are (2i, 2i+1), or (i, i + D/2) where halves (GPT-NeoX order). cos_sin: [D/2, 2].
    /// RoPE: Su et al. 2021.
    void (*rope)(std::int64_t head_width, bool halves, const Real* cos_sin, Real sign, const Real* x, Real* y,
                 bool accumulate);
    /// Cross-entropy of one row of logits [V] at `target`, in nats; where `gradient` is true logits become
    /// (softmax - onehot) · scale in place.
    double (*cross_entropy)(std::int64_t vocabulary, std::int64_t target, Real scale, bool gradient,
                            Real* logits);
    /// p, m, v [n] updated in place from g; m and v are null where the rule has none.
    void (*update)(std::int64_t n, const Update<Real>&, const Real* g, Real* p, Real* m, Real* v);
    /// Stored weights to Real (of a block type: n is a whole number of blocks), and back (round to nearest
    /// even; not to block types).
    void (*load)(std::int64_t n, DType type, const void* source, Real* target);
    void (*store)(std::int64_t n, DType type, const Real* source, void* target);
    /// To a block type, with the least squared error that its search finds; n is a whole number of blocks,
    /// the source finite (q8_0 without importances: else the block's scale is NaN). importance: [n], the
    /// weight of each error, or null. Without it q8_0 and q4_0 are llama.cpp's bytes.
    void (*quantize)(std::int64_t n, DType type, const Real* source, const Real* importance, void* target);

    /// The machine's limits (peaks.h times them). fma_probe: multiply-adds on registers alone, returns the
    /// operations done; read_probe: reads n values once, in `streams` places at a time (1, 4 or 8), returns
    /// their sum.
    double (*fma_probe)(std::int64_t iterations);
    double (*read_probe)(std::int64_t n, const Real* x, int streams);
    /// Dot products of bf16 pairs and int8 quadruples, likewise; 0: this set has no such instruction. Only
    /// for CPUs that peaks.cpp has found to have it.
    double (*bf16_probe)(std::int64_t iterations);
    double (*int8_probe)(std::int64_t iterations);
    /// The same of bf16 on matrix units.
    double (*tile_probe)(std::int64_t iterations);
};

/// A set of instructions for products alone: what it replaces in the table of the set below it.
struct AddedKernels {
    const char* name;
    BlockProducts<float> block = {};
    NarrowProducts<float> narrow = {};
    double (*tile_probe)(std::int64_t iterations) = nullptr;
};

/// Thread `index`'s part of a whole product, of `count` threads: a grid of count = rows × columns parts, cut
/// at tiles, the split chosen that packs least (what each part packs: ProductCut) and keeps the largest part
/// small. Empty (m_begin == m_end) where there are fewer tiles than threads.
template <class Real>
Gemm<Real> gemm_share(const ProductCut& cut, const Gemm<Real>& whole, int index, int count);
template <class Real>
ProductCut gemm_cut(const KernelTable<Real>& table) {
    return {table.gemm_tile_m, table.gemm_tile_n, 8, 8};
}
template <class Real>
Gemm<Real> gemm_share(const KernelTable<Real>& table, const Gemm<Real>& whole, int index, int count) {
    return gemm_share(gemm_cut(table), whole, index, count);
}

/// The tables this build has and this CPU (and its operating system's saved register state) can run, best
/// last. "scalar" is always there.
struct KernelList {
    const KernelTable<float>* const* begin_;
    const KernelTable<float>* const* end_;
    const KernelTable<float>* const* begin() const { return begin_; }
    const KernelTable<float>* const* end() const { return end_; }
};
KernelList usable_kernels();
/// Names of all tiers built into this program, usable here or not ("scalar avx2 …").
const char* built_kernels();

/// Rows of a matrix that a thread had best read together when it reads all of it once: 4 on x86-64, whose
/// memory delivers more to several streams, else 1. Four against one, writing with 1.1B: Sapphire Rapids 30
/// to 45 % faster; Zen 5 17 % in f16, 0 to 10 in blocks; Zen 4 5 to 16 % in f16, 5 to 24 in blocks.
int memory_streams();

/// The table in force: the best usable one, or the one forced by select_kernels (--isa, LINNET_ISA).
const KernelTable<float>& kernels();
/// Forces a tier by name; false where it is unknown or this CPU lacks it.
bool select_kernels(const char* name);
/// The same algorithms in double, plain C++: the reference that gradients are checked in.
const KernelTable<double>& double_kernels();

template <class Real>
const KernelTable<Real>& kernels_for();
template <>
inline const KernelTable<float>& kernels_for<float>() {
    return kernels();
}
template <>
inline const KernelTable<double>& kernels_for<double>() {
    return double_kernels();
}

}  // namespace linnet
