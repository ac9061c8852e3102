// Attention in training, its products in bf16 on matrix units: blocks, softmax and sums as in attention.inl
// and attention_backward.inl, in f32. Queries, keys, values, weights and their gradients are rounded as they
// are packed.
#pragma once
#include "kernels/attention_backward.inl"
#include "kernels/bf16/tile_products.inl"

namespace linnet {
namespace {

constexpr int64_t head_words = widest_head / 2;  // of a row of D

struct TileAttention {
    alignas(64) float q[query_block * head_words];                                // rows of A
    alignas(64) float k[key_block * head_words], v[widest_head * key_block / 2];  // columns of B
    alignas(64) float weights[tile_block * key_block / 2];                        // rows of A
    alignas(64) Real scores[tile_block * key_block], sums[tile_block * widest_head];
    alignas(64) Real out[query_block * widest_head];
    Real top[query_block], total[query_block];
};
struct TileAttentionBackward {
    // Columns of B: keys and values along D, keys along themselves; queries and dout along themselves.
    alignas(64) float k_d[key_block * head_words], v_d[key_block * head_words], k_k[key_block * head_words];
    alignas(64) float q_q[key_block * head_words], dout_q[key_block * head_words];
    alignas(64) float q[key_block * head_words], dout[key_block * head_words];  // rows of A
    alignas(64) float left[key_block * key_block / 2];  // rows of A: P or dA, or turned
    alignas(64) Real weights[key_block * key_block],
        dscores[key_block * key_block];  // P, dA: [queries, key_block]
    alignas(64) Real sums[key_block * widest_head];
};
static_assert(sizeof(TileAttention) <= sizeof(BF16Panels) &&
              sizeof(TileAttentionBackward) <= sizeof(BF16Panels));

/// Rows [0, count) of width D: as rows of A, or as columns of B, along D (the rows are lines) or along the
/// rows.
inline void pack_rows_of_a(const Real* x, int64_t row, int64_t count, int64_t d, float* to) {
    pack_panels<StoredF32, false, false, tile_side>({x, DType::f32, row, 1}, row, 1, 0, count, 0, d, to);
}
inline void pack_along_d(const Real* x, int64_t row, int64_t count, int64_t d, float* to) {
    pack_panels<StoredF32, false, true, tile_side>({x, DType::f32, row, 1}, row, 1, 0, count, 0, d, to);
}
inline void pack_along_rows(const Real* x, int64_t row, int64_t count, int64_t d, float* to) {
    pack_panels<StoredF32, false, true, tile_side>({x, DType::f32, 1, row}, 1, row, 0, d, 0, count, to);
}
/// The columns of a square of scores as rows of A, along its rows.
inline void pack_turned(const Real* x, int64_t rows, int64_t columns, float* to) {
    pack_panels<StoredF32, false, false, tile_side>({x, DType::f32, 1, key_block}, 1, key_block, 0, columns,
                                                    0, rows, to);
}

/// sums [m, n], `row` apart and written in tiles, = A · B, `depth` numbers of K packed.
template <class Tiles>
void tile_small(int64_t m, int64_t n, int64_t depth, const float* a, const float* b, Real* sums,
                int64_t row) {
    const int64_t steps = ceil_divide(depth, tile_depth), panel = steps * tile_words;
    for (int64_t j = 0; j < n; j += tile_block, b += 2 * panel) {
        const bool two_b = n - j > tile_side;
        const float* rows = a;
        for (int64_t i = 0; i < m; i += tile_block, rows += 2 * panel) {
            const bool two_a = m - i > tile_side;
            Real* to = sums + i * row + j;
            (two_a
                 ? two_b ? product_tiles<Tiles, false, true, true> : product_tiles<Tiles, false, true, false>
             : two_b ? product_tiles<Tiles, false, false, true>
                     : product_tiles<Tiles, false, false, false>)(steps, rows, b, to, row, nullptr, 0);
        }
    }
}

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

/// Queries [i, i + rows), packed at `q`, against the keys [j, j + keys).
template <class Tiles>
void tile_attend(const Attention<Real>& f, int64_t head, const float* q, int64_t i, int64_t rows, int64_t j,
                 int64_t keys, int64_t local, TileAttention& w) {
    const int64_t d = f.head_width;
    const int64_t begin = visible_begin(f, i) - j, end = least(visible_end(f, i + rows - 1) - j, keys);
    if (end <= 0 || (begin >= keys && j >= f.globals)) return;
    const int64_t width = ceil_divide(end, W) * W;
    tile_small<Tiles>(rows, width, d, q, w.k, w.scores, key_block);
    Real now[tile_block], shrink[tile_block], *top = w.top + local;
    const Real factor = score_factor(f);
    for (int64_t r = 0; r < rows; r++) {
        Real* scores = w.scores + r * key_block;
        if (shaped(f)) shape_row(f, head, i + r, j, width, scores);
        const Seen seen = seen_keys(f, i + r, j, keys);
        const Real high = row_top(scores, width, seen, factor);
        now[r] = high > top[r] ? high : top[r];
    }
    for (int64_t r = 0; r < rows; r += small_rows)
        shrink_factors(least(small_rows, rows - r), top + r, now + r, shrink + r);
    for (int64_t r = 0; r < rows; r++) {
        const Real sum =
            row_weights(w.scores + r * key_block, width, seen_keys(f, i + r, j, keys), factor, now[r]);
        w.total[local + r] = w.total[local + r] * shrink[r] + sum;
        top[r] = now[r];
    }
    // Along all keys of the block, as the values are: those beyond the width weigh nothing.
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = width; c < keys; c += W) store(w.scores + r * key_block + c, zero());
    pack_rows_of_a(w.scores, key_block, rows, keys, w.weights);
    tile_small<Tiles>(rows, d, keys, w.weights, w.v, w.sums, widest_head);
    add_rows(rows, d, w.sums, widest_head, w.out + local * d, d, shrink);
}

template <class Tiles>
void tile_attention(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                    void* workspace) {
    auto& w = *static_cast<TileAttention*>(workspace);
    const int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    const int64_t panel = ceil_divide(d, tile_depth) * tile_words;
    const auto *k = static_cast<const Real*>(f.k) + kv * f.k_head,
               *v = static_cast<const Real*>(f.v) + kv * f.v_head;
    Tiles::begin();
    for (int64_t q0 = query_begin; q0 < query_end; q0 += query_block) {
        const int64_t q1 = least(q0 + query_block, query_end), count = q1 - q0;
        for (int64_t r = 0; r < count; r++) w.top[r] = minus_infinity, w.total[r] = 0;
        each_vector(count * d, [&](int64_t c, int64_t n) { store_n(w.out + c, zero(), n); });
        pack_rows_of_a(f.q + head * f.q_head + q0 * f.q_row, f.q_row, count, d, w.q);
        const int64_t first = visible_begin(f, q0) / key_block * key_block, last = visible_end(f, q1 - 1);
        for (int64_t j = seen_block(f, first, 0); j < last; j = seen_block(f, first, j + key_block)) {
            const int64_t keys = least(key_block, f.keys - j);
            pack_along_d(k + j * f.k_row, f.k_row, keys, d, w.k);
            pack_along_rows(v + j * f.v_row, f.v_row, keys, d, w.v);
            for (int64_t i = q0; i < q1; i += tile_block)
                tile_attend<Tiles>(f, head, w.q + (i - q0) / tile_side * panel, i, least(tile_block, q1 - i),
                                   j, keys, i - q0, w);
        }
        for (int64_t r = 0; r < count; r++) {
            Real* out = f.out + (q0 + r) * f.out_row + head * d;
            const Vec factor = set1(Real(1) / w.total[r]);
            each_vector(
                d, [&](int64_t c, int64_t n) { store_n(out + c, load_n(w.out + r * d + c, n) * factor, n); });
            if (f.lse)
                f.lse[head * f.rows + q0 + r] =
                    w.top[r] + static_cast<Real>(__builtin_log(static_cast<double>(w.total[r])));
        }
    }
    Tiles::end();
}

/// The products of the queries [i0, i1) with the keys [j, j + keys), which are packed.
template <class Tiles>
void tile_backward_block(const Attention<Real>& f, const HeadGradient& h, int64_t i0, int64_t i1, int64_t j,
                         int64_t keys, TileAttentionBackward& w) {
    const int64_t d = f.head_width, queries = i1 - i0, width = ceil_divide(keys, W) * W;
    const Real *q = h.q + i0 * f.q_row, *dout = h.dout + i0 * f.out_row;
    pack_rows_of_a(q, f.q_row, queries, d, w.q);
    pack_rows_of_a(dout, f.out_row, queries, d, w.dout);
    pack_along_rows(q, f.q_row, queries, d, w.q_q);
    pack_along_rows(dout, f.out_row, queries, d, w.dout_q);
    tile_small<Tiles>(queries, width, d, w.q, w.k_d, w.weights, key_block);
    tile_small<Tiles>(queries, width, d, w.dout, w.v_d, w.dscores, key_block);
    for (int64_t r = 0; r < queries; r++)
        finish_backward_row(f, h, i0 + r, j, keys, width, w.weights + r * key_block,
                            w.dscores + r * key_block);
    pack_rows_of_a(w.dscores, key_block, queries, keys, w.left);
    tile_small<Tiles>(queries, d, keys, w.left, w.k_k, w.sums, widest_head);
    add_rows(queries, d, w.sums, widest_head, h.dq + i0 * f.q_row, f.q_row, nullptr);
    pack_turned(w.weights, queries, keys, w.left);
    tile_small<Tiles>(keys, d, queries, w.left, w.dout_q, w.sums, widest_head);
    add_rows(keys, d, w.sums, widest_head, h.dv + j * f.v_row, f.v_row, nullptr);
    pack_turned(w.dscores, queries, keys, w.left);
    tile_small<Tiles>(keys, d, queries, w.left, w.q_q, w.sums, widest_head);
    add_rows(keys, d, w.sums, widest_head, h.dk + j * f.k_row, f.k_row, nullptr);
}

template <class Tiles>
void tile_attention_backward(const AttentionBackward<Real>& b, int64_t kv_head, void* workspace) {
    auto& w = *static_cast<TileAttentionBackward*>(workspace);
    const Attention<Real>& f = b.forward;
    const int64_t d = f.head_width;
    Tiles::begin();
    each_key_block(
        b, kv_head,
        [&](const HeadGradient& h, int64_t j, int64_t keys) {
            pack_along_d(h.k + j * f.k_row, f.k_row, keys, d, w.k_d);
            pack_along_d(h.v + j * f.v_row, f.v_row, keys, d, w.v_d);
            pack_along_rows(h.k + j * f.k_row, f.k_row, keys, d, w.k_k);
        },
        [&](const HeadGradient& h, int64_t i0, int64_t i1, int64_t j, int64_t keys) {
            tile_backward_block<Tiles>(f, h, i0, i1, j, keys, w);
        });
    Tiles::end();
}

}  // namespace
}  // namespace linnet
