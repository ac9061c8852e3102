// What an operation is: a shape rule, a forward, a backward, a cost, side by side in one file each.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/team.h"
#include "kernels/kernels.h"
#include "ops/batch.h"
#include "tensor/tensor.h"

namespace linnet {

/// A node's constants, by name ("heads", "epsilon", …). Asking for one that is absent is a bug of ours.
class Attributes {
  public:
    Attributes() = default;
    Attributes(std::initializer_list<std::pair<std::string_view, double>> values) : values_(values) {}
    bool has(std::string_view name) const;
    double number(std::string_view name) const;
    std::int64_t integer(std::string_view name) const { return static_cast<std::int64_t>(number(name)); }
    bool flag(std::string_view name) const { return number(name) != 0; }
    void set(std::string_view name, double value) { values_.emplace_back(name, value); }  // a new one
    std::string text(int digits = 6) const;  // "heads=12 epsilon=1e-05"; digits: significant

  private:
    std::vector<std::pair<std::string_view, double>> values_;  // names are literals
};

/// The type of arithmetic: float in use, double where gradients are checked. Storage may be another.
template <class Real>
inline constexpr DType kernel_type = std::is_same_v<Real, double> ? DType::f64 : DType::f32;

inline constexpr std::size_t max_inputs = 6, max_parameters = 4;

/// How a product is computed. They sum in different orders or round differently, so the plan chooses one per
/// step, by phase and by what the run asks for.
enum class ProductKernel : std::uint8_t {
    panels,  // W packed and reused by all rows: reading and training
    rows,    // W read once, every row by itself: writing, and all logits
    bf16,    // panels of operands rounded to bf16 (where the kernels have no such: panels)
    split,   // … of f32 as two of bf16 each
};

/// What a graph asks to be kept of a sequence from run to run, and how it can be taken back.
enum class Rewind : std::uint8_t {
    truncate,  // later positions are forgotten: keys and values, as far back as they are kept
    snapshot,  // one state for all positions so far: copies of it are kept at run boundaries
};
struct StateSpec {
    std::string name;
    std::int64_t planes = 1,
                 width = 0;            // a sequence's state is [planes, positions, width], or [planes, width]
    Rewind rewind = Rewind::truncate;  // of the second form: snapshot
    std::int64_t window = 0;           // positions that are looked back at, with the newest; 0: all
    bool source = false;               // of positions that are another text's: all there are
};

/// A state's memory: a piece of `slot_bytes` per sequence, [planes, positions, row_bytes].
struct StateView {
    std::byte* data = nullptr;
    DType type = DType::f32;     // a row of it is a whole number of blocks
    std::int64_t positions = 0;  // room: position p is in row p % positions
    std::int64_t row_bytes = 0;
    std::size_t slot_bytes = 0;

    template <class T>
    T* slot(std::int32_t i) const {
        return reinterpret_cast<T*>(data + slot_bytes * static_cast<std::size_t>(i));
    }
    explicit operator bool() const { return data != nullptr; }
};

/// One part of the execution of a node, by whichever member of the team takes it: an output's bits depend
/// neither on how many parts there are nor on who does which. `worker` is the part. Matrices are [rows,
/// width], contiguous.
template <class Real>
struct Call {
    Worker worker;
    const KernelTable<Real>* kernels;
    const Batch* batch;
    const Attributes* attributes;
    ProductKernel product = ProductKernel::panels;
    Phase phase = Phase::train;
    std::int64_t node = 0;  // its index: the dropout stream
    std::int64_t rows = 0;  // of the output (of the inputs too, unless they lie in other spaces)
    std::int64_t width = 0;
    const Rows* space = nullptr;               // of the output, where it has sequences
    std::span<const std::int32_t> ids;         // the node's stream, where it is one of integers
    const float* vectors = nullptr;            // the node's stream, where it is one of vectors
    std::array<const Real*, max_inputs> in{};  // of integers where the node that makes it says so: integers()
    std::array<DType, max_inputs> in_type{};   // Real's, or as it is stored (Op::stored)
    std::array<std::int64_t, max_inputs> in_width{};
    std::array<const Rows*, max_inputs> in_space{};
    std::array<std::int64_t, max_inputs> in_rows{};
    std::array<Tensor, max_parameters> parameter{};      // vectors are Real; matrices any weight type
    std::array<Real*, max_parameters> parameter_grad{};  // added to; null: not trained
    const Real* constants = nullptr;  // of a position_table: those of all positions that the rows have
    Real* out = nullptr;
    DType out_type = kernel_type<Real>;  // as in_type
    const Real* add = nullptr;           // a fused residual [rows, width] (ops with can_add)
    Real* saved = nullptr;               // [rows, saved width], from forward to backward
    const Real* dout = nullptr;
    std::array<Real*, max_inputs> din{};  // null: not wanted
    std::array<bool, max_inputs> accumulate{};
    StateView reads, writes;    // without memory: none
    void* workspace = nullptr;  // this member's: kernel_workspace() bytes, then ops'
    Real* scratch = nullptr;    // the team's
    std::int64_t round = 0;     // of Op::forward_rounds, backward_rounds

    const Real* vector(int i) const { return parameter[static_cast<std::size_t>(i)].template as<Real>(); }
    const std::int32_t* integers(std::size_t i) const { return reinterpret_cast<const std::int32_t*>(in[i]); }
    std::int32_t* out_integers() const { return reinterpret_cast<std::int32_t*>(out); }
};

/// Bytes of a member's workspace that the kernels use; what ops need comes behind.
template <class Real>
std::size_t kernel_workspace(const KernelTable<Real>& kernels) {
    return (std::max({kernels.gemm_workspace, kernels.attention_workspace, kernels.narrow.workspace}) + 63) /
           64 * 64;
}

/// n numbers of input i from element `begin` on: where they lie, or where they are stored in another type, in
/// `room`.
template <class Real>
const Real* input_numbers(const Call<Real>& call, std::size_t i, std::int64_t begin, std::int64_t n,
                          Real* room) {
    if (call.in_type[i] == kernel_type<Real>) return call.in[i] + begin;
    const auto* stored = reinterpret_cast<const std::byte*>(call.in[i]);
    call.kernels->load(n, call.in_type[i], stored + begin * info(call.in_type[i]).bytes, room);
    return room;
}

/// Where n numbers of the output, from element `begin` on, are to be made: in their place, or in `room`,
/// from which output_made stores them.
template <class Real>
Real* output_numbers(const Call<Real>& call, std::int64_t begin, Real* room) {
    return call.out_type == kernel_type<Real> ? call.out + begin : room;
}
template <class Real>
void output_made(const Call<Real>& call, std::int64_t begin, std::int64_t n, const Real* room) {
    if (call.out_type == kernel_type<Real>) return;
    auto* stored = reinterpret_cast<std::byte*>(call.out);
    call.kernels->store(n, call.out_type, room, stored + begin * info(call.out_type).bytes);
}

/// y = cap · tanh(x / cap) for n values; y may be x.
template <class Real>
void softcap(const KernelTable<Real>& kernels, Real cap, std::int64_t n, const Real* x, Real* y) {
    kernels.scale(n, 1 / cap, x, y);
    kernels.activation(Activation::tanh, n, y, y);
    kernels.scale(n, cap, y, y);
}
/// Its derivative where it came to y; inverse: 1 / cap.
template <class Real>
Real softcap_slope(Real inverse, Real y) {
    const Real t = y * inverse;
    return 1 - t * t;
}

/// Widths and parameter shapes a node was built with.
struct NodeShape {
    std::span<const std::int64_t> in;
    std::span<const Shape> parameters;
    const Attributes& attributes;
    std::span<const Tensor> values = {};  // of the parameters; empty where there are none yet
};

/// One direction of an op, for both precisions from one generic lambda: [](auto& call) { … }.
struct Pass {
    void (*in_single)(Call<float>&) = nullptr;
    void (*in_double)(Call<double>&) = nullptr;

    constexpr Pass() = default;
    template <class Generic>
    constexpr Pass(Generic generic) : in_single(generic), in_double(generic) {}
    explicit operator bool() const { return in_single != nullptr; }
    void operator()(Call<float>& call) const { in_single(call); }
    void operator()(Call<double>& call) const { in_double(call); }
};

/// How many rounds a pass has, from the numbers of rows in the call and its sequences' lengths: the parts of
/// a round begin when all parts of the one before are done.
struct Rounds {
    std::int64_t (*in_single)(const Call<float>&) = nullptr;
    std::int64_t (*in_double)(const Call<double>&) = nullptr;

    constexpr Rounds() = default;
    template <class Generic>
    constexpr Rounds(Generic generic) : in_single(generic), in_double(generic) {}
    std::int64_t of(const Call<float>& call) const { return in_single ? in_single(call) : 1; }
    std::int64_t of(const Call<double>& call) const { return in_double ? in_double(call) : 1; }
};

/// Values that may be in the type in which the plan stores them.
struct StoredForms {
    unsigned inputs = 0;  // bit i: input i, in both directions
    bool output = false;  // forward makes it so, and a backward that reads it takes it so
    bool alike = false;   // these inputs and the output, all of them or none
};

struct Op {
    std::string_view name;
    std::size_t inputs = 1, parameters = 0;  // parameters: at most; optional ones come last
    /// Of the output; throws std::logic_error where the shapes do not fit.
    std::int64_t (*width)(const NodeShape&);
    /// Forward, per row, in sequences of `length` rows; a multiply-add counts as two.
    double (*flops)(const NodeShape&, double length);
    Pass forward, backward = {};                       // an op without a backward leaves it out
    Rounds forward_rounds = {}, backward_rounds = {};  // one where left out; the pass asks Call::round
    /// Which of its values may be stored in another type; null: none.
    StoredForms (*stored)(const NodeShape&, ProductKernel) = nullptr;

    unsigned reads_inputs = 0;      // bit i: backward reads input i
    unsigned from_state = 0;        // bit i: input i is read from the state where the plan has states
    unsigned undifferentiated = 0;  // bit i: input i has no gradient
    bool reads_output = false;      // backward reads the output
    bool integers = false;          // the output is one of 32-bit integers, without a gradient
    bool stream = false;            // reads an input stream: Call::ids or Call::vectors
    bool can_add = false;           // forward honours Call::add
    bool passes_gradient = false;   // every input's gradient is the output's gradient (add)
    bool product = false;           // its first parameter is a matrix that rows are multiplied with
    bool by_row = false;            // a row of the output depends on nothing but the same row of each input
    /// Bit i: forward may make the output over input i of the same rows, width and type: in one round, each
    /// element of that input is read for the same element of the output alone.
    unsigned in_place = 0;
    bool loss = false;                                  // backward starts here and needs no dout
    std::int64_t (*saved)(const NodeShape&) = nullptr;  // Reals per row
    std::int64_t (*scratch)(const NodeShape&, std::int64_t rows) = nullptr;  // Reals, shared by the team
    std::int64_t (*backward_scratch)(const NodeShape&, std::int64_t rows) = nullptr;
    /// A table that depends on attributes and on parameters that are not trained, made once for all executors
    /// of a session: Call::constants. An op has one of the two at most.
    std::vector<double> (*constants)(const NodeShape&) = nullptr;
    /// The same with equally many elements for each position: of some positions in a context.
    std::vector<double> (*position_table)(const NodeShape&, std::int64_t context, Range positions) = nullptr;
    bool has_table() const { return constants || position_table; }
};

/// Every operation there is (tests walk it).
std::span<const Op* const> all_ops();

extern const Op embedding_op, position_embedding_op, sinusoidal_op, position_bits_op, linear_op,
    layer_norm_op, rms_norm_op, rope_op, append_op, score_bias_op, attention_op, biased_attention_op,
    additive_attention_op, activation_op, gated_op, add_op, mix_op, scale_op, clamp_op, softcap_op,
    dropout_op, get_rows_op, pool_op, vectors_op, cross_entropy_op;

// Keys and values made fewer: project.cpp.
extern const Op project_op;

// Pictures in windows: window.cpp.
extern const Op windows_op, merge_op, window_bias_op;

// Recurrences and what stands around them: conv.cpp, selective_scan.cpp, matrix_scan.cpp,
// linear_attention.cpp, lstm.cpp, multiply.cpp.
extern const Op conv_op, shift_op, reverse_op, selective_scan_op, linear_scan_op, delta_scan_op,
    linear_attention_op, lstm_op, multiply_op, weigh_op, group_sum_op, repeat_op;

}  // namespace linnet
