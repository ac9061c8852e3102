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
    // Columns of B: keys and values along D, keys along themselves. Behind: QueryBlocks.
    alignas(64) float k_d[key_block * head_words], v_d[key_block * head_words], k_k[key_block * head_words];
    alignas(64) float left[key_block * key_block / 2];  // rows of A: P or dA, or turned
    alignas(64) Real weights[key_block * key_block],
        dscores[key_block * key_block];  // P, dA: [queries, key_block]
    alignas(64) Real sums[key_block * widest_head];
};
static_assert(sizeof(TileAttention) <= sizeof(BF16Panels) &&
              sizeof(TileAttentionBackward) <= sizeof(BF16Panels));

/// Rows of D numbers, f32 or bf16.
struct Numbers {
    const void* data;
    DType type;
    int64_t row;

    /// From element i of them on.
    Numbers from(int64_t i) const { return {static_cast<const char*>(data) + i * size_of(type), type, row}; }
    Operand operand(int64_t line, int64_t step) const { return {data, type, line, step}; }
};

/// Rows [0, count) of width D: as rows of A, or as columns of B, along D (the rows are lines) or along the
/// rows.
inline void pack_rows_of_a(const Numbers& x, int64_t count, int64_t d, float* to) {
    pack_operand<false, false, tile_side>(x.operand(x.row, 1), x.row, 1, 0, count, 0, d, to);
}
inline void pack_along_d(const Numbers& x, int64_t count, int64_t d, float* to) {
    pack_operand<false, true, tile_side>(x.operand(x.row, 1), x.row, 1, 0, count, 0, d, to);
}
inline void pack_along_rows(const Numbers& x, int64_t count, int64_t d, float* to) {
    pack_operand<false, true, tile_side>(x.operand(1, x.row), 1, x.row, 0, d, 0, count, to);
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
            product_block<Tiles, false>(m - i > tile_side, two_b, steps, rows, b, sums + i * row + j, row,
                                        []() {});
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
    if (!block_seen(f, i, rows, j, key_block)) return;
    const int64_t end = least(scan_end(f, i, rows) - j, keys);
    const int64_t width = ceil_divide(end, W) * W;
    tile_small<Tiles>(rows, width, d, q, w.k, w.scores, key_block);
    Real shrink[tile_block];
    weigh_rows(f, head, i, rows, j, keys, width, w.scores, w.top + local, w.total + local, shrink);
    // Along all keys of the block, as the values are: those beyond the width weigh nothing.
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = width; c < keys; c += W) store(w.scores + r * key_block + c, zero());
    pack_rows_of_a({w.scores, DType::f32, key_block}, rows, keys, w.weights);
    tile_small<Tiles>(rows, d, keys, w.weights, w.v, w.sums, widest_head);
    add_rows(rows, d, w.sums, widest_head, w.out + local * d, d, shrink);
}

template <class Tiles>
void tile_attention(const Attention<Real>& f, int64_t head, int64_t query_begin, int64_t query_end,
                    void* workspace) {
    auto& w = *static_cast<TileAttention*>(workspace);
    const int64_t kv = head / (f.heads / f.kv_heads), d = f.head_width;
    const int64_t panel = ceil_divide(d, tile_depth) * tile_words;
    const Numbers q = Numbers{f.q, f.stored, f.q_row}.from(head * f.q_head),
                  k = Numbers{f.k, f.stored, f.k_row}.from(kv * f.k_head),
                  v = Numbers{f.v, f.stored, f.v_row}.from(kv * f.v_head);
    Tiles::begin();
    for (int64_t q0 = query_begin; q0 < query_end; q0 += query_block) {
        const int64_t q1 = least(q0 + query_block, query_end), count = q1 - q0;
        for (int64_t r = 0; r < count; r++) w.top[r] = minus_infinity, w.total[r] = 0;
        each_vector(count * d, [&](int64_t c, int64_t n) { store_n(w.out + c, zero(), n); });
        pack_rows_of_a(q.from(q0 * f.q_row), count, d, w.q);
        const int64_t last = scan_end(f, q0, count);
        for (int64_t j = 0; j < last; j += key_block) {
            if (!block_seen(f, q0, count, j, key_block)) continue;
            const int64_t keys = least(key_block, f.keys - j);
            pack_along_d(k.from(j * f.k_row), keys, d, w.k);
            pack_along_rows(v.from(j * f.v_row), keys, d, w.v);
            for (int64_t i = q0; i < q1; i += tile_block)
                tile_attend<Tiles>(f, head, w.q + (i - q0) / tile_side * panel, i, least(tile_block, q1 - i),
                                   j, keys, i - q0, w);
        }
        if (f.stored == DType::bf16)
            finish_rows<StoredBF16>(f, head, q0, count, w.out, w.top, w.total);
        else
            finish_rows<StoredReal>(f, head, q0, count, w.out, w.top, w.total);
    }
    Tiles::end();
}

/// What the products with a block of queries need of them: rows of A, columns of B along themselves, and
/// rowsum(dO ∘ O). It is packed once per head where there is room for all of a head's queries.
struct QueryBlocks {
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

    int64_t size() const { return 2 * (a_words + b_words) + key_block; }
    float* at(int64_t i) const { return room + (all ? i / key_block * size() : 0); }
    const float* q(int64_t i) const { return at(i); }
    const float* dout(int64_t i) const { return at(i) + a_words; }
    const float* q_q(int64_t i) const { return at(i) + 2 * a_words; }
    const float* dout_q(int64_t i) const { return at(i) + 2 * a_words + b_words; }
    Real* deltas(int64_t i) const { return at(i) + 2 * (a_words + b_words); }

    /// Another head: all its queries.
    void begin(const HeadGradient& head) {
        h = &head;
        for (int64_t i = 0; all && i < f.rows; i += key_block) pack(i, least(i + key_block, f.rows));
    }
    /// The queries [i0, i1), a block: they stand where at(i0) says.
    void need(int64_t i0, int64_t i1) const {
        if (!all) pack(i0, i1);
    }

  private:
    void pack(int64_t i0, int64_t i1) const {
        const int64_t d = f.head_width, queries = i1 - i0;
        const Numbers rows = Numbers{f.q, f.stored, f.q_row}.from(h->head * f.q_head + i0 * f.q_row),
                      gradients{h->dout + i0 * f.out_row, DType::f32, f.out_row};
        float* const to = at(i0);
        pack_rows_of_a(rows, queries, d, to);
        pack_rows_of_a(gradients, queries, d, to + a_words);
        pack_along_rows(rows, queries, d, to + 2 * a_words);
        pack_along_rows(gradients, queries, d, to + 2 * a_words + b_words);
        for (int64_t i = i0; i < i1; i++) deltas(i0)[i - i0] = delta(i);
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

/// The products of the queries [i0, i1) with the keys [j, j + keys), which are packed.
template <class Tiles>
void tile_backward_block(const QueryBlocks& blocks, const HeadGradient& h, int64_t i0, int64_t i1, int64_t j,
                         int64_t keys, TileAttentionBackward& w) {
    const Attention<Real>& f = blocks.f;
    const int64_t d = f.head_width, queries = i1 - i0, width = ceil_divide(keys, W) * W;
    tile_small<Tiles>(queries, width, d, blocks.q(i0), w.k_d, w.weights, key_block);
    tile_small<Tiles>(queries, width, d, blocks.dout(i0), w.v_d, w.dscores, key_block);
    const Real* const deltas = blocks.deltas(i0);
    for (int64_t r = 0; r < queries; r++)
        finish_backward_row(f, h, i0 + r, j, keys, width, deltas[r], w.weights + r * key_block,
                            w.dscores + r * key_block);
    pack_rows_of_a({w.dscores, DType::f32, key_block}, queries, keys, w.left);
    tile_small<Tiles>(queries, d, keys, w.left, w.k_k, w.sums, widest_head);
    add_rows(queries, d, w.sums, widest_head, h.dq + i0 * f.q_row, f.q_row, nullptr);
    pack_turned(w.weights, queries, keys, w.left);
    tile_small<Tiles>(keys, d, queries, w.left, blocks.dout_q(i0), w.sums, widest_head);
    add_rows(keys, d, w.sums, widest_head, h.dv + j * f.v_row, f.v_row, nullptr);
    pack_turned(w.dscores, queries, keys, w.left);
    tile_small<Tiles>(keys, d, queries, w.left, blocks.q_q(i0), w.sums, widest_head);
    add_rows(keys, d, w.sums, widest_head, h.dk + j * f.k_row, f.k_row, nullptr);
}

constexpr int64_t query_room =
    static_cast<int64_t>((sizeof(BF16Panels) - sizeof(TileAttentionBackward)) / sizeof(float));

/// most_room: floats behind the work space for QueryBlocks (a test gives less).
template <class Tiles, int64_t most_room = query_room>
void tile_attention_backward(const AttentionBackward<Real>& b, int64_t kv_head, void* workspace) {
    auto& w = *static_cast<TileAttentionBackward*>(workspace);
    const Attention<Real>& f = b.forward;
    const int64_t d = f.head_width;
    QueryBlocks blocks(f, reinterpret_cast<float*>(&w + 1), most_room);
    const Numbers k = Numbers{f.k, f.stored, f.k_row}.from(kv_head * f.k_head),
                  v = Numbers{f.v, f.stored, f.v_row}.from(kv_head * f.v_head);
    Tiles::begin();
    each_key_block(
        b, kv_head,
        [&](const HeadGradient& h, int64_t j, int64_t keys) {
            if (j == 0) blocks.begin(h);
            pack_along_d(k.from(j * f.k_row), keys, d, w.k_d);
            pack_along_d(v.from(j * f.v_row), keys, d, w.v_d);
            pack_along_rows(k.from(j * f.k_row), keys, d, w.k_k);
        },
        [&](const HeadGradient& h, int64_t i0, int64_t i1, int64_t j, int64_t keys) {
            blocks.need(i0, i1);
            tile_backward_block<Tiles>(blocks, h, i0, i1, j, keys, w);
        });
    Tiles::end();
}

}  // namespace
}  // namespace linnet
