// Panels of bytes, on machines that lack the instructions: the same source over what those are said to do, in
// plain C++.
#include <doctest/doctest.h>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/blocks/byte_panels.inl"
#include "kernels/blocks/dot_panels.inl"

#include "extreme_weights.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// SMMLA (Arm Architecture Reference Manual, C7.2).
struct EmulatedMatrix {
    static Ints4 multiply(Ints4 c, const Byte* a, const Byte* b) {
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 8; k++)
                c[i] += static_cast<Whole>(a[i / 2 * 8 + k]) * static_cast<Whole>(b[i % 2 * 8 + k]);
        return c;
    }
};

/// VPDPBUSD (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2).
struct EmulatedDots : ByteWordDots {
    static Integers add(Integers sum, Integers codes, Integers a) {
        for (int k = 0; k < 32; k += 8)
            sum += static_cast<Byte>(codes >> k) * static_cast<Whole>(static_cast<Byte>(a >> k));
        return sum;
    }
};

std::vector<float> by_matrices(WeightProduct& product) {
    return product.run(linnet::byte_panels<EmulatedMatrix>, sizeof(linnet::BytePanels));
}
std::vector<float> by_dots(WeightProduct& product) {
    return product.run(linnet::dot_panels<EmulatedDots>, sizeof(linnet::DotPanels));
}

struct Emulated {
    const char* name;
    PanelNumbers numbers;
    std::vector<float> (*run)(WeightProduct&);
};
constexpr Emulated emulated[] = {{"matrices", PanelNumbers::bytes, by_matrices},
                                 {"dots", PanelNumbers::dots, by_dots}};

template <class F>
void each_block_type(F f) {
    for (const Emulated& panels : emulated)
        for (const DTypeInfo& type : dtypes())
            if (type.block > 1 && type.is_weight) f(panels, type);
}

}  // namespace

TEST_CASE("panels of bytes give the product of the stored weights, and the machine's own the same bits") {
    each_block_type([](const Emulated& panels, const DTypeInfo& type) {
        const std::int64_t shapes[][3] = {
            {1, 9, 32}, {17, 33, 96}, {6, 5, 1056}, {131, 10, 1280}, {1050, 3, 544}};
        for (const auto& shape : shapes) {
            WeightProduct product(type.type, shape[0], shape[1],
                                  (shape[2] + type.block - 1) / type.block * type.block);
            std::vector<float> c = panels.run(product);
            CHECK_MESSAGE(relative_error(c, product.expected()) < 1e-2,
                          panels.name << " " << type.name << " K " << product.k);
            for (const KernelTable<float>* table : usable_kernels())
                if (table->block.numbers_of(type.type) == panels.numbers)
                    CHECK_MESSAGE(product.run(table->block.panels, table->gemm_workspace) == c,
                                  table->name << " " << type.name);
        }
    });
}

TEST_CASE("an output of panels of bytes is the same whatever part is asked for") {
    each_block_type([](const Emulated& panels, const DTypeInfo& type) {
        CHECK_MESSAGE(same_in_part({type.type, 21, 40, 5 * 256}, panels.run),
                      panels.name << " " << type.name);
    });
}

TEST_CASE("panels of bytes do not overflow with the greatest codes that blocks can hold") {
    each_extreme_product([](WeightProduct& product, const std::string& what) {
        const std::vector<double> expected = product.expected();
        for (const Emulated& panels : emulated)
            CHECK_MESSAGE(relative_error(panels.run(product), expected) < 2e-6, panels.name << " " << what);
    });
}

TEST_CASE("a type's greatest code, from which overflow is judged, is the greatest that random bits make") {
    for (const DTypeInfo& type : dtypes())
        AllBlockTypes::with(type.type, [&](auto block) {
            using Block = decltype(block);
            const Rng rng(9, static_cast<std::uint64_t>(type.gguf_id));
            char run[run_bytes<Block>];
            int greatest = 0;
            for (std::uint64_t n = 0; n < 64; n++) {
                for (std::uint64_t i = 0; i < sizeof run; i++)
                    run[i] = static_cast<char>(rng.below(256, n * sizeof run + i));
                each_group([&]<int g>() {
                    const Bytes32 codes = Block::template codes<g>(run);
                    for (int i = 0; i < 32; i++)
                        greatest =
                            std::max(greatest, Block::is_signed ? std::abs(static_cast<Whole>(codes[i]))
                                                                : static_cast<int>(codes[i]));
                });
            }
            CHECK_MESSAGE(greatest == Block::greatest, type.name);
        });
}
