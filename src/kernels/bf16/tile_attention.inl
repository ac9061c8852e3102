// Attention's products in bf16 on matrix units; split: of numbers in two parts, three for one.
#pragma once
#include "kernels/bf16/attention.inl"
#include "kernels/bf16/tile_products.inl"

namespace linnet {
namespace {

template <class Tiles, bool in_two = false>
struct TileUnits {
    static constexpr bool split = in_two;
    static constexpr int64_t rows = tile_block;  // of queries that are weighed together
    static void begin() { Tiles::begin(); }
    static void end() { Tiles::end(); }

    /// Rows of A in panels of tile_side.
    struct Left {
        const float* data;
        int64_t panel;
        Left from(int64_t row) const { return {data + row / tile_side * panel, panel}; }
    };
    static Left rows_at(const float* packed, int64_t k) { return {packed, panel_words<split>(k)}; }
    static Left rows_of_a(const Numbers& x, int64_t count, int64_t k, float* to) {
        pack_operand<split, false, tile_side>(x.operand(x.row, 1), x.row, 1, 0, count, 0, k, to);
        return rows_at(to, k);
    }
    /// The columns of a square of scores as rows of A, along its rows.
    static Left turned(const Real* x, int64_t count, int64_t columns, float* to) {
        pack_panels<StoredF32, false, false, tile_side>({x, DType::f32, 1, key_block}, 1, key_block, 0,
                                                        columns, 0, count, to);
        return rows_at(to, count);
    }

    /// c, `row` apart and written in whole tiles, = A · B.
    static void put(const SmallSize& s, Left a, const float* b, Real* c, int64_t row) {
        product<false>(s, a, b, c, row);
    }
    /// c = c ∘ factor + A · B, or c + A · B.
    static void add(const SmallSize& s, Left a, const float* b, Real* c, int64_t row, const Real* factor) {
        if (factor) scale_rows(s.m, s.n, c, row, factor);
        product<true>(s, a, b, c, row);
    }

  private:
    template <bool onto>
    static void product(const SmallSize& s, Left a, const float* b, Real* c, int64_t row) {
        const int64_t steps = ceil_divide(s.used, tile_depth), b_panel = panel_words<split>(s.k);
        for (int64_t j = 0; j < s.n; j += tile_block, b += 2 * b_panel)
            for (int64_t i = 0; i < s.m; i += tile_block)
                product_block<Tiles, split, false, onto>(s.m - i > tile_side, s.n - j > tile_side,
                                                         {a.from(i).data, b, a.panel, b_panel, steps},
                                                         c + i * row + j, row, []() {});
    }
};

}  // namespace
}  // namespace linnet
