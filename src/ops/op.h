// What an operation is: a shape rule, a forward, a backward, a cost, side by side in one file each.
#pragma once
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
    double number(std::string_view name) const;
    std::int64_t integer(std::string_view name) const { return static_cast<std::int64_t>(number(name)); }
    bool flag(std::string_view name) const { return number(name) != 0; }
    std::string text() const;  // "heads=12 epsilon=1e-05"

  private:
    std::vector<std::pair<std::string_view, double>> values_;  // names are literals
};

/// The rows a node's output has: all the batch's, or those of Batch::outputs.
enum class RowSpace : std::uint8_t { tokens, outputs };

/// The type of activations and gradients.
template <class Real>
inline constexpr DType kernel_type = std::is_same_v<Real, double> ? DType::f64 : DType::f32;

inline constexpr int max_inputs = 3, max_parameters = 2;

/// Keys and values of the sequences so far, for one attention node: [slots, kv_heads, context, D] each.
template <class Real>
struct Cache {
    Real *k = nullptr, *v = nullptr;
    std::int64_t context = 0;
};

/// One execution of a node by one member of the team. Matrices are [rows, width], contiguous.
template <class Real>
struct Call {
    Worker worker;
    const KernelTable<Real>* kernels;
    const Batch* batch;
    const Attributes* attributes;
    std::int64_t node = 0;  // its index: the dropout stream
    std::int64_t rows = 0;  // of the output (of the inputs too, but for take_rows)
    std::int64_t width = 0;
    std::array<const Real*, max_inputs> in{};
    std::array<std::int64_t, max_inputs> in_width{};
    std::array<Tensor, max_parameters> parameter{};      // vectors are Real; matrices any weight type
    std::array<Real*, max_parameters> parameter_grad{};  // added to; null: not trained
    const Real* constants = nullptr;
    Real* out = nullptr;
    const Real* add = nullptr;  // a fused residual [rows, width] (ops with can_add)
    Real* saved = nullptr;      // [rows, saved width], from forward to backward
    const Real* dout = nullptr;
    std::array<Real*, max_inputs> din{};  // null: not wanted
    std::array<bool, max_inputs> accumulate{};
    Cache<Real> cache;          // null pointers: none
    void* workspace = nullptr;  // this thread's, workspace_bytes()
    Real* scratch = nullptr;    // the team's

    const Real* vector(int i) const { return parameter[static_cast<std::size_t>(i)].template as<Real>(); }
};

/// Widths and parameter shapes a node was built with.
struct NodeShape {
    std::span<const std::int64_t> in;
    std::span<const Shape> parameters;
    const Attributes& attributes;
};

/// One direction of an op, for both precisions from one generic lambda: [](auto& call) { … }.
struct Pass {
    void (*single)(Call<float>&) = nullptr;
    void (*twice)(Call<double>&) = nullptr;

    constexpr Pass() = default;
    template <class Generic>
    constexpr Pass(Generic generic) : single(generic), twice(generic) {}
    explicit operator bool() const { return single != nullptr; }
    void operator()(Call<float>& call) const { single(call); }
    void operator()(Call<double>& call) const { twice(call); }
};

struct Op {
    std::string_view name;
    int inputs = 1, parameters = 0;  // at most; optional ones come last
    std::int64_t (*width)(
        const NodeShape&);  // of the output; throws std::logic_error where the shapes do not fit
    double (*flops)(
        const NodeShape&);        // forward, a row (multiply and add count as two); positions not counted
    Pass forward, backward = {};  // an op without a backward leaves it out

    unsigned reads_inputs = 0;     // bit i: backward reads input i
    bool reads_output = false;     // backward reads the output
    bool token_input = false;      // reads Batch::tokens instead of an input
    bool cached = false;           // has a cache slot in inference
    bool can_add = false;          // forward honours Call::add
    bool passes_gradient = false;  // every input's gradient is the output's gradient (add)
    RowSpace space = RowSpace::tokens;
    bool loss = false;                                  // backward starts here and needs no dout
    std::int64_t (*saved)(const NodeShape&) = nullptr;  // Reals a row
    std::int64_t (*scratch)(const NodeShape&, std::int64_t rows) = nullptr;  // Reals, shared by the team
    std::vector<double> (*constants)(const NodeShape&) = nullptr;
};

/// Every operation there is (tests walk it).
std::span<const Op* const> all_ops();

extern const Op embedding_op, position_embedding_op, sinusoidal_op, linear_op, layer_norm_op, rms_norm_op,
    rope_op, attention_op, activation_op, gated_op, add_op, dropout_op, take_rows_op, cross_entropy_op;

}  // namespace linnet
