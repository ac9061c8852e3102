// Writing with types whose scales are whole multiples of one number, and whose codes have no sign: all 256
// scaled products of a run are summed as one integer, and its minima times sums of activations as another.
//
// An output is two chains of additions in the order of K: of the integers times the number, and of those of
// the minima.
#pragma once
#include "kernels/blocks/row_lanes.inl"

namespace linnet {
namespace {

template <class Block>
struct RunSums {
    static_assert(fits_16<Block>(4), "sums of add_scaled_dots; add_scaled_codes has two products");
    // No scale is farther from 0 than 128.
    static_assert(run_length * 128 * (Block::greatest + Block::zero) * byte_most <= INT32_MAX);
    using Activations = ActivationRun;
    using Ints = RowLanes::Ints;
    static constexpr bool minima_behind = Block::has_offset && Block::group == 32;

    /// A row of k activations, a multiple of 256.
    static void quantize(const Real* x, int64_t k, Activations* to) {
        quantize_activations(x, k, to);
        for (; k > 0; k -= run_length, to++) {
            RowLanes::arrange_run<Block>(to->q);
            if constexpr (minima_behind)  // scales count nothing there
                to->sums = join(Shorts8{}, first_half(to->sums) + second_half(to->sums));
        }
    }

    /// The outputs of R rows and C columns, four and four.
    template <int R, int C>
    class Tile {
      public:
        LINNET_INLINE void add(const char* const (&run)[C], const Activations* a, int64_t apart) {
            WholeScales scales[C];
            Ints whole[4 * fours] = {};
            if constexpr (C == 4 && requires { Block::whole_scales_of_four(run, scales); })
                Block::whole_scales_of_four(run, scales);
            else
                for (int c = 0; c < C; c++) scales[c] = Block::whole_scales(run[c]);
            LINNET_UNROLL
            for (int c = 0; c < C; c++) {
                if constexpr (Block::zero != 0) {
                    const Shorts16 by = scales[c].scale * int16_t{-Block::zero};
                    LINNET_UNROLL
                    for (int r = 0; r < R; r++)
                        whole[c * R + r] = RowLanes::first(dot_pairs(by, a[r * apart].sums));
                }
            }
            RowLanes::add_runs<Block, R, C>(run, scales, a, apart, whole);
            Ints8 minima[4 * fours] = {};
            if constexpr (Block::has_offset) {
                LINNET_UNROLL
                for (int i = 0; i < n; i++)
                    minima[i] = dot_pairs(minima_behind ? scales[i / R].scale : scales[i / R].minimum,
                                          a[i % R * apart].sums);
            }
            LINNET_UNROLL
            for (int f = 0; f < fours; f++) {
                Ints4 numbers{};
                Floats4 by = Floats4{} + a->d;
                LINNET_UNROLL
                for (int lane = 0; lane < lanes; lane++) {
                    const int i = 4 * f + lane;
                    numbers[lane] = static_cast<int>(scales[i / R].numbers);
                    if constexpr (R > 1) by[lane] = a[i % R * apart].d;
                }
                const auto halves = reinterpret_cast<Halves8>(numbers);
                const Floats8 d =  // and dmin, converted together
                    widen_halves(__builtin_shufflevector(halves, halves, 0, 2, 4, 6, 1, 3, 5, 7));
                products_[f] +=
                    __builtin_convertvector(totals(whole + 4 * f), Floats4) * (lower_half(d) * by);
                if constexpr (Block::has_offset)
                    offsets_[f] +=
                        __builtin_convertvector(totals(minima + 4 * f), Floats4) * (upper_half(d) * by);
            }
        }
        /// Rows are whole runs.
        LINNET_INLINE void add_last(const char* const (&)[C], const Activations*, int64_t, int64_t) {}
        /// to[c · R + r]
        LINNET_INLINE void sums(Real (&to)[C * R]) const {
            LINNET_UNROLL
            for (int i = 0; i < n; i++) {
                to[i] = products_[i / 4][i % 4];
                if constexpr (Block::has_offset) to[i] -= offsets_[i / 4][i % 4];
            }
        }

      private:
        static constexpr int n = R * C, fours = (n + 3) / 4, lanes = n < 4 ? n : 4;
        Floats4 products_[fours] = {}, offsets_[fours] = {};
    };
};

}  // namespace
}  // namespace linnet
