// Products with weights of f16 and bf16 as 16-bit integers, also on machines that lack the instruction: the
// same source over what that is said to do, in plain C++.
#include <doctest/doctest.h>

#include <tuple>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/blocks/half_panels.inl"

#include "guarded.h"
#include "support.h"
#include "weight_product.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// VPDPWSSD (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2).
struct EmulatedPairs : WordDots {
    static Integers add(Integers sum, Integers w, Integers a) { return add_pairs(sum, w, a); }
};

std::vector<float> run(WeightProduct& product) {
    return product.run(linnet::half_panels<EmulatedPairs>, sizeof(linnet::DotPanels));
}

/// Calls f(name, asked, numbers) for the machine's own sets that have such products: asked(product) is what
/// they make.
template <class F>
void each_own(F f) {
    for (const KernelTable<float>* table : usable_kernels())
        if (table->block.halves)
            f(
                table->name,
                [table](WeightProduct& product) {
                    return product.run(table->block.halves, table->gemm_workspace);
                },
                table->block.half_numbers);
}

/// Whether those that multiply 16-bit integers give these bits, too; adds how many they are.
bool same_by_own(WeightProduct& product, const std::vector<float>& c, int& compared) {
    bool same = true;
    each_own([&](const char*, auto asked, PanelNumbers numbers) {
        if (numbers != PanelNumbers::integers) return;
        same &= asked(product) == c;
        compared++;
    });
    return same;
}

/// The largest error, relative to the product of the two rows' norms.
double error_by_norms(WeightProduct& product, const std::vector<float>& c) {
    const std::vector<double> expected = product.expected();
    std::vector<double> weights(static_cast<std::size_t>(product.n * product.k));
    double_kernels().load(product.n * product.k, product.g.b.type, product.w.data(), weights.data());
    double worst = 0;
    for (std::int64_t i = 0; i < product.m; i++)
        for (std::int64_t j = 0; j < product.n; j++) {
            double of_a = 0, of_w = 0;
            for (std::int64_t p = 0; p < product.k; p++) {
                const double a = static_cast<double>(product.a[i * (product.k + 1) + p]),
                             w = weights[static_cast<std::size_t>(j * product.k + p)];
                of_a += a * a, of_w += w * w;
            }
            const auto at = static_cast<std::size_t>(i * product.n + j);
            worst = std::max(worst, std::abs(static_cast<double>(c[at]) - expected[at]) /
                                        std::sqrt(std::max(of_a * of_w, 1e-300)));
        }
    return worst;
}

}  // namespace

TEST_CASE(
    "halves as 16-bit integers give the product of the stored weights, and the machine's own the same bits") {
    int compared = 0;
    for (DType type : {DType::f16, DType::bf16}) {
        const std::int64_t shapes[][3] = {{1, 9, 1},    {5, 3, 2},    {17, 33, 15},   {6, 5, 17},
                                          {7, 40, 31},  {13, 6, 127}, {12, 35, 128},  {4, 5, 129},
                                          {3, 50, 168}, {2, 3, 250},  {19, 37, 1056}, {16720, 3, 2},
                                          {7, 33, 576}, {8, 34, 577}, {525, 3, 641}};
        for (const auto& shape : shapes) {
            WeightProduct product(type, shape[0], shape[1], shape[2]);
            const std::vector<float> c = run(product);
            CAPTURE(std::string(info(type).name) + " K " + std::to_string(product.k));
            CHECK(relative_error(c, product.expected()) < 1.5e-4);
            CHECK(same_by_own(product, c, compared));
        }
    }
    if (compared == 0) skip("the machine's own pairs: needs VNNI");
}

TEST_CASE("an output of halves as 16-bit integers does not depend on the part that is asked for") {
    // All rows of the second go block after block of K, those of its part at once.
    for (const auto& [type, m, k] : {std::tuple{DType::f16, 21, 420}, {DType::bf16, 525, 641}}) {
        const auto same = [&](auto asked) {
            return same_in_part({type, m, 40, k}, asked, 3, std::min(m, 40) - 1);
        };
        CHECK(same(run));
        each_own([&](const char*, auto asked, PanelNumbers) { CHECK(same(asked)); });
    }
}

TEST_CASE("numbers of any size become 16-bit integers without overflow") {
    // The longest norms are those of numbers that are alike, and of one number alone (in each part, or in
    // every second), or of one that stands out.
    const KernelTable<float>& scalar = **usable_kernels().begin();
    for (const float size : {1.0f, 6e4f, 1e-5f, 1e18f, 3e34f, 1e-18f, 1e-27f})
        for (const std::int64_t apart : {1, 2, 64, 128})
            for (const float rest : {0.0f, 1.0f / 256})
                for (const bool of_weights : {true, false}) {
                    WeightProduct product(DType::bf16, 7, 5, 384);
                    const auto number = [&](std::int64_t k, bool sized) {
                        return (k % apart == 0 ? -1.0f : rest) * (sized ? size : 1e-3f);
                    };
                    std::vector<float> weights;
                    for (std::int64_t i = 0; i < product.n * product.k; i++)
                        weights.push_back(number(i % product.k, of_weights));
                    scalar.store(product.n * product.k, DType::bf16, weights.data(), product.w.data());
                    for (std::int64_t i = 0; i < product.m * (product.k + 1); i++)
                        product.a[i] = number(i % (product.k + 1), !of_weights);
                    for (std::int64_t i = 0; i < product.n; i++) product.bias[i] = 0;
                    for (std::int64_t i = 0; i < product.m * product.n; i++) product.add[i] = 0;
                    const std::vector<float> c = run(product);
                    CAPTURE(size);
                    CAPTURE(apart);
                    CAPTURE(rest);
                    CAPTURE(of_weights);
                    CHECK(error_by_norms(product, c) < 2e-4);
                    int compared = 0;
                    CHECK(same_by_own(product, c, compared));
                }
}

TEST_CASE("a half that is not finite spoils its own row or column of the product, and no other") {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        WeightProduct of_a(DType::f16, 8, 20, 200), of_w(DType::f16, 8, 20, 200);
        of_a.a[(of_a.k + 1) + 150] = bad;
        const std::vector<float> a = run(of_a);
        (**usable_kernels().begin()).store(1, DType::f16, &bad, of_w.w.data() + 2 * (3 * of_w.k + 70));
        const std::vector<float> w = run(of_w);
        for (std::size_t i = 0; i < a.size(); i++) {
            CHECK(std::isfinite(a[i]) == (i / 20 != 1));
            CHECK(std::isfinite(w[i]) == (i % 20 != 3));
        }
        each_own([&](const char*, auto asked, PanelNumbers) {
            const std::vector<float> own_a = asked(of_a), own_w = asked(of_w);
            for (std::size_t i = 0; i < a.size(); i++) {
                CHECK(std::isfinite(own_a[i]) == (i / 20 != 1));
                CHECK(std::isfinite(own_w[i]) == (i % 20 != 3));
            }
        });
    }
}

TEST_CASE("nothing before the first half of W is read, nor behind the last") {
    for (std::int64_t k : {1, 33, 200, 256})
        for (std::int64_t m : {1, 17}) {
            WeightProduct product(DType::f16, m, 35, k);
            const auto same_when_guarded = [&](auto asked) {
                product.g.b.data = product.w.data();
                const std::vector<float> expected = asked(product);
                for (bool at_end : {false, true}) {
                    const Guarded guarded(product.w, at_end);
                    product.g.b.data = guarded.data();
                    CHECK(asked(product) == expected);
                }
            };
            same_when_guarded(run);
            each_own([&](const char* name, auto asked, PanelNumbers) {
                CAPTURE(std::string(name) + " K " + std::to_string(k));
                same_when_guarded(asked);
            });
        }
}
