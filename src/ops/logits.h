// What ops have in common that use the logits x · Wᵀ + b of their rows, a chunk at a time, so that those of a
// whole batch are never stored: cross_entropy and sample.   x [R,C], W [V,C], b [V] (may be left out).
#pragma once
#include <algorithm>
#include <stdexcept>
#include <string>

#include "ops/matmul.h"

namespace linnet {

/// One number per row, from x · Wᵀ.
inline std::int64_t logits_width(const NodeShape& s, const char* op) {
    if (s.parameters[0].dim[1] != s.in[0])
        throw std::logic_error(std::string(op) + ": weight does not fit its input");
    return 1;
}
inline double logits_flops(const NodeShape& s, double) {
    return 2.0 * static_cast<double>(s.parameters[0].count());
}

/// Elements from one row of logits to the next, of Real or of bf16. Those of bf16 begin at multiples of 64
/// bytes, but where two of them would take more than one of Real.
inline std::int64_t logit_row(std::int64_t vocabulary, DType type) {
    return type == DType::bf16 ? std::min((vocabulary + 31) / 32 * 32, 2 * vocabulary) : vocabulary;
}

/// Every chunk streams dW once (V·C read and written) and packs W twice, so chunks are as long as about 200
/// MB of logits allow, and at most half of the batch.
inline std::int64_t most_chunk_rows(std::int64_t rows, std::int64_t vocabulary, DType type) {
    constexpr std::int64_t logits = 52'000'000;
    const std::int64_t half = std::max<std::int64_t>(1, (rows + 1) / 2);
    const std::int64_t most = std::min(half, std::max<std::int64_t>(64, logits / vocabulary));
    return type == DType::bf16 ? std::min(half, most * vocabulary * 2 / logit_row(vocabulary, type)) : most;
}
/// Rows of a chunk: equal chunks, none above most_chunk_rows.
inline std::int64_t chunk_rows(std::int64_t rows, std::int64_t vocabulary, DType type) {
    const std::int64_t most = most_chunk_rows(rows, vocabulary, type), chunks = (rows + most - 1) / most;
    return std::max<std::int64_t>(1, (rows + chunks - 1) / std::max<std::int64_t>(1, chunks));
}
/// In Reals, of either type.
inline std::int64_t logits_scratch(const NodeShape& s, std::int64_t rows) {
    const std::int64_t vocabulary = s.parameters[0].dim[0];
    return most_chunk_rows(rows, vocabulary, DType::f32) * vocabulary;
}

template <class Real>
std::int64_t logit_chunks(const Call<Real>& call, DType type = kernel_type<Real>) {
    std::int64_t chunk = chunk_rows(call.rows, call.parameter[0].shape.dim[0], type);
    return (call.rows + chunk - 1) / chunk;
}

/// Rows [first, first + count).
struct LogitChunk {
    std::int64_t first, count;
    DType type;
    template <class Real>
    LogitChunk(const Call<Real>& call, std::int64_t index, DType as = kernel_type<Real>) : type(as) {
        std::int64_t rows = chunk_rows(call.rows, call.parameter[0].shape.dim[0], type);
        first = index * rows, count = std::min(rows, call.rows - first);
    }
};

/// Writes the chunk's logits to the scratch.
template <class Real>
void make_logits(const Call<Real>& call, LogitChunk chunk) {
    const Tensor& w = call.parameter[0];
    std::int64_t c = call.in_width[0], v = w.shape.dim[0];
    Gemm<Real> g;
    g.m = chunk.count, g.n = v, g.k = c;
    g.a = {call.in[0] + chunk.first * c, kernel_type<Real>, c, 1};
    g.c = call.scratch, g.c_row = logit_row(v, chunk.type);
    if (chunk.type == DType::bf16) g.bf16 = reinterpret_cast<std::uint16_t*>(call.scratch);
    g.bias = call.vector(1);
    team_project(call, g, w, call.product == ProductKernel::rows ? ProductKernel::panels : call.product);
}

}  // namespace linnet
