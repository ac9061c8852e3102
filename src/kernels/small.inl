// C = A·B, or C ∘ factor + A·B, for operands that already lie in cache: A by broadcasts at any strides, B and
// C in rows. Attention's products; each output is one chain of fma in the order of k.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

/// R × NV vectors; `last` lanes of the last vector are in use. factor: what each row of C is multiplied with
/// before (null: C is not read).
template <int R, int NV>
void small_tile(int64_t k, const Real* a, int64_t a_row, int64_t a_col, const Real* b, int64_t b_row, Real* c,
                int64_t c_row, const Real* factor, int64_t last) {
    Vec acc[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) acc[i][j] = zero();
    }
    if (factor) {
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Vec x = set1(factor[i]);
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) {
                acc[i][j] = x * load_n(c + i * c_row + j * W, j == NV - 1 ? last : W);
            }
        }
    }
    LINNET_FORGET(c_row);
    auto step = [&](const Vec(&row)[NV]) {
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Vec x = set1(a[i * a_row]);
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) acc[i][j] = fma(x, row[j], acc[i][j]);
        }
        a += a_col;
        b += b_row;
    };
    Vec row[NV];
    if (last == W) {
        for (int64_t p = 0; p < k; p++) {
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) row[j] = load(b + j * W);
            step(row);
        }
    } else {
        for (int64_t p = 0; p < k; p++) {
            LINNET_UNROLL
            for (int j = 0; j < NV - 1; j++) row[j] = load(b + j * W);
            row[NV - 1] = load_n(b + (NV - 1) * W, last);
            step(row);
        }
    }
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) store_n(c + i * c_row + j * W, acc[i][j], j == NV - 1 ? last : W);
    }
}

constexpr auto small_tiles =
    tile_table<small_vectors, small_rows>([]<int R, int NV>() { return small_tile<R, NV>; });

constexpr Real ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
static_assert(small_rows <= sizeof(ones) / sizeof(Real));

/// C[rows, n] for rows <= small_rows. n columns of B and C are touched, no more.
inline void small_product(int64_t rows, int64_t n, int64_t k, const Real* a, int64_t a_row, int64_t a_col,
                          const Real* b, int64_t b_row, Real* c, int64_t c_row,
                          const Real* factor = nullptr) {
    for (int64_t j = 0; j < n; j += small_vectors * W) {
        int64_t columns = least(small_vectors * W, n - j), vectors = ceil_divide(columns, W);
        small_tiles.at[vectors][rows](k, a, a_row, a_col, b + j, b_row, c + j, c_row, factor,
                                      columns - (vectors - 1) * W);
    }
}

}  // namespace
}  // namespace linnet
