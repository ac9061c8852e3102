// What every algorithm shares. Nothing here or in any other .inl may be seen outside its isa_X.cpp: all of it
// stands in an anonymous namespace.
#pragma once
#include <utility>

#include "tensor/dtype.h"

namespace linnet {
namespace {

#if defined(__clang__)
#define LINNET_UNROLL _Pragma("clang loop unroll(full)")
#define LINNET_UNROLL_PAIRS _Pragma("clang loop unroll_count(2)")
#else
#define LINNET_UNROLL _Pragma("GCC unroll 32")
#define LINNET_UNROLL_PAIRS _Pragma("GCC unroll 2")
#endif

/// For what must become part of its caller, so that vectors stay in registers.
#define LINNET_LAMBDA_INLINE __attribute__((always_inline))
#define LINNET_INLINE inline LINNET_LAMBDA_INLINE

/// Hides from the compiler where a value comes from, so that it computes addresses again instead of keeping
/// dozens of them.
#define LINNET_FORGET(value) __asm__("" : "+r"(value))

/// Where a matrix is read once, by so many streams per thread: bytes from the multiplication to the
/// prefetching, in each. Into the second cache: on Zen 4, lines that wait so long in the first one (32 KiB)
/// are gone before their use. Writing with 1.1B there, medians of several alternations beside other machines'
/// work, GB/s in f16 and q8_0: 17, 22 with one stream 12 KiB ahead in the first cache; 26, 28 as below.
constexpr int64_t read_ahead(int streams) {
    return streams == 1 ? 6144 : 1024;
}

/// Fetches memory into L1 (cache 3) or L2 (2).
template <int cache>
LINNET_INLINE void prefetch_bytes(const void* from, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(from) + i, 0, cache);
}

inline int64_t ceil_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
/// The length, a multiple of `unit`, of the fewest equal pieces of at most `longest` that make up `all`.
inline int64_t even_piece(int64_t all, int64_t longest, int64_t unit) {
    if (all <= 0) return unit;
    return ceil_divide(ceil_divide(all, ceil_divide(all, longest)), unit) * unit;
}
inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
inline int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}
inline Real square_root(Real x) {
    return sizeof(Real) == 4 ? Real(__builtin_sqrtf(float(x))) : Real(__builtin_sqrt(x));
}

/// Lanes in use of vector v of n elements.
inline int64_t lanes_of(int64_t n, int64_t v) {
    return n <= v * W ? 0 : least(W, n - v * W);
}

/// Calls f(offset, lanes) for every vector of n elements; lanes is W for all but the last.
template <class F>
inline void each_vector(int64_t n, F f) {
    int64_t i = 0;
    for (; i + W <= n; i += W) f(i, W);
    if (i < n) f(i, n - i);
}

/// Calls f(StoredX{}) for the stored type; the caller has checked that it is one a matrix may have.
template <class F>
inline void with_stored(DType type, F f) {
    switch (type) {
        case DType::f32:
            return f(StoredF32{});
        case DType::f16:
            return f(StoredF16{});
        case DType::bf16:
            return f(StoredBF16{});
        case DType::f64:
            if constexpr (sizeof(Real) == sizeof(double)) f(StoredReal{});
            return;
        default:
            return;
    }
}

/// Calls f.operator()<i>() for i below `count`.
template <int count, class F>
LINNET_INLINE constexpr void each_of(F f) {
    [&]<int... i>(std::integer_sequence<int, i...>) LINNET_LAMBDA_INLINE {
        (f.template operator()<i>(), ...);
    }
    (std::make_integer_sequence<int, count>());
}

/// The functions of all tiles of up to `rows` rows and `columns` columns: at[C][R] is of<R, C>().
template <class Function, int columns, int rows>
struct TileTable {
    Function at[columns + 1][rows + 1];
};
template <int columns, int rows, class Of>
consteval auto tile_table(Of of) {
    TileTable<decltype(of.template operator()<1, 1>()), columns, rows> table{};
    each_of<columns * rows>([&]<int i>() {
        table.at[i / rows + 1][i % rows + 1] = of.template operator()<i % rows + 1, i / rows + 1>();
    });
    return table;
}

constexpr DType real_type = sizeof(Real) == sizeof(double) ? DType::f64 : DType::f32;

/// Bytes of a stored element; 0 for block types.
inline int64_t size_of(DType type) {
    int64_t size = 0;
    with_stored(type, [&](auto stored) { size = sizeof(typename decltype(stored)::Element); });
    return size;
}

}  // namespace
}  // namespace linnet
