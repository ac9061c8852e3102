// Products on matrix units, on machines that have none: the same source over tiles in plain C++, which give
// AMX's bits.
#include <doctest/doctest.h>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/tile_panels.inl"

#include "emulated_tiles.h"
#include "extreme_weights.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Product = void (*)(const Gemm<float>&, void*);

std::vector<float> run(WeightProduct& product, Product of = linnet::tile_panels<EmulatedTiles>) {
    return product.run(of, sizeof(linnet::TilePanels));
}

/// Calls f(name, panels) for the machine's own sets that have matrix units; how many they are.
template <class F>
int each_own(F f) {
    int count = 0;
    for (const KernelTable<float>* table : usable_kernels())
        if (table->block.panel_numbers == PanelNumbers::bf16) f(table->name, table->block.panels), count++;
    return count;
}

/// Calls f(type, largest error) for every type that panels on matrix units take.
template <class F>
void each_tile_type(F f) {
    for (const DTypeInfo& type : dtypes()) {
        if (type.type == DType::f16 || type.type == DType::bf16)
            f(type, 2e-5);
        else if (type.block > 1 && type.is_weight)
            f(type, 4e-3);
    }
}

}  // namespace

TEST_CASE("tiles give the product of the stored weights, and the machine's own the same bits") {
    int compared = 0;
    each_tile_type([&](const DTypeInfo& type, double allowed) {
        const std::int64_t shapes[][3] = {
            {1, 40, 32}, {17, 33, 96}, {40, 50, 64}, {19, 37, 1056}, {515, 2, 32}};
        for (const auto& shape : shapes) {
            WeightProduct product(type.type, shape[0], shape[1],
                                  (shape[2] + type.block - 1) / type.block * type.block);
            std::vector<float> c = run(product);
            CHECK_MESSAGE(relative_error(c, product.expected()) < allowed, type.name << " K " << product.k);
            compared += each_own([&](const char* name, Product own) {
                CHECK_MESSAGE(run(product, own) == c, name << " " << type.name);
            });
        }
    });
    if (compared == 0) skip("the machine's own tiles: needs matrix units (AMX)");
}

TEST_CASE("f16 and bf16 weights may have rows of any length in tiles") {
    for (DType type : {DType::f16, DType::bf16})
        for (std::int64_t k : {1, 15, 17, 31, 33, 513}) {
            WeightProduct product(type, 5, 3, k);
            const std::vector<float> c = run(product);
            CHECK(relative_error(c, product.expected()) < 2e-5);
            each_own([&](const char* name, Product own) {
                CHECK_MESSAGE(run(product, own) == c, name << " K " << k);
            });
        }
}

TEST_CASE("bf16 weights, which have no low parts, give the bits of the same numbers in f16") {
    WeightProduct narrow(DType::bf16, 19, 37, 96), same(DType::f16, 19, 37, 96);
    const KernelTable<float>& scalar = **usable_kernels().begin();
    const std::int64_t count = narrow.n * narrow.k;
    Values<float> numbers(count, 1), stored(count, 1);
    scalar.load(count, DType::bf16, narrow.w.data(), numbers.data());
    scalar.store(count, DType::f16, numbers.data(), same.w.data());
    scalar.load(count, DType::f16, same.w.data(), stored.data());
    for (std::int64_t i = 0; i < count; i++) REQUIRE(stored[i] == numbers[i]);
    CHECK(run(narrow) == run(same));
}

TEST_CASE("an output of tiles does not depend on the part that is asked for") {
    for (DType type : {DType::f16, DType::q4_k})
        CHECK(same_in_part({type, 37, 50, 512}, [](WeightProduct& product) { return run(product); }));
}

TEST_CASE("tiles do not overflow with the greatest codes that blocks can hold") {
    each_extreme_product([](WeightProduct& product, const std::string& what) {
        CHECK_MESSAGE(relative_error(run(product), product.expected()) < 4e-3, what);
    });
}
