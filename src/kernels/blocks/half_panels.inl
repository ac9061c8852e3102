// C = start + A · Wᵀ for many rows of A and weights of f16 or bf16, where a set adds the products of two
// pairs of 16-bit integers to a word (VNNI), with twice the peak of fma: the product of reading.
//
// Up to 64 numbers (a part) become integers with one scale, which makes their Euclidean norm as long as it
// may be: by Cauchy–Schwarz |Σ a·w| ≤ ‖a‖ · ‖w‖, and so is every sum on the way, so that nothing leaves 32
// bits. With a bound by the largest numbers alone (panels.inl) a sum of 64 would leave 12 bits to each. The
// rounding costs weights 7e-5 of their root mean square, and activations half as much where none stands out;
// rounding those to f16, which llama.cpp does, costs 1.4e-4. Parts of 128 would be 2 to 4 % faster, but
// logits farther from f32's than llama.cpp's are (MEASUREMENTS.md). AVX-VNNI has registers for six sums only,
// which wait for each other: 0.72 of the speed of fma.
#pragma once
#include "kernels/blocks/activations.inl"
#include "kernels/blocks/dot_tiles.inl"

namespace linnet {
namespace {

constexpr int64_t half_part = 64;
// Norms whose product stays below 2³¹. No weight exceeds 16 bits. One activation could that is nearly the
// whole norm: then the largest sets the scale.
constexpr float activation_norm = 65500, weight_norm = 32760, whole_16_most = 32767;
static_assert((65500.0 + 4) * (32760.0 + 4) < 2147483648.0);  // rounding adds at most √64 / 2

/// n numbers of a part (all 64, if `full`) as words, behind which are zeros; 32 words are written. Returns
/// the scale that brings them back.
template <class Stored, bool activations, bool full>
inline float half_words(const typename Stored::Element* from, int64_t n, float* words) {
    constexpr float norm = activations ? activation_norm : weight_norm;
    constexpr int vectors = half_part / W, sums = 16 / W;
    Vec x[vectors], squares[sums];
    LINNET_UNROLL
    for (int v = 0; v < vectors; v++)
        x[v] = full ? Stored::get(from + v * W) : Stored::get_n(from + v * W, lanes_of(n, v));
    LINNET_UNROLL
    for (int v = 0; v < vectors; v++)
        squares[v % sums] = fused(x[v], x[v], v < sums ? zero() : squares[v % sums]);
    alignas(64) float lanes[16];
    for (int s = 0; s < sums; s++) store(lanes + s * W, squares[s]);
    const float square = total(get_vector<Floats8>(lanes) + get_vector<Floats8>(lanes + 8));
    WholeScale scale;
    if (square > 1e-30f && square < 1e37f) {
        const float root = __builtin_sqrtf(square);
        scale = {norm / root, root * (1 / norm)};
        if constexpr (activations) {
            Vec highest = zero();
            LINNET_UNROLL
            for (int v = 0; v < vectors; v++) highest = max(highest, abs(x[v]));
            if (const float most = largest(highest); most * scale.to > whole_16_most)
                scale = {whole_16_most / most, most * (1 / whole_16_most)};
        }
    } else {  // zeros, squares too small or too large for floats, or not finite: each at most norm / √64
        alignas(64) float all[half_part];
        for (int v = 0; v < vectors; v++) store(all + v * W, x[v]);
        scale = scale_of(all, half_part, weight_norm / __builtin_sqrtf(half_part));
    }
    LINNET_UNROLL
    for (int v = 0; v < vectors; v += 2)
        store(words + v * W / 2, short_words(x[v] * set1(scale.to), x[v + 1] * set1(scale.to)));
    return scale.back;
}

/// The words of a product with weights of f16 or bf16, which may have rows of any length.
template <class Stored>
class HalvesOf {
  public:
    static constexpr int64_t row_words = dots_longest;
    // Rows come from L3 where another thread made them: prompts of 512 at 124M and 135M are 5 % faster.
    static constexpr int64_t rows_ahead = 2;
    static constexpr int words = 0;
    template <class Dots>
    static constexpr int pieces = 1;
    static constexpr bool offsets = false;

    /// A K of 576 (smollm-135m) as one block is 2 % faster, one of 2048 in blocks of 512 1 % slower.
    explicit HalvesOf(int64_t k)
        : part_(even_piece(k, half_part, 2)),
          depth_(2 * (k <= 2 * dots_longest ? dots_longest : dots_words) / part_ * part_) {}

    int64_t depth() const { return depth_; }
    int64_t parts(int64_t d) const { return ceil_divide(d, part_); }
    int64_t words_of_part() const { return part_ / 2; }
    void row(const Real* x, int64_t d, float* lines, int r, PartOfA* parts) const {
        each_part<StoredReal, true>(x, d, lines, [&](int64_t part, float scale) {
            parts[part].start[r] = 0;
            parts[part].d[r] = scale;
        });
    }
    void line(const Operand& w, int64_t j, int64_t k, int64_t d, float* lines, float* scales, float*) const {
        each_part<Stored, false>(reinterpret_cast<const typename Stored::Element*>(at(w, j, k)), d, lines,
                                 [&](int64_t part, float scale) { scales[part] = scale; });
    }
    static const char* at(const Operand& w, int64_t j, int64_t k) { return stored_at(w, j, k); }
    static int64_t bytes(int64_t d) { return d * static_cast<int64_t>(sizeof(typename Stored::Element)); }

  private:
    template <class Numbers, bool activations, class F>
    void each_part(const typename Numbers::Element* x, int64_t d, float* lines, F f) const {
        for (int64_t part = 0, k = 0; k < d; part++, k += part_) {
            const int64_t n = least(part_, d - k);
            f(part, n == half_part ? half_words<Numbers, activations, true>(x + k, n, lines + k / 2)
                                   : half_words<Numbers, activations, false>(x + k, n, lines + k / 2));
        }
    }
    int64_t part_, depth_;
};

template <class Dots>
void half_panels(const Gemm<Real>& g, void* workspace) {
    if (g.b.type == DType::f16)
        dots_product<Dots>(HalvesOf<StoredF16>(g.k), g, workspace);
    else
        dots_product<Dots>(HalvesOf<StoredBF16>(g.k), g, workspace);
}

}  // namespace
}  // namespace linnet
