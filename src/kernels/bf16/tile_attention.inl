// Attention's products in bf16 on matrix units.
#pragma once
#include "kernels/bf16/attention.inl"
#include "kernels/bf16/tile_products.inl"

namespace linnet {
namespace {

/// c [rows, n] = c ∘ factor + sums, or c + sums.
inline void add_rows(int64_t rows, int64_t n, const Real* sums, int64_t row, Real* c, int64_t c_row,
                     const Real* factor) {
    for (int64_t r = 0; r < rows; r++) {
        const Vec by = set1(factor ? factor[r] : Real(1));
        each_vector(n, [&](int64_t i, int64_t some) {
            Real* to = c + r * c_row + i;
            store_n(to, fma(load_n(to, some), by, load_n(sums + r * row + i, some)), some);
        });
    }
}

template <class Tiles>
struct TileUnits {
    static constexpr int64_t rows = tile_block;  // of queries that are weighed together
    static constexpr bool whole_blocks = true;   // products are as deep as B is packed
    static void begin() { Tiles::begin(); }
    static void end() { Tiles::end(); }

    /// Rows of A in panels of tile_side.
    struct Left {
        const float* data;
        int64_t panel;
        Left from(int64_t row) const { return {data + row / tile_side * panel, panel}; }
    };
    static Left rows_at(const float* packed, int64_t k) {
        return {packed, ceil_divide(k, tile_depth) * tile_words};
    }
    static Left rows_of_a(const Numbers& x, int64_t count, int64_t k, float* to) {
        pack_operand<false, false, tile_side>(x.operand(x.row, 1), x.row, 1, 0, count, 0, k, to);
        return rows_at(to, k);
    }
    /// The columns of a square of scores as rows of A, along its rows.
    static Left turned(const Real* x, int64_t count, int64_t columns, float* to) {
        pack_panels<StoredF32, false, false, tile_side>({x, DType::f32, 1, key_block}, 1, key_block, 0,
                                                        columns, 0, count, to);
        return rows_at(to, count);
    }

    /// c, `row` apart and written in tiles, = A · B.
    static void put(const SmallSize& s, Left a, const float* b, Real* c, int64_t row) {
        const int64_t steps = ceil_divide(s.k, tile_depth), panel = steps * tile_words;
        for (int64_t j = 0; j < s.n; j += tile_block, b += 2 * panel) {
            const bool two_b = s.n - j > tile_side;
            const float* rows_of_a = a.data;
            for (int64_t i = 0; i < s.m; i += tile_block, rows_of_a += 2 * panel) {
                product_block<Tiles, false>(s.m - i > tile_side, two_b, steps, rows_of_a, b, c + i * row + j,
                                            row, []() {});
            }
        }
    }
    /// c = c ∘ factor + A · B, or c + A · B; sums: room for what is written in tiles.
    static void add(const SmallSize& s, Left a, const float* b, Real* c, int64_t row, const Real* factor,
                    Real* sums) {
        put(s, a, b, sums, widest_head);
        add_rows(s.m, s.n, sums, widest_head, c, row, factor);
    }
};

}  // namespace
}  // namespace linnet
