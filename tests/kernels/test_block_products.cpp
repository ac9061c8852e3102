// Products with weights of block types: close to the product of the unpacked weights, the same bits on every
// instruction set, whatever part is asked for and whatever else is in the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "weight_product.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// Calls f(type, name, a table's product, largest error) for every type and both products where there are
/// any.
template <class F>
void each_product(F f) {
    for (const DTypeInfo& type : dtypes()) {
        if (type.block == 1 || !type.is_weight) continue;
        f(type, "rows", &BlockProducts<float>::rows, 1e-2);
        f(type, "panels", &BlockProducts<float>::panels, 2e-3);
    }
}

}  // namespace

TEST_CASE("products with block types are close to those of the unpacked weights, alike on all sets") {
    const KernelTable<float>& scalar = *usable_kernels().begin()[0];
    each_product([&](const DTypeInfo& type, const char* name, auto member, double allowed) {
        // Of one row, columns go by fours; a K of 1, 2 or more groups beyond a run ends in its own way.
        const std::int64_t shapes[][3] = {{1, 1, 1},  {1, 23, 2}, {1, 6, 9},  {1, 7, 10}, {1, 9, 16},
                                          {1, 5, 21}, {2, 33, 3}, {7, 17, 8}, {19, 5, 9}, {530, 3, 2}};
        for (const auto& shape : shapes) {
            WeightProduct product(type.type, shape[0], shape[1], shape[2] * type.block);
            std::vector<double> expected = product.expected();
            std::vector<float> first = product.run(scalar.block.*member, scalar.gemm_workspace);
            CHECK_MESSAGE(relative_error(first, expected) < allowed,
                          type.name << " " << std::string(name) << " K " << product.k);
            for (const KernelTable<float>* table : usable_kernels()) {
                if (!(table->block.*member)) continue;
                // Others round otherwise: test_tile_panels.cpp, test_byte_panels.cpp.
                if (member == &BlockProducts<float>::panels &&
                    table->block.numbers_of(type.type) != PanelNumbers::integers)
                    continue;
                CHECK_MESSAGE(
                    product.run(table->block.*member, table->gemm_workspace) == first,
                    table->name << " " << type.name << " " << std::string(name) << " K " << product.k);
            }
        }
    });
}

TEST_CASE("rows of W read together give the bits of rows read one after another") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        if (member != &BlockProducts<float>::rows) return;
        for (const KernelTable<float>* table : usable_kernels()) {
            WeightProduct product(type.type, 1, 23, 3 * type.block);
            product.g.n_begin = 2;
            std::vector<float> one = product.run(table->block.*member, table->gemm_workspace);
            product.g.streams = 4;
            CHECK_MESSAGE(product.run(table->block.*member, table->gemm_workspace) == one,
                          table->name << " " << type.name << " " << std::string(name));
        }
    });
}

TEST_CASE("an output of a product with a block type does not depend on the part that is asked for") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (const KernelTable<float>* table : usable_kernels()) {
            if (!(table->block.*member)) continue;
            auto run = [&](WeightProduct& p) { return p.run(table->block.*member, table->gemm_workspace); };
            CHECK_MESSAGE(same_in_part({type.type, 21, 40, 2 * type.block}, run),
                          table->name << " " << type.name << " " << std::string(name));
        }
    });
}

TEST_CASE("an activation that is not finite spoils its row and no other") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (const KernelTable<float>* table : usable_kernels()) {
            if (!(table->block.*member)) continue;
            for (float bad : {NAN, INFINITY}) {
                WeightProduct product(type.type, 3, 4, type.block);
                product.a[(product.k + 1) + 5] = bad;
                std::vector<float> c = product.run(table->block.*member, table->gemm_workspace);
                for (std::size_t i = 0; i < c.size(); i++)
                    CHECK_MESSAGE(std::isfinite(c[i]) == (i / 4 != 1),
                                  table->name << " " << type.name << " " << std::string(name));
            }
        }
    });
}

TEST_CASE(
    "a row that ends within a run of 256 weights takes nothing of the rows behind it, whatever their bytes") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (const KernelTable<float>* table : usable_kernels()) {
            if (!(table->block.*member)) continue;
            for (std::int64_t blocks : {1, 2, 3, 9, 10})
                for (std::int64_t rows : {1, 4}) {
                    WeightProduct product(type.type, 1, 7, blocks * type.block);
                    product.g.n_end = rows;  // of W
                    auto run = [&] { return product.run(table->block.*member, table->gemm_workspace); };
                    const std::vector<float> before = run();
                    const auto end = static_cast<std::ptrdiff_t>(product.w.size()) / 7 * rows;
                    std::fill(product.w.begin() + end, product.w.end(), std::byte{0xFF});  // halves: NaN
                    CHECK_MESSAGE(run() == before, table->name << " " << type.name << " " << std::string(name)
                                                               << " K " << product.k << " rows " << rows);
                }
        }
    });
}

TEST_CASE("the greatest codes times the greatest activations do not leave the range of their sums") {
    struct Case {
        DType type;
        std::size_t halves;  // that a block begins with
    };
    for (const Case& c : {Case{DType::q4_0, 1},
                          {DType::q4_1, 2},
                          {DType::q5_0, 1},
                          {DType::q5_1, 2},
                          {DType::q4_k, 2},
                          {DType::q5_k, 2}})
        for (std::int64_t rows : {1, 4}) {
            WeightProduct product(c.type, rows, 17, 512);
            std::ranges::fill(product.w, std::byte{0xFF});
            const std::uint16_t one = 0x3C00;
            for (std::size_t at = 0; at < product.w.size(); at += info(c.type).bytes)
                for (std::size_t half = 0; half < c.halves; half++)
                    std::memcpy(product.w.data() + at + 2 * half, &one, sizeof one);
            for (std::int64_t i = 0; i < product.m * (product.k + 1); i++) product.a[i] = 1;
            const std::vector<double> expected = product.expected();
            for (const KernelTable<float>* table : usable_kernels())
                for (auto* kernel : {table->block.rows, table->block.panels})
                    if (kernel)
                        CHECK_MESSAGE(
                            relative_error(product.run(kernel, table->gemm_workspace), expected) < 1e-2,
                            table->name << " " << info(c.type).name << " rows " << rows);
        }
}
