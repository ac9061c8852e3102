// Attention's backward (Dao et al. 2022, algorithm 4): weights are computed again from the log-sum-exp.
//   P = exp(S - lse), dP = dO·Vᵀ, dS = P ∘ (dP - delta) with delta = rowsum(dO ∘ O),
//   dV += Pᵀ·dO, dK += dAᵀ·Q, dQ += dA·K with dA = dS · scale, times 1 - tanh² where S is soft capped;
//   dS is also the gradient of what is added to scores.
#pragma once
#include "kernels/attention.inl"

namespace linnet {
namespace {

struct AttentionBackwardWork {
    alignas(64) Real keys[widest_head * key_block], values[widest_head * key_block];  // [D, key_block]
    alignas(64) Real weights[key_block * key_block],
        dscores[key_block * key_block];  // P, dA: [queries, key_block]
};

inline Real dot(int64_t n, const Real* a, const Real* b) {
    Vec total = zero();
    each_vector(
        n, [&](int64_t i, int64_t some) { total = fma(load_n(a + i, some), load_n(b + i, some), total); });
    return sum(total);
}

/// One query head's pointers, at its first row.
struct HeadGradient {
    const Real *q, *k, *v, *out, *dout, *lse;
    Real *dq, *dk, *dv;
    int64_t head;
    Real* dbias;                  // of all heads
    bool onto_q, onto_k, onto_v;  // dq, dk, dv are added to; else what stands there means nothing
};

/// One row of products q · k and dout · v becomes P and dA: query i, the keys from j on, `width` (whole
/// vectors); row_delta: rowsum(dO ∘ O).
inline void finish_backward_row(const Attention<Real>& f, const HeadGradient& h, int64_t i, int64_t j,
                                int64_t keys, int64_t width, Real row_delta, Real* p, Real* s) {
    Seen visible = seen_keys(f, i, j, keys);
    Vec lse = set1(h.lse[i]), scale = set1(f.scale), factor = scale;
    Vec delta = set1(row_delta);
    for (int64_t c = 0; c < width; c += W) {
        Vec tanh = zero();
        Vec score = shaped(f) ? shape_scores(f, h.head, i, j + c, load(p + c), tanh) : load(p + c) * scale;
        Vec e = keep_seen(exp(score - lse), visible, c, zero()), d = load(s + c) - delta;
        if (h.dbias) {
            Real* to = h.dbias + bias_at(f, h.head, i, j + c);
            store(to, fma(e, d, load(to)));
        }
        if (f.softcap > 0) factor = scale * fnma(tanh, tanh, set1(1));
        store(p + c, e);
        store(s + c, e * (d * factor));
    }
}

/// P and dA of the queries [i, i + rows) against the keys [j, j + keys), rows <= small_rows, written from row
/// `local`.
inline void backward_weights(const Attention<Real>& f, const HeadGradient& h, int64_t i, int64_t rows,
                             int64_t j, int64_t keys, int64_t local, AttentionBackwardWork& w) {
    // The keys that these queries see, and those of a tile of keys that begins among them.
    int64_t seen = f.causal ? least(keys, visible_end(f, i + rows - 1) - j + small_rows - 1) : keys;
    int64_t head_width = f.head_width, width = ceil_divide(seen, W) * W;
    Real *p = w.weights + local * key_block, *s = w.dscores + local * key_block;
    small_product(rows, width, head_width, h.q + i * f.q_row, f.q_row, 1, w.keys, key_block, p, key_block);
    small_product(rows, width, head_width, h.dout + i * f.out_row, f.out_row, 1, w.values, key_block, s,
                  key_block);
    WeightDraws draws;
    const bool drops = f.dropout.limit > 0;
    if (drops) draws.draw(f, h.head, i, rows, j), draws.keep(f.dropout, rows, width, s, key_block);
    for (int64_t r = 0; r < rows; r++)
        finish_backward_row(f, h, i + r, j, keys, width,
                            dot(head_width, h.dout + (i + r) * f.out_row, h.out + (i + r) * f.out_row),
                            p + r * key_block, s + r * key_block);
    if (drops) draws.keep(f.dropout, rows, width, p, key_block);
}

/// The products of one block of queries [i0, i1) with one block of keys [j, j + keys).
inline void backward_block(const Attention<Real>& f, const HeadGradient& h, int64_t i0, int64_t i1, int64_t j,
                           int64_t keys, AttentionBackwardWork& w) {
    int64_t d = f.head_width, queries = i1 - i0;
    for (int64_t i = i0; i < i1; i += small_rows) {
        int64_t rows = least(small_rows, i1 - i);
        int64_t end = least(scan_end(f, i, rows) - j, keys);  // keys that these rows see
        backward_weights(f, h, i, rows, j, keys, i - i0, w);
        if (end > 0) {
            small_product(rows, d, end, w.dscores + (i - i0) * key_block, key_block, 1, h.k + j * f.k_row,
                          f.k_row, h.dq + i * f.q_row, f.q_row, ones);
        }
    }
    for (int64_t c = 0; c < keys; c += small_rows) {
        int64_t rows = least(small_rows, keys - c);
        int64_t skip = f.causal ? most(0, j + c - i0) : 0;  // queries before these keys (cached is 0)
        if (skip >= queries) break;
        small_product(rows, d, queries - skip, w.weights + skip * key_block + c, 1, key_block,
                      h.dout + (i0 + skip) * f.out_row, f.out_row, h.dv + (j + c) * f.v_row, f.v_row, ones);
        small_product(rows, d, queries - skip, w.dscores + skip * key_block + c, 1, key_block,
                      h.q + (i0 + skip) * f.q_row, f.q_row, h.dk + (j + c) * f.k_row, f.k_row, ones);
    }
}

/// For each query head: steps.begin_head(head), then for each block of keys begin_keys(head, j, keys),
/// block(head, i0, i1, j, keys) for the blocks of queries that see some of them, end_keys(head, j, keys);
/// end_head(head).
template <class Steps>
inline void each_key_block(const AttentionBackward<Real>& b, int64_t kv_head, Steps&& steps) {
    const Attention<Real>& f = b.forward;
    int64_t d = f.head_width, group = f.heads / f.kv_heads;
    HeadGradient h{nullptr,
                   static_cast<const Real*>(f.k) + kv_head * f.k_head,
                   static_cast<const Real*>(f.v) + kv_head * f.v_head,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   b.dk + kv_head * f.k_head,
                   b.dv + kv_head * f.v_head,
                   0,
                   b.dbias,
                   b.accumulate_q,
                   b.accumulate_k,
                   b.accumulate_v};
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        h.head = head, h.q = f.q + head * f.q_head, h.dq = b.dq + head * f.q_head;
        h.out = f.out + head * d, h.dout = b.dout + head * d, h.lse = f.lse + head * f.rows;
        steps.begin_head(h);
        for (int64_t j = 0; j < f.keys; j += key_block) {
            int64_t keys = least(key_block, f.keys - j);
            steps.begin_keys(h, j, keys);
            for (int64_t i = f.causal ? j : 0; i < f.rows; i += key_block) {
                const int64_t end = least(i + key_block, f.rows);
                if (block_seen(f, i, end - i, j, key_block)) steps.block(h, i, end, j, keys);
            }
            steps.end_keys(h, j, keys);
        }
        steps.end_head(h);
        h.onto_k = h.onto_v = true;
    }
}

struct AttentionBackwardSteps {
    const Attention<Real>& f;
    AttentionBackwardWork& w;

    void begin_head(const HeadGradient& h) const {
        if (!h.onto_q) clear_rows(f.rows, f.head_width, h.dq, f.q_row);
        if (!h.onto_k) clear_rows(f.keys, f.head_width, h.dk, f.k_row);
        if (!h.onto_v) clear_rows(f.keys, f.head_width, h.dv, f.v_row);
    }
    void begin_keys(const HeadGradient& h, int64_t j, int64_t keys) const {
        transpose_block(keys, f.head_width, h.k + j * f.k_row, f.k_row, w.keys);
        transpose_block(keys, f.head_width, h.v + j * f.v_row, f.v_row, w.values);
    }
    void block(const HeadGradient& h, int64_t i0, int64_t i1, int64_t j, int64_t keys) const {
        backward_block(f, h, i0, i1, j, keys, w);
    }
    void end_keys(const HeadGradient&, int64_t, int64_t) const {}
    void end_head(const HeadGradient&) const {}
};

inline void attention_backward(const AttentionBackward<Real>& b, int64_t kv_head, void* workspace) {
    each_key_block(b, kv_head,
                   AttentionBackwardSteps{b.forward, *static_cast<AttentionBackwardWork*>(workspace)});
}

}  // namespace
}  // namespace linnet
