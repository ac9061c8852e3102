// What attention's paths share: block sizes, which keys a query sees, how keys and values are stored, what
// scores get besides their scale, and the online softmax (Milakov & Gimelshein 2018).
#pragma once
#include "kernels/elementwise.inl"

namespace linnet {
namespace {

constexpr int64_t key_block = choice_block, query_block = 128, widest_head = 256;
constexpr Real minus_infinity = -__builtin_inff();

/// Where keys lie on both sides, a global position sees all of them.
inline bool sees_all(const Attention<Real>& f, int64_t i) {
    return !f.causal && f.cached + i < f.globals;
}
/// Keys [begin, end) that query row i sees.
inline int64_t visible_begin(const Attention<Real>& f, int64_t i) {
    return f.window > 0 && !sees_all(f, i) ? most(0, f.cached + i - f.window + 1) : 0;
}
inline int64_t visible_end(const Attention<Real>& f, int64_t i) {
    if (f.causal) return f.cached + i + 1;
    return f.window > 0 && !sees_all(f, i) ? least(f.keys, f.cached + i + f.window) : f.keys;
}
/// The last end of query rows [i, i + rows).
inline int64_t furthest_end(const Attention<Real>& f, int64_t i, int64_t rows) {
    return visible_end(f, sees_all(f, i) ? i : i + rows - 1);
}

/// The keys or values of positions from j on, of key/value head `head`.
inline const char* rows_at(const Attention<Real>& f, const void* first, int64_t head, int64_t row,
                           int64_t j) {
    return static_cast<const char*>(first) + bytes_of(f.stored, head + j % f.ring * row);
}

struct RealRows {
    const Real* data;
    int64_t row;
};

/// `rows` rows of D as Real: where they stand, or unpacked to `to`, which has room for whole blocks.
inline RealRows real_rows(const Attention<Real>& f, const char* from, int64_t row, int64_t rows, Real* to) {
    if (f.stored == real_type) return {reinterpret_cast<const Real*>(from), row};
    int64_t block = block_of(f.stored), width = ceil_divide(f.head_width, block) * block;
    for (int64_t r = 0; r < rows; r++)
        load_stored(width, f.stored, from + bytes_of(f.stored, r * row), to + r * width);
    return {to, width};
}

/// Whether the block of keys at j is chosen for query row i.
inline bool chosen(const Attention<Real>& f, int64_t i, int64_t j) {
    return f.chosen && f.chosen[(f.cached + i) / key_block * f.chosen_row + j / key_block] != 0;
}

/// Of the keys from j on, counted from there: those that query row i sees.
struct Seen {
    int64_t begin, end, globals;  // [begin, end), and [0, globals)
};
inline Seen seen_keys(const Attention<Real>& f, int64_t i, int64_t j, int64_t keys) {
    if (chosen(f, i, j)) return {0, f.causal ? least(f.cached + i + 1 - j, keys) : keys, 0};
    int64_t end = least(visible_end(f, i) - j, keys);
    return {visible_begin(f, i) - j, end, least(f.globals - j, end)};
}

/// The end of all keys that query rows [i, i + rows) may see.
inline int64_t scan_end(const Attention<Real>& f, int64_t i, int64_t rows) {
    if (!f.chosen) return furthest_end(f, i, rows);
    return f.causal ? f.cached + i + rows : f.keys;
}
/// Whether query rows [i, i + rows) see one of `some` keys from j on; blocks that are chosen have key_block.
inline bool block_seen(const Attention<Real>& f, int64_t i, int64_t rows, int64_t j, int64_t some) {
    if (j >= scan_end(f, i, rows)) return false;
    if (j < f.globals || (j + some > visible_begin(f, i) && j < furthest_end(f, i, rows))) return true;
    for (int64_t at = i; f.chosen && at < i + rows; at += key_block - (f.cached + at) % key_block)
        if (chosen(f, at, j)) return true;
    return false;
}

/// Of the W keys from c on: v where they are seen, else `other`.
inline Vec keep_seen(Vec v, const Seen& seen, int64_t c, Vec other) {
    if (c >= seen.begin && c + W <= seen.end) return v;
    Vec kept = keep(v, seen.begin - c, seen.end - c, other);
    return c < seen.globals ? keep(v, 0, seen.globals - c, kept) : kept;
}

/// Scores need more than a factor before their softmax.
inline bool shaped(const Attention<Real>& f) {
    return f.softcap > 0 || f.slopes || f.bias;
}
/// What is left to multiply scores with once they have their shape.
inline Real score_factor(const Attention<Real>& f) {
    return shaped(f) ? Real(1) : f.scale;
}

/// Where the biases of W keys from j on stand, in a table of f.bias's shape.
inline int64_t bias_at(const Attention<Real>& f, int64_t head, int64_t i, int64_t j) {
    if (f.bias_keys > 0) return head * f.bias_row + i * f.bias_keys + j;
    int64_t column = f.bias_zero + j - f.cached - i, last = f.bias_row - score_bias_lanes;
    return head * f.bias_row + most(0, least(column, last));
}

constexpr Real lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static_assert(W <= score_bias_lanes && sizeof(lane_numbers) / sizeof(Real) == score_bias_lanes);

/// The scores of query row i with W keys from j on, from their products; `tanh` is that of the soft cap.
inline Vec shape_scores(const Attention<Real>& f, int64_t head, int64_t i, int64_t j, Vec product,
                        Vec& tanh) {
    Vec x = product * set1(f.scale), derivative;
    tanh = zero();
    if (f.softcap > 0) {
        Tanh::at(x * set1(1 / f.softcap), tanh, derivative);
        x = tanh * set1(f.softcap);
    }
    if (f.slopes) {
        Vec distance = abs(set1(Real(j - f.cached - i)) + load(lane_numbers));
        x = fnma(distance, set1(f.slopes[head]), x);
    }
    return f.bias ? x + load(f.bias + bias_at(f, head, i, j)) : x;
}

/// One row of products, `width` (whole vectors) of them, with the keys from j on become scores.
inline void shape_row(const Attention<Real>& f, int64_t head, int64_t i, int64_t j, int64_t width, Real* s) {
    Vec tanh;
    for (int64_t c = 0; c < width; c += W) store(s + c, shape_scores(f, head, i, j + c, load(s + c), tanh));
}

/// The largest of s · scale over the keys that are seen of one row of scores, `width` (whole vectors) of them
/// written.
inline Real row_top(const Real* s, int64_t width, const Seen& seen, Real scale) {
    Vec factor = set1(scale), low = set1(minus_infinity), high = low;
    for (int64_t j = 0; j < width; j += W) high = max(high, keep_seen(load(s + j) * factor, seen, j, low));
    return largest(high);
}

/// Scores become weights exp(s · scale - top), 0 where a key is not seen; returns their sum.
inline Real row_weights(Real* s, int64_t width, const Seen& seen, Real scale, Real top) {
    Vec factor = set1(scale), m = set1(top == minus_infinity ? Real(0) : -top), sums = zero();
    for (int64_t j = 0; j < width; j += W) {
        Vec e = keep_seen(exp(fma(load(s + j), factor, m)), seen, j, zero());
        store(s + j, e);
        sums = sums + e;
    }
    return sum(sums);
}

constexpr int64_t most_weighed = 32;  // rows at a time

/// What the sums so far shrink by when the maximum rises from `before` to `now`, for n rows.
inline void shrink_factors(int64_t n, const Real* before, const Real* now, Real* factor) {
    Real fall[most_weighed];
    for (int64_t r = 0; r < n; r++)
        fall[r] = before[r] == minus_infinity ? minus_infinity : before[r] - now[r];
    each_vector(n, [&](int64_t i, int64_t some) { store_n(factor + i, exp(load_n(fall + i, some)), some); });
}

/// Scores of `rows` queries (from query i on, at most most_weighed) with the keys [j, j + keys), `width`
/// (whole vectors) of them written in rows score_row apart, become weights; top and total, the queries' own,
/// take them in; shrink is by how much what was summed before shrinks.
inline void weigh_rows(const Attention<Real>& f, int64_t head, int64_t i, int64_t rows, int64_t j,
                       int64_t keys, int64_t width, Real* scores, int64_t score_row, Real* top, Real* total,
                       Real* shrink) {
    const Real factor = score_factor(f);
    Real now[most_weighed];
    for (int64_t r = 0; r < rows; r++) {
        Real* s = scores + r * score_row;
        if (shaped(f)) shape_row(f, head, i + r, j, width, s);
        const Real high = row_top(s, width, seen_keys(f, i + r, j, keys), factor);
        now[r] = high > top[r] ? high : top[r];
    }
    shrink_factors(rows, top, now, shrink);
    for (int64_t r = 0; r < rows; r++) {
        const Real sum =
            row_weights(scores + r * score_row, width, seen_keys(f, i + r, j, keys), factor, now[r]);
        total[r] = total[r] * shrink[r] + sum;
        top[r] = now[r];
    }
}

inline void clear_rows(int64_t rows, int64_t width, Real* p, int64_t row) {
    for (int64_t r = 0; r < rows; r++, p += row) {
        each_vector(width, [&](int64_t c, int64_t n) { store_n(p + c, zero(), n); });
    }
}

/// c [rows, n] = c ∘ factor.
inline void scale_rows(int64_t rows, int64_t n, Real* c, int64_t row, const Real* factor) {
    for (int64_t r = 0; r < rows; r++, c += row) {
        const Vec by = set1(factor[r]);
        each_vector(n, [&](int64_t i, int64_t some) { store_n(c + i, load_n(c + i, some) * by, some); });
    }
}

/// The queries [i, i + rows) of a head, from their sums `from` [rows, D], from_row apart. out is of type
/// Stored.
template <class Stored>
void finish_rows(const Attention<Real>& f, int64_t head, int64_t i, int64_t rows, const Real* from,
                 int64_t from_row, const Real* top, const Real* total) {
    const int64_t d = f.head_width;
    for (int64_t r = 0; r < rows; r++, from += from_row) {
        auto* out = reinterpret_cast<typename Stored::Element*>(f.out) + (i + r) * f.out_row + head * d;
        const Vec factor = set1(Real(1) / total[r]);
        each_vector(d,
                    [&](int64_t c, int64_t n) { Stored::put_n(out + c, load_n(from + c, n) * factor, n); });
        if (f.lse)
            f.lse[head * f.rows + i + r] =
                top[r] + static_cast<Real>(__builtin_log(static_cast<double>(total[r])));
    }
}

}  // namespace
}  // namespace linnet
