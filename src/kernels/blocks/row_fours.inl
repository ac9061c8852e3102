// Four columns of W for one row of A, where vectors hold two groups (row_lanes.inl) whose sums have scales of
// their own: the sums and the order of GroupSums (rows.inl), with shuffles that serve two columns or all
// four.
#pragma once
#include "kernels/blocks/row_lanes.inl"

#ifdef LINNET_WIDE_BYTES
namespace linnet {
namespace {

/// Of sums_of_fours of two columns' vectors, the groups' sums: eight of one, then of the other.
inline Ints16 groups_in_order(Ints16 a, Ints16 b) {
    const auto even_odd = reinterpret_cast<Floats16>(sums_of_neighbours(a, b));
    return reinterpret_cast<Ints16>(
        __builtin_shufflevector(even_odd, even_odd, 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
}
/// Of sums_of_fours of one vector of each of four columns, those of columns 2i and 2i + 1 likewise: two
/// groups and six zeros of each.
template <int i>
LINNET_INLINE Ints16 first_groups(Ints16 sums) {
    const auto s = reinterpret_cast<Floats16>(sums_of_neighbours(sums, sums)), zeros = Floats16{};
    constexpr int a = 2 * i, b = 2 * i + 1;
    return reinterpret_cast<Ints16>(__builtin_shufflevector(s, zeros, a, 4 + a, 16, 16, 16, 16, 16, 16, b,
                                                            4 + b, 16, 16, 16, 16, 16, 16));
}

/// Scales and offsets of the groups of two columns.
struct PairScales {
    Floats16 scale, offset;
};
inline PairScales join(const Scales& a, const Scales& b) {
    return {join(a.scale[0], b.scale[0]), join(a.offset[0], b.offset[0])};
}
template <class Block>
LINNET_INLINE PairScales pair_scales(const char* a, const char* b) {
    if constexpr (Block::halves == 1 && picks_shorts<Block::bytes>)
        return {pick_halves<Block::bytes>(a, b), Floats16{}};
    else
        return join(Block::scales(a), Block::scales(b));
}
/// The same of the first `groups` groups, and zeros.
template <class Block>
LINNET_INLINE PairScales first_pair_scales(const char* a, const char* b, int64_t groups) {
    return join(first_scales(Block::scales(a), groups), first_scales(Block::scales(b), groups));
}

/// The sums of four columns, whose runs stand at run[0], …
template <class Block>
class FourSums {
  public:
    /// Adds the products of a run of each column.
    LINNET_INLINE void add(const char* const (&run)[4], const ActivationBlock& block) {
        add_runs(run, block, pair_scales<Block>(run[0], run[1]), pair_scales<Block>(run[2], run[3]));
    }
    /// Adds those of the first `groups` groups of each: the activations behind them are 0. One or two groups,
    /// as a width of 288 leaves, take no more than what they need.
    LINNET_INLINE void add_last(const char* const (&run)[4], const ActivationBlock& block, int64_t groups) {
        if (groups > 2)
            return add_runs(run, block, first_pair_scales<Block>(run[0], run[1], groups),
                            first_pair_scales<Block>(run[2], run[3], groups));
        Ints16 firsts[4];
        LINNET_UNROLL
        for (int c = 0; c < 4; c++) firsts[c] = dots<0>(run[c], block);
        const Ints16 sums = sums_of_parts(firsts);
        if constexpr (Block::halves == 0) {
            add_pair(0, first_pair_scales<Block>(run[0], run[1], groups), block, first_groups<0>(sums));
            add_pair(1, first_pair_scales<Block>(run[2], run[3], groups), block, first_groups<1>(sums));
        } else {
            const Floats8 scale = few_halves(run, 0, groups),
                          offset = Block::halves > 1 ? few_halves(run, 2, groups) : Floats8{};
            add_pair(0, {of_pair<0>(scale), of_pair<0>(offset)}, block, first_groups<0>(sums));
            add_pair(1, {of_pair<1>(scale), of_pair<1>(offset)}, block, first_groups<1>(sums));
        }
    }
    /// The four outputs.
    LINNET_INLINE void total(Real (&to)[4]) const {
        Floats16 all = totals(products_);
        if constexpr (Block::has_offset) all += totals(offsets_);
        for (int c = 0; c < 4; c++) to[c] = all[4 * c];
    }

  private:
    static constexpr int bias = RowLanes::bias<Block>;

    LINNET_INLINE void add_runs(const char* const (&run)[4], const ActivationBlock& block,
                                const PairScales& first, const PairScales& second) {
        Ints16 sums[4];
        LINNET_UNROLL
        for (int c = 0; c < 4; c++) {
            Ints16 parts[4];
            each_part([&]<int p>() LINNET_LAMBDA_INLINE { parts[p] = dots<p>(run[c], block); });
            sums[c] = sums_of_parts(parts);
        }
        add_pair(0, first, block, groups_in_order(sums[0], sums[1]));
        add_pair(1, second, block, groups_in_order(sums[2], sums[3]));
    }
    template <int p>
    static LINNET_INLINE Ints16 dots(const char* run, const ActivationBlock& block) {
        return RowLanes::add<Block>(Ints16{}, RowLanes::factor<Block>(RowLanes::codes<Block, p>(run)),
                                    get_vector<Bytes64>(block.q + 64 * p));
    }
    /// sums_of_fours. Codes without a sign are at most 31 here, so that 8 products with bytes of activations
    /// fit into 16 bits: then half of the shuffles will do.
    static LINNET_INLINE Ints16 sums_of_parts(const Ints16 (&v)[4]) {
        if constexpr (Block::is_signed)
            return sums_of_fours<Floats16>(v);
        else
            return sums_of_small_twos(sums_of_small_twos(v[0], v[1]), sums_of_small_twos(v[2], v[3]));
    }
    /// Of the first group or two of each column the half-precision number `at` bytes into the block.
    static LINNET_INLINE Floats8 few_halves(const char* const (&run)[4], int at, int64_t groups) {
        auto half = [&](int c, int block) LINNET_LAMBDA_INLINE {
            return get_vector<uint16_t>(run[c] + at + block * Block::bytes);
        };
        Halves8 all = {half(0, 0), 0, half(1, 0), 0, half(2, 0), 0, half(3, 0), 0};
        if (groups > 1) all[1] = half(0, 1), all[3] = half(1, 1), all[5] = half(2, 1), all[7] = half(3, 1);
        return widen_halves(all);
    }
    /// Of few_halves those of columns 2i and 2i + 1, and zeros.
    template <int i>
    static LINNET_INLINE Floats16 of_pair(Floats8 few) {
        constexpr int a = 4 * i, b = 4 * i + 2;
        return __builtin_shufflevector(few, Floats8{}, a, a + 1, 8, 8, 8, 8, 8, 8, b, b + 1, 8, 8, 8, 8, 8,
                                       8);
    }
    /// whole: the sums of the groups of columns 2i and 2i + 1.
    LINNET_INLINE void add_pair(int i, const PairScales& s, const ActivationBlock& block, Ints16 whole) {
        if constexpr (bias != 0) whole -= reinterpret_cast<Ints16>(twice(block.whole)) * bias;
        auto floats = [](const float* p) { return reinterpret_cast<Floats16>(twice(p)); };
        products_[i] += __builtin_convertvector(whole, Floats16) * (s.scale * floats(block.d));
        if constexpr (Block::has_offset)
            offsets_[i] += s.offset * (floats(block.first) + floats(block.second));
    }
    /// total() of the columns' eight lanes, each at the beginning of a four.
    static LINNET_INLINE Floats16 totals(const Floats16 (&v)[2]) {
        Floats16 sums = sums_of_neighbours(v[0], v[1]);
        sums += __builtin_shufflevector(sums, sums, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
        return sums +
               __builtin_shufflevector(sums, sums, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    }

    Floats16 products_[2] = {}, offsets_[2] = {};
};

}  // namespace
}  // namespace linnet
#endif
