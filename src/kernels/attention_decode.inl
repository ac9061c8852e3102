// One query over many keys: dot products with the keys in the order they lie, then a weighted sum of the
// values. Every key and value is read once. Blocks of keys begin at multiples of decode_block, wherever the
// window does, and a masked key contributes exactly nothing.
#pragma once
#include "kernels/softmax.inl"

namespace linnet {
namespace {

constexpr int64_t decode_block = 256;
static_assert(decode_block % key_block == 0);

constexpr int64_t decode_piece = 16;  // keys of a block type that are unpacked at a time: a multiple of W
static_assert(decode_piece % W == 0);

/// n elements as a vector.
template <class Stored>
inline Vec take(const typename Stored::Element* p, int64_t n) {
    return n >= W ? Stored::get(p) : Stored::get_n(p, n);
}

/// scores[j] = q · k[j] for W keys at a time: W vectors of partial sums, transposed and added.
template <class Stored>
inline void decode_scores(int64_t width, int64_t keys, const Real* q, const typename Stored::Element* k,
                          int64_t row, Real* scores) {
    for (int64_t j = 0; j < keys; j += W) {
        Vec part[W];
        int64_t some = least(W, keys - j);
        for (int64_t t = 0; t < W; t++) {
            const auto* key = k + (j + least(t, some - 1)) * row;
            Vec total = zero();
            int64_t p = 0;
            for (; p + W <= width; p += W) total = fma(load(q + p), Stored::get(key + p), total);
            if (p < width) total = fma(load_n(q + p, width - p), Stored::get_n(key + p, width - p), total);
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
template <class Stored, int NV>
inline void decode_vectors(int64_t keys, const Real* weights, const typename Stored::Element* v, int64_t row,
                           Real* out, int64_t last) {
    Vec even[NV], odd[NV];
    LINNET_UNROLL
    for (int c = 0; c < NV; c++) even[c] = load_n(out + c * W, c == NV - 1 ? last : W), odd[c] = zero();
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2, v += 2 * row) {
        Vec x = set1(weights[j]), y = set1(weights[j + 1]);
        LINNET_UNROLL
        for (int c = 0; c < NV; c++) {
            int64_t n = c == NV - 1 ? last : W;
            even[c] = fma(x, take<Stored>(v + c * W, n), even[c]);
            odd[c] = fma(y, take<Stored>(v + row + c * W, n), odd[c]);
        }
    }
    for (; j < keys; j++) {
        Vec x = set1(weights[j]);
        LINNET_UNROLL
        for (int c = 0; c < NV; c++)
            even[c] = fma(x, take<Stored>(v + c * W, c == NV - 1 ? last : W), even[c]);
    }
    LINNET_UNROLL
    for (int c = 0; c < NV; c++) store_n(out + c * W, even[c] + odd[c], c == NV - 1 ? last : W);
}

template <class Stored>
inline void decode_values(int64_t width, int64_t keys, const Real* weights, const typename Stored::Element* v,
                          int64_t row, Real* out) {
    for (int64_t c = 0; c < width; c += 4 * W) {
        int64_t vectors = least(4, ceil_divide(width - c, W)), last = least(W, width - c - (vectors - 1) * W);
        if (vectors == 4) decode_vectors<Stored, 4>(keys, weights, v + c, row, out + c, last);
        if (vectors == 3) decode_vectors<Stored, 3>(keys, weights, v + c, row, out + c, last);
        if (vectors == 2) decode_vectors<Stored, 2>(keys, weights, v + c, row, out + c, last);
        if (vectors == 1) decode_vectors<Stored, 1>(keys, weights, v + c, row, out + c, last);
    }
}

struct DecodeWork {
    alignas(64) Real rows[decode_piece * widest_head];  // keys or values, unpacked
    alignas(64) Real scores[decode_block + W];
    alignas(64) Real out[widest_head];
};

/// Calls use(Stored{}, keys before, keys, where these stand, elements from one to the next): for all at once
/// where vectors can be loaded from their type, and else for pieces of them, unpacked.
template <class F>
inline void decode_pieces(const Attention<Real>& f, const char* from, int64_t row, int64_t keys, Real* to,
                          F use) {
    with_stored(f.stored, [&](auto stored) {
        use(stored, 0, keys, reinterpret_cast<const typename decltype(stored)::Element*>(from), row);
    });
    if (block_of(f.stored) == 1) return;
    for (int64_t j = 0; j < keys; j += decode_piece) {
        int64_t some = least(decode_piece, keys - j);
        RealRows rows = real_rows(f, from + bytes_of(f.stored, j * row), row, some, to);
        use(StoredReal{}, j, some, rows.data, rows.row);
    }
}

inline void decode_query(const Attention<Real>& f, int64_t head, int64_t i, DecodeWork& w) {
    int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    const Real* q = f.q + i * f.q_row + head * f.q_head;
    const int64_t end = scan_end(f, i, 1), step = f.chosen ? key_block : decode_block;
    Real top = minus_infinity, total = 0;
    clear_rows(1, d, w.out, d);
    for (int64_t j = 0; j < end; j += step) {
        if (!block_seen(f, i, 1, j, step)) continue;
        int64_t keys = least(step, end - j);
        decode_pieces(f, rows_at(f, f.k, kv * f.k_head, f.k_row, j), f.k_row, keys, w.rows,
                      [&](auto stored, int64_t before, int64_t some, const auto* k, int64_t row) {
                          decode_scores<decltype(stored)>(d, some, q, k, row, w.scores + before);
                      });
        const int64_t width = ceil_divide(keys, W) * W;
        Real shrink;
        weigh_rows(f, head, i, 1, j, keys, width, w.scores, width, &top, &total, &shrink);
        scale_rows(1, d, w.out, d, &shrink);
        decode_pieces(f, rows_at(f, f.v, kv * f.v_head, f.v_row, j), f.v_row, keys, w.rows,
                      [&](auto stored, int64_t before, int64_t some, const auto* v, int64_t row) {
                          decode_values<decltype(stored)>(d, some, w.scores + before, v, row, w.out);
                      });
    }
    finish_rows<StoredReal>(f, head, i, 1, w.out, d, &top, &total);
}

inline void attention_decode(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                             void* workspace) {
    DecodeWork& w = *static_cast<DecodeWork*>(workspace);
    for (int64_t i = query_begin; i < query_end; i++) decode_query(f, head, i, w);
}

}  // namespace
}  // namespace linnet
