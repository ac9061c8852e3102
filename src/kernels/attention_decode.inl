// One query over many keys: dot products with the keys in the order they lie, then a weighted sum of the
// values. Every key and value is read once. Blocks of keys begin at multiples of decode_block, wherever the
// window does, and a masked key contributes exactly nothing.
#pragma once
#include "kernels/softmax.inl"

namespace linnet {
namespace {

constexpr int64_t decode_block = 256;

/// scores[j] = q · k[j] for W keys at a time: W vectors of partial sums, transposed and added.
inline void decode_scores(int64_t width, int64_t keys, const Real* q, const Real* k, int64_t row,
                          Real* scores) {
    for (int64_t j = 0; j < keys; j += W) {
        Vec part[W];
        int64_t some = least(W, keys - j);
        for (int64_t t = 0; t < W; t++) {
            const Real* key = k + (j + least(t, some - 1)) * row;
            Vec total = zero();
            int64_t p = 0;
            for (; p + W <= width; p += W) total = fma(load(q + p), load(key + p), total);
            if (p < width) total = fma(load_n(q + p, width - p), load_n(key + p, width - p), total);
            part[t] = total;
        }
        transpose(part);
        for (int64_t step = 1; step < W; step *= 2) {  // a fixed tree
            for (int64_t t = 0; t + step < W; t += 2 * step) part[t] = part[t] + part[t + step];
        }
        store(scores + j, part[0]);
    }
}

/// out += sum_j weights[j] · v[j] for NV vectors of the head, even and odd keys apart (two chains hide fma's
/// latency).
template <int NV>
inline void decode_values(int64_t keys, const Real* weights, const Real* v, int64_t row, Real* out,
                          int64_t last) {
    Vec even[NV], odd[NV];
    LINNET_UNROLL
    for (int c = 0; c < NV; c++) even[c] = load_n(out + c * W, c == NV - 1 ? last : W), odd[c] = zero();
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2, v += 2 * row) {
        Vec x = set1(weights[j]), y = set1(weights[j + 1]);
        LINNET_UNROLL
        for (int c = 0; c < NV; c++) {
            int64_t n = c == NV - 1 ? last : W;
            even[c] = fma(x, load_n(v + c * W, n), even[c]);
            odd[c] = fma(y, load_n(v + row + c * W, n), odd[c]);
        }
    }
    for (; j < keys; j++) {
        Vec x = set1(weights[j]);
        LINNET_UNROLL
        for (int c = 0; c < NV; c++) even[c] = fma(x, load_n(v + c * W, c == NV - 1 ? last : W), even[c]);
    }
    LINNET_UNROLL
    for (int c = 0; c < NV; c++) store_n(out + c * W, even[c] + odd[c], c == NV - 1 ? last : W);
}

struct DecodeWork {
    alignas(64) Real scores[decode_block + W];
    alignas(64) Real out[widest_head];
};

inline void decode_query(const Attention<Real>& f, int64_t head, int64_t i, DecodeWork& w) {
    int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    const Real *q = f.q + i * f.q_row + head * f.q_head, *k = f.k + kv * f.k_head, *v = f.v + kv * f.v_head;
    int64_t begin = visible_begin(f, i), end = visible_end(f, i);
    Real top = minus_infinity, total = 0;
    each_vector(d, [&](int64_t c, int64_t n) { store_n(w.out + c, zero(), n); });
    for (int64_t j = begin / decode_block * decode_block; j < end; j += decode_block) {
        int64_t keys = least(decode_block, end - j);
        decode_scores(d, keys, q, k + j * f.k_row, f.k_row, w.scores);
        int64_t width = ceil_divide(keys, W) * W;
        Real high = row_top(w.scores, width, begin - j, keys, f.scale), now = high > top ? high : top, shrink;
        shrink_factors(1, &top, &now, &shrink);
        total = total * shrink + row_weights(w.scores, width, begin - j, keys, f.scale, now);
        top = now;
        Vec factor = set1(shrink);
        each_vector(d, [&](int64_t c, int64_t n) { store_n(w.out + c, load_n(w.out + c, n) * factor, n); });
        for (int64_t c = 0; c < d; c += 4 * W) {
            int64_t vectors = least(4, ceil_divide(d - c, W)), last = least(W, d - c - (vectors - 1) * W);
            const Real* from = v + j * f.v_row + c;
            if (vectors == 4) decode_values<4>(keys, w.scores, from, f.v_row, w.out + c, last);
            if (vectors == 3) decode_values<3>(keys, w.scores, from, f.v_row, w.out + c, last);
            if (vectors == 2) decode_values<2>(keys, w.scores, from, f.v_row, w.out + c, last);
            if (vectors == 1) decode_values<1>(keys, w.scores, from, f.v_row, w.out + c, last);
        }
    }
    Real* out = f.out + i * f.out_row + head * d;
    Vec factor = set1(Real(1) / total);
    each_vector(d, [&](int64_t c, int64_t n) { store_n(out + c, load_n(w.out + c, n) * factor, n); });
    if (f.lse) f.lse[head * f.rows + i] = top + static_cast<Real>(__builtin_log(static_cast<double>(total)));
}

inline void attention_decode(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                             void* workspace) {
    DecodeWork& w = *static_cast<DecodeWork*>(workspace);
    for (int64_t i = query_begin; i < query_end; i++) decode_query(f, head, i, w);
}

}  // namespace
}  // namespace linnet
