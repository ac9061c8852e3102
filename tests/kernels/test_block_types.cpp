// Weight types that are stored in blocks: every instruction set loads what the format says.
#include <doctest/doctest.h>

#include <cstring>

#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("every block type that models may have is loaded, alike on every instruction set") {
    for (const DTypeInfo& row : dtypes()) {
        if (row.block == 1 || !row.is_weight) continue;
        std::int64_t blocks = 5, n = blocks * row.block;
        std::vector<std::byte> data(static_cast<std::size_t>(blocks * row.bytes));
        Rng rng(3, static_cast<std::uint64_t>(row.gguf_id));
        for (std::size_t i = 0; i < data.size();
             i++)  // halves of random bytes below 0x3c are finite and small
            data[i] = static_cast<std::byte>(
                rng.below(i % static_cast<std::size_t>(row.bytes) == 1 ? 0x3c : 256, i));
        std::vector<float> expected(static_cast<std::size_t>(n), NAN);
        usable_kernels().begin()[0]->load(n, row.type, data.data(), expected.data());
        bool differs = false;
        for (float x : expected) {
            REQUIRE(std::isfinite(x));
            differs |= x != expected[0];
        }
        CHECK_MESSAGE(differs, row.name);
        for (const KernelTable<float>* table : usable_kernels()) {
            std::vector<float> loaded(expected.size(), NAN);
            table->load(n, row.type, data.data(), loaded.data());
            CHECK_MESSAGE(loaded == expected, table->name << " " << row.name);
        }
        std::vector<double> precise(expected.size(), NAN);
        double_kernels().load(n, row.type, data.data(), precise.data());
        for (std::size_t i = 0; i < precise.size(); i++)
            CHECK(precise[i] == doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-6));
    }
}

TEST_CASE("q8_0: a scale in half precision and 32 signed bytes") {
    std::byte block[34];
    std::uint16_t scale = f32_to_f16(0.25f);
    std::memcpy(block, &scale, 2);
    for (int i = 0; i < 32; i++) block[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(i * 8 - 128));
    float w[32];
    kernels().load(32, DType::q8_0, block, w);
    for (int i = 0; i < 32; i++) CHECK(w[i] == 0.25f * static_cast<float>(i * 8 - 128));
}
