// Attention in blocks, without a stored T×T matrix (Dao et al. 2022; online softmax of Milakov & Gimelshein
// 2018).
//
// Keys are visited in blocks that begin at multiples of key_block, wherever the queries begin, and a masked
// key contributes exactly nothing (if its value is finite); so a query's bits do not depend on which queries
// it is computed with.
#pragma once
#include "kernels/attention_decode.inl"
#include "kernels/small.inl"
#include "kernels/weight_dropout.inl"

namespace linnet {
namespace {

/// Rows of `width` values become columns: dst[width][key_block], the columns from `rows` on zero.
inline void transpose_block(int64_t rows, int64_t width, const Real* src, int64_t row, Real* dst) {
    for (int64_t j = 0; j < key_block; j += W) {
        for (int64_t p = 0; p < width; p += W) {
            Vec square[W];
            int64_t some = least(W, width - p);
            for (int i = 0; i < W; i++) {
                square[i] = j + i >= rows ? zero()
                            : some == W   ? load(src + (j + i) * row + p)
                                          : load_n(src + (j + i) * row + p, some);
            }
            transpose(square);
            for (int64_t i = 0; i < some; i++) store(dst + (p + i) * key_block + j, square[i]);
        }
    }
}

/// The queries of one task, their running sums, and the scores of a few rows against a block of keys.
struct AttentionWork {
    alignas(64) Real rows[key_block * widest_head];   // keys, then values, unpacked: [key_block, D]
    alignas(64) Real keys[widest_head * key_block];   // [D, key_block]
    alignas(64) Real out[query_block * widest_head];  // [queries, D]
    alignas(64) Real scores[small_rows * key_block];
    Real top[query_block], total[query_block];
};

/// A few rows of queries (from row i, `rows` of them) against the keys [j, j + keys).
inline void attend(const Attention<Real>& f, int64_t head, RealRows v, int64_t i, int64_t rows, int64_t j,
                   int64_t keys, int64_t local, AttentionWork& w) {
    int64_t d = f.head_width;
    const Real* q = f.q + head * f.q_head;
    if (!block_seen(f, i, rows, j, key_block)) return;
    const int64_t end = least(scan_end(f, i, rows) - j, keys);
    int64_t width = ceil_divide(end, W) * W;
    small_product(rows, width, d, q + i * f.q_row, f.q_row, 1, w.keys, key_block, w.scores, key_block);
    static_assert(small_rows <= most_weighed);
    Real shrink[small_rows];
    weigh_rows(f, head, i, rows, j, keys, width, w.scores, key_block, w.top + local, w.total + local, shrink);
    if (f.dropout.limit > 0) drop_weights(f, head, i, rows, j, width, w.scores, key_block);
    small_product(rows, d, end, w.scores, key_block, 1, v.data, v.row, w.out + local * d, d, shrink);
}

inline void attention(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                      void* workspace) {
    AttentionWork& w = *static_cast<AttentionWork*>(workspace);
    int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    for (int64_t q0 = query_begin; q0 < query_end; q0 += query_block) {
        int64_t q1 = least(q0 + query_block, query_end), count = q1 - q0;
        for (int64_t r = 0; r < count; r++) w.top[r] = minus_infinity, w.total[r] = 0;
        clear_rows(count, d, w.out, d);
        const int64_t last = scan_end(f, q0, count);
        for (int64_t j = 0; j < last; j += key_block) {
            if (!block_seen(f, q0, count, j, key_block)) continue;
            int64_t keys = least(key_block, f.keys - j);
            RealRows k = real_rows(f, rows_at(f, f.k, kv * f.k_head, f.k_row, j), f.k_row, keys, w.rows);
            transpose_block(keys, d, k.data, k.row, w.keys);
            RealRows v = real_rows(f, rows_at(f, f.v, kv * f.v_head, f.v_row, j), f.v_row, keys, w.rows);
            for (int64_t i = q0; i < q1; i += small_rows) {
                attend(f, head, v, i, least(small_rows, q1 - i), j, keys, i - q0, w);
            }
        }
        finish_rows<StoredReal>(f, head, q0, count, w.out, d, w.top, w.total);
    }
}

}  // namespace
}  // namespace linnet
