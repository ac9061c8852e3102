// Panels of bytes, on machines that lack the instructions: the same source over what those are said to do, in
// plain C++.
#include <doctest/doctest.h>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/blocks/byte_panels.inl"
#include "kernels/blocks/dot_panels.inl"

#include "weight_product.h"

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
struct EmulatedDots : WordDots {
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
