// Attention's products in bf16 by dot products of pairs. What is left of a product stands in words at any
// strides (rows as they lie, or two neighbouring ones in one word), as each of them is broadcast.
#pragma once
#include "kernels/bf16/attention.inl"
#include "kernels/bf16/dot_products.inl"

namespace linnet {
namespace {

constexpr int dot_small_rows = 6, dot_small_panels = 4;

/// Words at a[i · row + p · col].
struct DotLeft {
    const float* data;
    int64_t row, col;
    DotLeft from(int64_t i) const { return {data + i * row, row, col}; }
};

/// R rows × P panels of B: c = c ∘ factor + A · B, or A · B where factor is null. `columns` of C are touched.
template <class Dots, int R, int P>
void dot_small_tile(int64_t words, DotLeft a, const float* b, int64_t panel, Real* c, int64_t c_row,
                    const Real* factor, int64_t columns) {
    constexpr int each = tile_side / W, vectors = P * each;
    Vec acc[R][vectors];
    auto lanes = [&](int v) { return least(W, most(0, columns - v * W)); };
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int v = 0; v < vectors; v++)
            acc[i][v] = factor ? set1(factor[i]) * load_n(c + i * c_row + v * W, lanes(v)) : zero();
    }
    LINNET_FORGET(c_row);
    for (int64_t p = 0; p < words; p++, a.data += a.col, b += tile_side) {
        Vec column[vectors];
        LINNET_UNROLL
        for (int v = 0; v < vectors; v++) column[v] = load(b + v / each * panel + v % each * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            const Vec x = set1(a.data[i * a.row]);
            LINNET_UNROLL
            for (int v = 0; v < vectors; v++) acc[i][v] = Dots::add(acc[i][v], x, column[v]);
        }
    }
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int v = 0; v < vectors; v++) store_n(c + i * c_row + v * W, acc[i][v], lanes(v));
    }
}

template <class Dots>
constexpr auto dot_small_tiles = tile_table<dot_small_panels, dot_small_rows>([]<int R, int P>() {
    return dot_small_tile<Dots, R, P>;
});
static_assert(dot_small_rows <= sizeof(ones) / sizeof(Real));

template <class Dots>
struct DotUnits {
    static constexpr bool split = false;
    static constexpr int64_t rows = 5 * dot_small_rows;  // of queries that are weighed together
    static_assert(rows <= tile_block);
    static void begin() {}
    static void end() {}

    using Left = DotLeft;
    static Left rows_at(const float* packed, int64_t k) {
        return {packed, ceil_divide(k, tile_depth) * tile_depth / 2, 1};
    }
    static Left rows_of_a(const Numbers& x, int64_t count, int64_t k, float* to) {
        const Left left = rows_at(to, k);
        with_stored(x.type, [&](auto stored) {
            using Stored = decltype(stored);
            const auto* from = static_cast<const typename Stored::Element*>(x.data);
            for (int64_t r = 0; r < count; r++, from += x.row, to += left.row) {
                Vec low;
                for (int64_t p = 0; p < left.row; p += W)
                    store(to + p, words_along<Stored, false>(from + 2 * p, k - 2 * p, low));
            }
        });
        return left;
    }
    /// The columns of a square of scores as rows of A, along its rows.
    static Left turned(const Real* x, int64_t count, int64_t columns, float* to) {
        for (int64_t p = 0; 2 * p < count; p++) {
            const Real* from = x + 2 * p * key_block;
            for (int64_t c = 0; c < columns; c += W) {
                Vec low;
                const Vec second = 2 * p + 1 < count ? load(from + key_block + c) : zero();
                store(to + p * key_block + c, bf16_pairs<false>(load(from + c), second, low));
            }
        }
        return {to, 1, key_block};
    }

    static void put(const SmallSize& s, Left a, const float* b, Real* c, int64_t row) {
        product(s, a, b, c, row, nullptr);
    }
    static void add(const SmallSize& s, Left a, const float* b, Real* c, int64_t row, const Real* factor) {
        product(s, a, b, c, row, factor ? factor : ones, factor ? 1 : 0);
    }

  private:
    static void product(const SmallSize& s, Left a, const float* b, Real* c, int64_t row, const Real* factor,
                        int64_t factor_row = 0) {
        const int64_t panel = ceil_divide(s.k, tile_depth) * tile_words, words = ceil_divide(s.used, 2);
        constexpr int64_t width = dot_small_panels * tile_side;
        for (int64_t j = 0; j < s.n; j += width, b += dot_small_panels * panel) {
            const int64_t columns = least(width, s.n - j), panels = ceil_divide(columns, tile_side);
            for (int64_t i = 0; i < s.m; i += dot_small_rows)
                dot_small_tiles<Dots>.at[panels][least(dot_small_rows, s.m - i)](
                    words, a.from(i), b, panel, c + i * row + j, row,
                    factor ? factor + i * factor_row : nullptr, columns);
        }
    }
};

}  // namespace
}  // namespace linnet
