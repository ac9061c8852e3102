// Writing with types of row_runs.inl and several rows of A: a column of W in each lane.
//
// A word of a vector is four codes of a column, which meet the same four bytes of a row of A in all lanes.
// For that 32 bytes of each of 16 columns are transposed, once for all rows and for all codes in them; scales
// likewise. (kernels/MEASUREMENTS.md has the times, also of one row, for which this is not taken.)
//
// Integers are exact in any order, and the floats made of them are added in the order of K: the same bits as
// in row_runs.inl. Types whose groups have scales of their own gain nothing: an output of theirs is sixteen
// chains of floats (row_groups.inl), and to add to those takes as long either way.
#pragma once
#include "kernels/blocks/row_runs.inl"

namespace linnet {
namespace {

constexpr int lane_columns = 16;

/// 32 bytes of a block of each column, transposed; word w of piece(from, at) in codes<g>(from).
template <class Block>
struct TransposedPieces {
    Bytes64 words[Block::pieces][8];

    void read(const char* const (&run)[lane_columns]) {
        LINNET_UNROLL
        for (int p = 0; p < Block::pieces; p++) {
            Bytes32 of[lane_columns];
            LINNET_UNROLL
            for (int c = 0; c < lane_columns; c++) of[c] = piece(run[c], Block::first_piece + 32 * p);
            transpose(of, words[p]);
        }
    }
};
template <class Block>
struct PieceWord {
    const TransposedPieces<Block>& pieces;
    int word;
};
template <class Block>
LINNET_INLINE Bytes64 piece(const PieceWord<Block>& from, int64_t at) {
    return from.pieces.words[(at - Block::first_piece) / 32][from.word];
}

/// Where WideLanes::arrange_run has group g.
template <class Block>
constexpr int place_of_group(int g) {
    int place = 0;
    while (WideLanes::group_at<Block>(place) != g) place++;
    return place;
}

/// The outputs of 16 columns and up to block_rows_at_once rows.
template <class Block>
class RunColumns {
    static_assert(Block::first_piece + 32 * Block::pieces <= Block::bytes);
    static_assert(Block::scales_at + 16 <= Block::bytes);

  public:
    /// Adds the products of a run of each column with rows <= block_rows_at_once that are `apart` blocks
    /// apart. Meanwhile as many bytes as the 16 runs have are fetched from `next` on, if it is not null.
    LINNET_INLINE void add(const char* const (&run)[lane_columns], const ActivationRun* a, int64_t apart,
                           int64_t rows, const char* next) {
        Bytes64 packed[4], scale[4], minimum[4];
        transpose_16<Block::scales_at>(run, packed);
        Block::scale_bytes(packed, scale, minimum);
        alignas(64) uint32_t numbers[lane_columns];
        for (int c = 0; c < lane_columns; c++) numbers[c] = Block::numbers(run[c]);
        const auto both = get_vector<Ints16>(numbers);
        const Floats16 d = lower_halves(both), dmin = lower_halves(both >> 16);
        Ints16 whole[block_rows_at_once];
        for (int64_t r = 0; r < rows; r++) {
            const ActivationRun& row = a[r * apart];
            whole[r] = Block::zero == 0 ? Ints16{} : times_sums(scale, row.sums) * -Block::zero;
            if constexpr (Block::has_offset)
                offsets_[r] +=
                    __builtin_convertvector(times_sums(minimum, row.sums), Floats16) * (dmin * row.d);
        }
        TransposedPieces<Block> pieces;
        pieces.read(run);
        each_group([&]<int g>() LINNET_LAMBDA_INLINE {
            if (next)
                for (int64_t line = g * of_group; line < (g + 1) * of_group; line += 64)
                    __builtin_prefetch(next + line, 0, 2);
            add_group<g>(pieces, scale, a, apart, rows, whole);
        });
        for (int64_t r = 0; r < rows; r++)
            products_[r] += __builtin_convertvector(whole[r], Floats16) * (d * a[r * apart].d);
    }
    /// Of row r, a column in each lane.
    Floats16 sums(int64_t r) const {
        if constexpr (Block::has_offset) return products_[r] - offsets_[r];
        return products_[r];
    }

  private:
    static constexpr int halves = 32 / Block::group, words_of_half = 8 / halves;
    static constexpr int scale_words = 2 * halves;
    static constexpr int64_t of_group = lane_columns * run_bytes<Block> / 8;

    template <int g>
    static LINNET_INLINE void add_group(const TransposedPieces<Block>& pieces, const Bytes64 (&scales)[4],
                                        const ActivationRun* a, int64_t apart, int64_t rows, Ints16* whole) {
        Bytes64 codes[8];
        LINNET_UNROLL
        for (int w = 0; w < 8; w++) codes[w] = Block::template codes<g>(PieceWord<Block>{pieces, w});
        Ints16 scale[halves];
        each_of<halves>([&]<int h>() LINNET_LAMBDA_INLINE {
            constexpr int i = halves * g + h;
            scale[h] = byte_of_words<i % 4>(scales[i / 4]);
        });
        for (int64_t r = 0; r < rows; r++) {
            const Whole* q = a[r * apart].q + 32 * place_of_group<Block>(g);
            Ints16 sum = whole[r];
            LINNET_UNROLL
            for (int h = 0; h < halves; h++) {
                Ints16 even{}, odd{};  // two sums: neither waits for the other
                LINNET_UNROLL
                for (int w = words_of_half * h; w < words_of_half * (h + 1); w += 2) {
                    even = add_dots_of_word(even, codes[w], q + 4 * w);
                    odd = add_dots_of_word(odd, codes[w + 1], q + 4 * w + 4);
                }
                sum += (even + odd) * scale[h];
            }
            whole[r] = sum;
        }
    }
    /// Σ number · Σ q over the groups: numbers are bytes, as scale_bytes gives them.
    static LINNET_INLINE Ints16 times_sums(const Bytes64 (&numbers)[4], Shorts16 sums) {
        int32_t pairs[8];  // of sums: for bytes 0 and 2 of a word, then for 1 and 3
        if constexpr (Block::group == 16) {
            put_vector(pairs, __builtin_shufflevector(sums, sums, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6,
                                                      7, 14, 15));
        } else {
            const Shorts8 all = first_half(sums) + second_half(sums);
            put_vector(pairs, __builtin_shufflevector(all, all, 0, 2, 1, 3, 4, 6, 5, 7));
        }
        Ints16 total{};
        LINNET_UNROLL
        for (int i = 0; i < scale_words; i++) {
            total = add_dot_pairs(total, even_bytes(numbers[i]), pairs[2 * i]);
            total = add_dot_pairs(total, odd_bytes(numbers[i]), pairs[2 * i + 1]);
        }
        return total;
    }

    Floats16 products_[block_rows_at_once] = {};
    Floats16 offsets_[Block::has_offset ? block_rows_at_once : 1] = {};
};

}  // namespace
}  // namespace linnet
