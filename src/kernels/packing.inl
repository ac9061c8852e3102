// What the products by packed panels share: the panels, where sums go, and the workspace.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

constexpr int tile_columns = tile_vectors * W;
constexpr int64_t packed_together = 32;  // k's

/// Copies `lines` <= P lines of `depth` elements into one panel dst[depth][P]; element (i, p) stands at
/// src[i * line + p * step]. Lines up to P are filled with zeros. Where P is no multiple of W, rows of the
/// panel are written whole and the next row overwrites what stood out (the workspace has W spare elements at
/// its end).
template <class Stored, int P>
void pack_panel(const typename Stored::Element* src, int64_t line, int64_t step, int64_t lines, int64_t depth,
                Real* dst) {
    constexpr int groups = (P + W - 1) / W;
    if (step == 1) {  // lines are contiguous: transpose W × W squares in registers
        for (int64_t p = 0; p < depth; p += W) {
            int64_t some = least(W, depth - p);
            for (int g = 0; g < groups; g++) {
                Vec square[W];
                int64_t full = lines - g * W;
                const typename Stored::Element* from = src + g * W * line + p;
                for (int i = 0; i < W; i++) {
                    square[i] = i >= full   ? zero()
                                : some == W ? Stored::get(from + i * line)
                                            : Stored::get_n(from + i * line, some);
                }
                transpose(square);
                if (some == W) {
                    for (int i = 0; i < W; i++) store(dst + (p + i) * P + g * W, square[i]);
                } else {
                    for (int64_t i = 0; i < some; i++) store(dst + (p + i) * P + g * W, square[i]);
                }
            }
        }
    } else if (line == 1) {  // the elements of one k are contiguous
        for (int64_t p = 0; p < depth; p++) {
            const typename Stored::Element* from = src + p * step;
            for (int g = 0; g < groups; g++) {
                int64_t some = lines - g * W;
                Vec v =
                    some >= W ? Stored::get(from + g * W) : Stored::get_n(from + g * W, some < 0 ? 0 : some);
                if (P % W == 0 || p + 1 < depth)
                    store(dst + p * P + g * W, v);
                else  // what stood out would be another panel's
                    store_n(dst + p * P + g * W, v, least(W, P - g * W));
            }
        }
    } else {
        for (int64_t p = 0; p < depth; p++) {
            for (int i = 0; i < P; i++) {
                dst[p * P + i] = i < lines ? sum(Stored::get_n(src + i * line + p * step, 1)) : Real(0);
            }
        }
    }
}

/// Copies lines [begin, end) × depth [from, from + depth) of an operand, panel after panel. Where the lines
/// of one k lie together, a few k's go into all panels first: k's are often a multiple of a page apart, so
/// that a panel's own would evict each other before the next panel reads the rest of their cache lines.
template <int P>
void pack(const void* data, DType type, int64_t line, int64_t step, int64_t begin, int64_t end, int64_t from,
          int64_t depth, Real* dst) {
    with_stored(type, [&](auto stored) {
        using Stored = decltype(stored);
        const typename Stored::Element* src =
            static_cast<const typename Stored::Element*>(data) + from * step;
        const int64_t most = line == 1 && step != 1 ? packed_together : depth;
        for (int64_t p = 0; p < depth; p += most)
            for (int64_t i = begin; i < end; i += P)
                pack_panel<Stored, P>(src + i * line + p * step, line, step, least(P, end - i),
                                      least(most, depth - p), dst + (i - begin) / P * P * depth + p * P);
    });
}

/// Where a tile of sums goes and what it is added to.
struct TileTarget {
    Real* c;
    int64_t c_row;
    bool accumulate;
    const Real* bias;  // at the tile's first column, or null
    const Real* add;   // at the tile's first element, or null
    int64_t add_row;
    int64_t last;  // lanes in use of the last vector, 1 … W
    // Memory to prefetch along the way: soon + p · soon_step for every p of the depth.
    const char* soon = nullptr;
    int64_t soon_step = 0;
    int64_t a_row = 0, a_col = 0;  // A's strides, where it is not packed
    uint16_t* bf16 = nullptr;      // the tile's first element, where C is stored so (in training alone)
};

/// The target whose first element is (i, j) of C. C gets its start with the `first` block of K, and what is
/// there already with the others.
inline TileTarget tile_target(const Gemm<Real>& g, int64_t i, int64_t j, int64_t last, bool first = true) {
    return {.c = g.c + i * g.c_row + j,
            .c_row = g.c_row,
            .accumulate = !first || g.accumulate,
            .bias = first && g.bias ? g.bias + j : nullptr,
            .add = first && g.add ? g.add + i * g.add_row + j : nullptr,
            .add_row = g.add_row,
            .last = last,
            .bf16 = g.bf16 ? g.bf16 + i * g.c_row + j : nullptr};
}

/// The bias of `lanes` columns from j on, and sums of row i for them: added to their start.
LINNET_INLINE Vec bias_at(const TileTarget& t, int64_t j, int64_t lanes) {
    return t.bias ? load_n(t.bias + j, lanes) : zero();
}
LINNET_INLINE void put_sums(const TileTarget& t, int64_t i, int64_t j, int64_t lanes, Vec bias, Vec sum) {
    Real* c = t.c + i * t.c_row + j;
    if (t.accumulate) sum = sum + load_n(c, lanes);
    if (t.bias) sum = sum + bias;
    if (t.add) sum = sum + load_n(t.add + i * t.add_row + j, lanes);
    store_n(c, sum, lanes);
}

/// Output (i, j) from its sum: added to its start.
inline void put_output(const Gemm<Real>& g, int64_t i, int64_t j, Real sum) {
    Real* c = g.c + i * g.c_row + j;
    if (g.accumulate) sum += *c;
    if (g.bias) sum += g.bias[j];
    if (g.add) sum += g.add[i * g.add_row + j];
    *c = sum;
}

constexpr int64_t packed_a = (block_m + tile_rows) * block_k + 64,
                  packed_b = (block_n + tile_columns) * block_k + 64;
constexpr size_t gemm_workspace_bytes = sizeof(Real) * static_cast<size_t>(packed_a + packed_b);

}  // namespace
}  // namespace linnet
