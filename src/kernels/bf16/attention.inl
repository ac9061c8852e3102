// Attention with its products in bf16: blocks, softmax and sums as in attention.inl and
// attention_backward.inl, in f32. Queries, keys, values, weights and their gradients are rounded as they are
// packed, or where Units::split (in reading) made two of bf16. `Units` make the products (tile_attention.inl,
// dot_attention.inl): what is left of a product is one of their Lefts, made by rows_of_a or turned; what is
// right of it is packed in panels.
#pragma once
#include "kernels/attention_backward.inl"
#include "kernels/bf16/packing.inl"

namespace linnet {
namespace {

constexpr int64_t head_words = widest_head / 2;  // of a row of D

/// Forward takes so many keys at a time: a row's maximum and sum are found, and what was summed before is
/// scaled, a quarter as often as for blocks of keys. (T 512, D 64, one thread of Emerald Rapids: 17 ms,
/// not 21.)
constexpr int64_t wide_keys = 4 * key_block;

/// Units write C in whole tiles: sums stand in rows of whole_tiles(D), with room for whole_tiles(rows).
inline int64_t whole_tiles(int64_t n) {
    return ceil_divide(n, tile_side) * tile_side;
}

template <bool split>
struct BF16Attention {
    static constexpr int64_t parts = split ? 2 : 1;         // of a number
    alignas(64) float q[parts * query_block * head_words];  // rows of A
    alignas(64) float k[parts * wide_keys * head_words],    // columns of B
        v[parts * widest_head * wide_keys / 2];
    alignas(64) float weights[parts * tile_block * wide_keys / 2];  // rows of A
    // Keys or values of a block type, unpacked; in training there are none.
    alignas(64) Real rows[split ? wide_keys * widest_head : 1];
    alignas(64) Real scores[tile_block * wide_keys];
    alignas(64) Real out[query_block * widest_head];
    Real top[query_block], total[query_block];
};
struct BF16AttentionBackward {
    // Columns of B: keys and values along D, keys along themselves. Behind: QueryBlocks.
    alignas(64) float k_d[key_block * head_words], v_d[key_block * head_words], k_k[key_block * head_words];
    alignas(64) float left[key_block * key_block / 2];  // rows of A: P or dA, or turned
    alignas(64) Real weights[key_block * key_block],
        dscores[key_block * key_block];  // P, dA: [queries, keys]
    alignas(64) Real dk[key_block * widest_head], dv[key_block * widest_head];
};
static_assert(sizeof(BF16Attention<true>) <= sizeof(BF16Panels) &&
              sizeof(BF16AttentionBackward) <= sizeof(BF16Panels));
static_assert(tile_block <= most_weighed);

/// Rows of D numbers, f32, f16 or bf16.
struct Numbers {
    const void* data;
    DType type;
    int64_t row;

    /// From element i of them on.
    Numbers from(int64_t i) const { return {static_cast<const char*>(data) + i * size_of(type), type, row}; }
    Operand operand(int64_t line, int64_t step) const { return {data, type, line, step}; }
};

/// Keys or values [j, j + count), where they stand, or where their type has blocks unpacked into `room`;
/// `head` is the element where their head begins.
template <bool blocks>
Numbers numbers_at(const Attention<Real>& f, const void* first, int64_t head, int64_t row, int64_t j,
                   int64_t count, Real* room) {
    const char* from = rows_at(f, first, head, row, j);
    if constexpr (blocks) {
        if (block_of(f.stored) > 1) {
            const RealRows unpacked = real_rows(f, from, row, count, room);
            return {unpacked.data, real_type, unpacked.row};
        }
    }
    return {from, f.stored, row};
}

/// Rows [0, count) of width D as columns of B, along D (the rows are lines) or along the rows.
template <bool split = false>
void pack_along_d(const Numbers& x, int64_t count, int64_t d, float* to) {
    pack_operand<split, true, tile_side>(x.operand(x.row, 1), x.row, 1, 0, count, 0, d, to);
}
template <bool split = false>
void pack_along_rows(const Numbers& x, int64_t count, int64_t d, float* to) {
    pack_operand<split, true, tile_side>(x.operand(1, x.row), 1, x.row, 0, d, 0, count, to);
}

/// The sizes of a product C [m, n] = A · B: B is packed for K, of which A is packed for the first `used`.
struct SmallSize {
    int64_t m, n, k, used;
};

/// Rows of D of a gradient: its sums, in rows of whole_tiles(D), begun from what stands in memory or from 0.
/// In memory rows are often a multiple of 1 KiB apart and would evict each other from L1.
inline void begin_sums(bool onto, int64_t rows, int64_t d, const Real* memory, int64_t memory_row,
                       Real* sums) {
    for (int64_t r = 0; r < rows; r++, memory += memory_row, sums += whole_tiles(d))
        each_vector(d, [&](int64_t c, int64_t n) {
            if (!onto) __builtin_prefetch(memory + c, 1, 2);  // for end_sums
            store_n(sums + c, onto ? load_n(memory + c, n) : zero(), n);
        });
}
inline void end_sums(int64_t rows, int64_t d, const Real* sums, Real* memory, int64_t memory_row) {
    for (int64_t r = 0; r < rows; r++, memory += memory_row, sums += whole_tiles(d))
        each_vector(d, [&](int64_t c, int64_t n) { store_n(memory + c, load_n(sums + c, n), n); });
}

/// Queries [i, i + rows), which are `q`, against the keys [j, j + keys).
template <class Units>
void bf16_attend(const Attention<Real>& f, int64_t head, typename Units::Left q, int64_t i, int64_t rows,
                 int64_t j, int64_t keys, int64_t local, BF16Attention<Units::split>& w) {
    const int64_t d = f.head_width;
    if (!block_seen(f, i, rows, j, keys)) return;
    const int64_t end = least(scan_end(f, i, rows) - j, keys);
    const int64_t width = ceil_divide(end, W) * W, used = ceil_divide(end, tile_depth) * tile_depth;
    Units::put({rows, width, d, d}, q, w.k, w.scores, wide_keys);
    Real shrink[tile_block];
    weigh_rows(f, head, i, rows, j, keys, width, w.scores, wide_keys, w.top + local, w.total + local, shrink);
    if (f.dropout.limit > 0) drop_weights(f, head, i, rows, j, width, w.scores, wide_keys);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = width; c < used; c += W) store(w.scores + r * wide_keys + c, zero());
    const auto weights = Units::rows_of_a({w.scores, DType::f32, wide_keys}, rows, used, w.weights);
    Units::add({rows, d, keys, used}, weights, w.v, w.out + local * whole_tiles(d), whole_tiles(d), shrink);
}

template <class Units>
void bf16_attention(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                    void* workspace) {
    auto& w = *static_cast<BF16Attention<Units::split>*>(workspace);
    const int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    // What a window leaves out is not computed, and blocks are chosen one by one.
    const int64_t step = f.window > 0 || f.chosen ? key_block : wide_keys;
    const bool rounded = !Units::split && f.stored == DType::bf16;  // queries and results, too
    const Numbers q = Numbers{f.q, rounded ? DType::bf16 : real_type, f.q_row}.from(head * f.q_head);
    Units::begin();
    for (int64_t q0 = query_begin; q0 < query_end; q0 += query_block) {
        const int64_t q1 = least(q0 + query_block, query_end), count = q1 - q0;
        for (int64_t r = 0; r < count; r++) w.top[r] = minus_infinity, w.total[r] = 0;
        for (int64_t c = 0; c < whole_tiles(count) * whole_tiles(d); c += W) store(w.out + c, zero());
        const auto queries = Units::rows_of_a(q.from(q0 * f.q_row), count, d, w.q);
        const int64_t last = scan_end(f, q0, count);
        for (int64_t j = 0; j < last; j += step) {
            const int64_t keys = least(step, last - j);
            if (!block_seen(f, q0, count, j, keys)) continue;
            const Numbers k = numbers_at<Units::split>(f, f.k, kv * f.k_head, f.k_row, j, keys, w.rows);
            pack_along_d<Units::split>(k, keys, d, w.k);
            const Numbers v = numbers_at<Units::split>(f, f.v, kv * f.v_head, f.v_row, j, keys, w.rows);
            pack_along_rows<Units::split>(v, keys, d, w.v);
            for (int64_t i = q0; i < q1; i += Units::rows)
                bf16_attend<Units>(f, head, queries.from(i - q0), i, least(Units::rows, q1 - i), j, keys,
                                   i - q0, w);
        }
        if (rounded)
            finish_rows<StoredBF16>(f, head, q0, count, w.out, whole_tiles(d), w.top, w.total);
        else
            finish_rows<StoredReal>(f, head, q0, count, w.out, whole_tiles(d), w.top, w.total);
    }
    Units::end();
}

/// What the products with a block of queries need of them: rows of A, columns of B along themselves,
/// rowsum(dO ∘ O), and the sums of dQ. Where there is room for all of a head's queries, it is packed once per
/// head and dQ is written once.
template <class Units>
struct QueryBlocks {
    using Left = typename Units::Left;
    static_assert(!Units::split);  // sizes below are of one part
    const Attention<Real>& f;
    const HeadGradient* h = nullptr;
    Real* room;
    int64_t a_words, b_words, most;  // most: blocks that fit
    bool all;                        // blocks of a head fit

    QueryBlocks(const Attention<Real>& forward, float* begin, int64_t floats)
        : f(forward),
          room(begin),
          a_words(key_block / tile_side * ceil_divide(f.head_width, tile_depth) * tile_words),
          b_words(ceil_divide(f.head_width, tile_side) * (key_block / tile_depth) * tile_words),
          most(floats / size()),
          all(ceil_divide(f.rows, key_block) <= most) {}

    int64_t size() const {
        return 2 * (a_words + b_words) + key_block + key_block * whole_tiles(f.head_width);
    }
    float* at(int64_t i) const { return room + (all ? i / key_block * size() : 0); }
    Left q(int64_t i) const { return Units::rows_at(at(i), f.head_width); }
    Left dout(int64_t i) const { return Units::rows_at(at(i) + a_words, f.head_width); }
    const float* q_q(int64_t i) const { return at(i) + 2 * a_words; }
    const float* dout_q(int64_t i) const { return at(i) + 2 * a_words + b_words; }
    Real* deltas(int64_t i) const { return at(i) + 2 * (a_words + b_words); }
    Real* dq(int64_t i) const { return deltas(i) + key_block; }

    void begin_head(const HeadGradient& head) {
        h = &head;
        if (!all && !h->onto_q) clear_rows(f.rows, f.head_width, h->dq, f.q_row);
        for (int64_t i = 0; all && i < f.rows; i += key_block)
            pack(i, least(i + key_block, f.rows), h->onto_q);
    }
    void end_head() const {
        for (int64_t i = 0; all && i < f.rows; i += key_block) write(i, least(i + key_block, f.rows));
    }
    /// The queries [i0, i1), a block, stand where at(i0) says between these two.
    void begin_block(int64_t i0, int64_t i1) const {
        if (!all) pack(i0, i1, true);
    }
    void end_block(int64_t i0, int64_t i1) const {
        if (!all) write(i0, i1);
    }

  private:
    void write(int64_t i0, int64_t i1) const {
        end_sums(i1 - i0, f.head_width, dq(i0), h->dq + i0 * f.q_row, f.q_row);
    }
    void pack(int64_t i0, int64_t i1, bool onto_q) const {
        const int64_t d = f.head_width, queries = i1 - i0;
        const Numbers rows = Numbers{f.q, f.stored, f.q_row}.from(h->head * f.q_head + i0 * f.q_row),
                      gradients{h->dout + i0 * f.out_row, DType::f32, f.out_row};
        float* const to = at(i0);
        Units::rows_of_a(rows, queries, d, to);
        Units::rows_of_a(gradients, queries, d, to + a_words);
        pack_along_rows(rows, queries, d, to + 2 * a_words);
        pack_along_rows(gradients, queries, d, to + 2 * a_words + b_words);
        for (int64_t i = i0; i < i1; i++) deltas(i0)[i - i0] = delta(i);
        begin_sums(onto_q, queries, d, h->dq + i0 * f.q_row, f.q_row, dq(i0));
    }
    Real delta(int64_t i) const {
        const Real* dout_row = h->dout + i * f.out_row;
        if (f.stored != DType::bf16) return dot(f.head_width, dout_row, h->out + i * f.out_row);
        const uint16_t* out =
            reinterpret_cast<const uint16_t*>(f.out) + h->head * f.head_width + i * f.out_row;
        Vec total = zero();
        each_vector(f.head_width, [&](int64_t c, int64_t n) {
            total = fma(load_n(dout_row + c, n), StoredBF16::get_n(out + c, n), total);
        });
        return sum(total);
    }
};

/// Products of query rows [i, i + rows), at most most_weighed, with the keys from j on become P and dA, as in
/// backward_weights.
inline void bf16_backward_weights(const Attention<Real>& f, const HeadGradient& h, int64_t i, int64_t rows,
                                  int64_t j, int64_t keys, const Real* deltas, Real* p, Real* s) {
    const int64_t width = ceil_divide(keys, W) * W;
    WeightDraws draws;
    const bool drops = f.dropout.limit > 0;
    if (drops) draws.draw(f, h.head, i, rows, j), draws.keep(f.dropout, rows, width, s, key_block);
    for (int64_t r = 0; r < rows; r++)
        finish_backward_row(f, h, i + r, j, keys, width, deltas[r], p + r * key_block, s + r * key_block);
    if (drops) draws.keep(f.dropout, rows, width, p, key_block);
}

/// The products of the queries [i0, i1) with the keys [j, j + keys), which are packed.
template <class Units>
void bf16_backward_block(const QueryBlocks<Units>& blocks, const HeadGradient& h, int64_t i0, int64_t i1,
                         int64_t j, int64_t keys, BF16AttentionBackward& w) {
    const Attention<Real>& f = blocks.f;
    const int64_t d = f.head_width, queries = i1 - i0, width = ceil_divide(keys, W) * W;
    Units::put({queries, width, d, d}, blocks.q(i0), w.k_d, w.weights, key_block);
    Units::put({queries, width, d, d}, blocks.dout(i0), w.v_d, w.dscores, key_block);
    for (int64_t r = 0; r < queries; r += most_weighed)
        bf16_backward_weights(f, h, i0 + r, least(most_weighed, queries - r), j, keys, blocks.deltas(i0) + r,
                              w.weights + r * key_block, w.dscores + r * key_block);
    const auto by_rows = Units::rows_of_a({w.dscores, DType::f32, key_block}, queries, keys, w.left);
    Units::add({queries, d, keys, keys}, by_rows, w.k_k, blocks.dq(i0), whole_tiles(d), nullptr);
    const auto weights = Units::turned(w.weights, queries, keys, w.left);
    Units::add({keys, d, queries, queries}, weights, blocks.dout_q(i0), w.dv, whole_tiles(d), nullptr);
    const auto dscores = Units::turned(w.dscores, queries, keys, w.left);
    Units::add({keys, d, queries, queries}, dscores, blocks.q_q(i0), w.dk, whole_tiles(d), nullptr);
}

constexpr int64_t query_room =
    static_cast<int64_t>((sizeof(BF16Panels) - sizeof(BF16AttentionBackward)) / sizeof(float));

template <class Units>
struct BF16BackwardSteps {
    const Attention<Real>& f;
    BF16AttentionBackward& w;
    QueryBlocks<Units>& blocks;

    void begin_head(const HeadGradient& h) const { blocks.begin_head(h); }
    void end_head(const HeadGradient&) const { blocks.end_head(); }
    void begin_keys(const HeadGradient& h, int64_t j, int64_t keys) const {
        const int64_t d = f.head_width, kv = h.head / (f.heads / f.kv_heads);
        const Numbers k = Numbers{f.k, f.stored, f.k_row}.from(kv * f.k_head + j * f.k_row),
                      v = Numbers{f.v, f.stored, f.v_row}.from(kv * f.v_head + j * f.v_row);
        pack_along_d(k, keys, d, w.k_d);
        pack_along_d(v, keys, d, w.v_d);
        pack_along_rows(k, keys, d, w.k_k);
        begin_sums(h.onto_k, keys, d, h.dk + j * f.k_row, f.k_row, w.dk);
        begin_sums(h.onto_v, keys, d, h.dv + j * f.v_row, f.v_row, w.dv);
    }
    void end_keys(const HeadGradient& h, int64_t j, int64_t keys) const {
        end_sums(keys, f.head_width, w.dk, h.dk + j * f.k_row, f.k_row);
        end_sums(keys, f.head_width, w.dv, h.dv + j * f.v_row, f.v_row);
    }
    void block(const HeadGradient& h, int64_t i0, int64_t i1, int64_t j, int64_t keys) const {
        blocks.begin_block(i0, i1);
        bf16_backward_block<Units>(blocks, h, i0, i1, j, keys, w);
        blocks.end_block(i0, i1);
    }
};

/// most_room: floats behind the work space for QueryBlocks (a test gives less).
template <class Units, int64_t most_room = query_room>
void bf16_attention_backward(const AttentionBackward<Real>& b, int64_t kv_head, void* workspace) {
    auto& w = *static_cast<BF16AttentionBackward*>(workspace);
    QueryBlocks<Units> blocks(b.forward, reinterpret_cast<float*>(&w + 1), most_room);
    Units::begin();
    each_key_block(b, kv_head, BF16BackwardSteps<Units>{b.forward, w, blocks});
    Units::end();
}

}  // namespace
}  // namespace linnet
