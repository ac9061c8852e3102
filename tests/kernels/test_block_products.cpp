// Products with weights of block types: close to the product of the unpacked weights, the same bits on every
// instruction set, whatever part is asked for and whatever else is in the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "extreme_weights.h"
#include "guarded.h"

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
        // Of one row, columns go by fours, of several by 16 where they are lanes; a K of 1, 2 or more groups
        // beyond a run ends in its own way.
        const std::int64_t shapes[][3] = {{1, 1, 1},  {1, 23, 2},  {1, 6, 9},  {1, 7, 10},
                                          {1, 9, 16}, {1, 5, 21},  {2, 33, 3}, {7, 17, 8},
                                          {3, 50, 2}, {16, 32, 3}, {19, 5, 9}, {530, 3, 2}};
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
            for (std::int64_t rows : {1, 3, 9}) {
                WeightProduct product(type.type, rows, 23, 3 * type.block);
                product.g.n_begin = 2;
                std::vector<float> one = product.run(table->block.*member, table->gemm_workspace);
                product.g.streams = 4;
                CHECK_MESSAGE(product.run(table->block.*member, table->gemm_workspace) == one,
                              table->name << " " << type.name << " " << std::string(name));
            }
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
                WeightProduct product(type.type, 3, 20, type.block);
                product.a[(product.k + 1) + 5] = bad;
                std::vector<float> c = product.run(table->block.*member, table->gemm_workspace);
                for (std::size_t i = 0; i < c.size(); i++)
                    CHECK_MESSAGE(std::isfinite(c[i]) == (i / 20 != 1),
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

TEST_CASE("nothing before the first block of W is read, nor behind the last") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (std::int64_t n : {1, 17, 48})
            for (std::int64_t m : {1, 2, 17}) {
                WeightProduct product(type.type, m, n, type.block == 256 ? 512 : 288);
                for (const KernelTable<float>* table : usable_kernels()) {
                    if (!(table->block.*member)) continue;
                    CAPTURE(std::string(table->name) + " " + std::string(type.name) + " " + name);
                    auto run = [&] { return product.run(table->block.*member, table->gemm_workspace); };
                    product.g.b.data = product.w.data();
                    const std::vector<float> expected = run();
                    for (bool at_end : {false, true}) {
                        const Guarded guarded(product.w, at_end);
                        product.g.b.data = guarded.data();
                        CHECK(run() == expected);
                    }
                }
            }
    });
}

TEST_CASE("the greatest codes that blocks can hold times the greatest activations do not overflow") {
    each_extreme_product([](WeightProduct& product, const std::string& what) {
        const std::vector<double> expected = product.expected();
        for (const KernelTable<float>* table : usable_kernels())
            for (auto member : {&BlockProducts<float>::rows, &BlockProducts<float>::panels}) {
                if (!(table->block.*member)) continue;
                // All numbers of a run are alike and lose nothing as integers; in bf16 weights are rounded.
                const bool narrow = member == &BlockProducts<float>::panels &&
                                    table->block.numbers_of(product.g.b.type) == PanelNumbers::bf16;
                CHECK_MESSAGE(
                    relative_error(product.run(table->block.*member, table->gemm_workspace), expected) <
                        (narrow ? 4e-3 : 2e-6),
                    table->name << (member == &BlockProducts<float>::rows ? " rows " : " panels ") << what);
            }
    });
}

TEST_CASE("no bits make a weight farther from 0 than the extremes of its type") {
    const KernelTable<float>& scalar = **usable_kernels().begin();
    each_extreme_type([&](const DTypeInfo& type, const Extremes& e) {
        const std::int64_t blocks = 4096 / type.block;
        std::vector<std::byte> data(static_cast<std::size_t>(blocks * type.bytes));
        std::vector<float> weights(static_cast<std::size_t>(blocks * type.block));
        const Rng rng(7, static_cast<std::uint64_t>(type.gguf_id));
        for (int scale = 0; scale < 2; scale++) {
            auto range = [&](auto code) {
                fill(e, scale, code, data);
                scalar.load(blocks * type.block, type.type, data.data(), weights.data());
                const auto [least, most] = std::ranges::minmax(weights);
                return std::pair{least, most};
            };
            const auto first = range([&](std::size_t) { return e.code[0]; }),
                       second = range([&](std::size_t) { return e.code[1]; }),
                       random = range(
                           [&](std::size_t i) { return static_cast<unsigned char>(rng.below(256, i)); });
            CHECK_MESSAGE(random.first == std::min(first.first, second.first), type.name);
            CHECK_MESSAGE(random.second == std::max(first.second, second.second), type.name);
        }
    });
}
