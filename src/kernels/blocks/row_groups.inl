// Writing with types whose groups have scales of their own: the products of a group with whole activations
// are integers, which become floats and meet the two scales.
//
// An output is sixteen chains of additions in the order of K: two for each of the eight groups of a run, one
// of the products of its even words, one of those of its odd words (words of four codes). Then a tree.
#pragma once
#include "kernels/blocks/row_lanes.inl"

namespace linnet {
namespace {

/// 256 activations, in 8 groups of 32. A shorter last block is filled with zeros.
struct alignas(64) GroupedActivations {
    Whole q[run_length];  // in the order of PartCodes
    int32_t start[16];    // where the sums of the groups' two words begin: -bias · Σ q
    float d[16];          // of each group, twice
    float sums[8];        // d · Σ q over each group
};

template <class Block>
struct GroupSums {
    static_assert(Block::group == 32);
    static_assert(fits_16<Block>(Block::is_signed ? 2 : 8), "sums of add_signed, or of add_small_codes");
    using Activations = GroupedActivations;
    using Ints = RowLanes::Ints;
    using Floats = RowLanes::Floats;
    static constexpr int parts = RowLanes::parts, words = 16 / parts, bias = RowLanes::bias<Block>;

    /// A row of k activations, a multiple of 32.
    static void quantize(const Real* x, int64_t k, Activations* to) {
        for (; k > 0; k -= run_length, x += run_length, to++) {
            ActivationBlock block;
            quantize_activations(x, least(k, run_length), &block);
            __builtin_memcpy(to->q, block.q, sizeof to->q);
            RowLanes::arrange_groups(to->q);
            put_vector(to->sums, get_vector<Floats8>(block.first) + get_vector<Floats8>(block.second));
            const CodeVector one = CodeVector{} + 1;
            each_of<parts>([&]<int p>() LINNET_LAMBDA_INLINE {
                const PartCodes all_one[1] = {{{one, one, one, one}}};
                Ints sums[1] = {};
                RowLanes::add<NoSign>(sums, all_one, to->q + sizeof(PartCodes) * p);
                put_vector(to->start + words * p, sums[0] * -bias);
                put_vector(to->d + words * p, RowLanes::spread<p>(get_vector<Floats8>(block.d)));
            });
        }
    }

    /// The outputs of R rows and C columns.
    template <int R, int C>
    class Tile {
      public:
        /// Adds the products of a run of each column with rows that are `apart` blocks apart.
        LINNET_INLINE void add(const char* const (&run)[C], const Activations* a, int64_t apart) {
            Scales scales[C];
            LINNET_UNROLL
            for (int c = 0; c < C; c++) scales[c] = Block::scales(run[c]);
            add(run, scales, a, apart, 8);
        }
        /// The same of the first `groups` groups of the run: the scales of others, which may be anything,
        /// become 0. One or two groups, as a width of 288 leaves, take no more than what they need.
        LINNET_INLINE void add_last(const char* const (&run)[C], const Activations* a, int64_t apart,
                                    int64_t groups) {
#ifdef LINNET_WIDE_BYTES
            if constexpr (R == 1 && C == 4 && Block::halves > 0)
                if (groups <= 2) {
                    for (int64_t g = 0; g < groups; g++) add_group(run, *a, g);
                    return;
                }
#endif
            Scales scales[C];
            for (int c = 0; c < C; c++) scales[c] = first_scales(Block::scales(run[c]), groups);
            add(run, scales, a, apart, groups);
        }
        /// to[c · R + r]
        LINNET_INLINE void sums(Real (&to)[C * R]) const {
            Floats8 all[C * R];
            LINNET_UNROLL
            for (int i = 0; i < C * R; i++) all[i] = RowLanes::join(products_[i]);
            totals_of<C * R>(all, to);
            if constexpr (Block::has_offset) {
                Real offsets[C * R];
                totals_of<C * R>(offsets_, offsets);
                for (int i = 0; i < C * R; i++) to[i] += offsets[i];
            }
        }

      private:
        LINNET_INLINE void add(const char* const (&run)[C], const Scales (&scales)[C], const Activations* a,
                               int64_t apart, int64_t groups) {
            each_of<parts>([&]<int p>() LINNET_LAMBDA_INLINE {
                if (groups_of_vector * p >= groups) return;
                PartCodes codes[C];
                Floats by[C];
                LINNET_UNROLL
                for (int c = 0; c < C; c++) {
                    codes[c] = RowLanes::codes<Block, p>(run[c]);
                    by[c] = RowLanes::spread<p>(scales[c].scale[0]);
                }
                LINNET_UNROLL
                for (int r = 0; r < R; r++) {
                    const Activations& row = a[r * apart];
                    const Ints start =
                        bias ? RowLanes::loaded(get_vector<Ints>(row.start + words * p)) : Ints{};
                    Ints whole[C];
                    LINNET_UNROLL
                    for (int c = 0; c < C; c++) whole[c] = start;
                    RowLanes::add<Block>(whole, codes, row.q + sizeof(PartCodes) * p);
                    const auto d = RowLanes::loaded(get_vector<Floats>(row.d + words * p));
                    LINNET_UNROLL
                    for (int c = 0; c < C; c++)
                        products_[c * R + r][p] += __builtin_convertvector(whole[c], Floats) * (by[c] * d);
                }
            });
            if constexpr (Block::has_offset) {
                LINNET_UNROLL
                for (int i = 0; i < C * R; i++)
                    offsets_[i] += scales[i / R].offset[0] * get_vector<Floats8>(a[i % R * apart].sums);
            }
        }

#ifdef LINNET_WIDE_BYTES
        /// Group g of four columns, which share a vector.
        LINNET_INLINE void add_group(const char* const (&run)[4], const Activations& a, int64_t g) {
            const int64_t pair = g % 4 * 2 + g / 4;  // of words, in the order of PartCodes
            auto eight = [&](int k)
                             LINNET_LAMBDA_INLINE { return get_vector<uint64_t>(a.q + 64 * k + 8 * pair); };
            const auto bytes = reinterpret_cast<Bytes32>(Longs4{eight(0), eight(1), eight(2), eight(3)});
            auto dots = [&](int c) LINNET_LAMBDA_INLINE {
                auto codes = [&](int column) LINNET_LAMBDA_INLINE {
                    return Block::template codes<0>(run[column] + g * Block::bytes);
                };
                const Bytes64 two = join(codes(c), codes(c + 1));
                return add_dots(Ints{}, Block::is_signed ? two ^ 128 : two, join(bytes, bytes));
            };
            auto half = [&](int c, int64_t at)
                            LINNET_LAMBDA_INLINE { return half_at(run[c] + g * Block::bytes + at); };
            const Ints whole = sums_by_pairs(dots(0), dots(2)) + eight_times(a.start + 2 * pair);
            const Floats8 scale = widen_halves(Halves8{half(0, 0), half(2, 0), half(1, 0), half(3, 0)});
            const Floats add = __builtin_convertvector(whole, Floats) * (by_pairs(scale) * a.d[2 * pair]);
            LINNET_UNROLL
            for (int c = 0; c < 4; c++) {
                products_[c][0] += moved_pair(add, c / 2 + c % 2 * 4, pair);
                if constexpr (Block::has_offset)
                    offsets_[c][g] += static_cast<float>(one_half(half(c, 2))) * a.sums[g];
            }
        }
#endif

        Floats products_[C * R][parts] = {};
        Floats8 offsets_[Block::has_offset ? C * R : 1] = {};
    };

  private:
    struct NoSign {
        static constexpr bool is_signed = false;
    };
    template <int n>
    static LINNET_INLINE void totals_of(const Floats8 (&v)[n], Real (&to)[n]) {
        constexpr int fours = n / 4 * 4;
        LINNET_UNROLL
        for (int i = 0; i < fours; i += 4) put_vector(to + i, totals(v + i));
        LINNET_UNROLL
        for (int i = fours; i < n; i++) to[i] = total(v[i]);
    }
};

}  // namespace
}  // namespace linnet
