// Weight types that are stored in blocks: every instruction set loads what the format says.
#include <doctest/doctest.h>

#include <algorithm>
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
        for (const KernelTable<float>* table : whole_tables()) {
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

namespace {

/// One block: byte i is ((37i² + 11i + 5) / 4) mod 256; the halves, where there are any, are ¼ and ½. The
/// weights at j·n/8 + 3j mod 8 (j = 0 … 7), and the sum of weight i times i + 1, are those of ggml's
/// dequantize_row_* for it.
struct Known {
    DType type;
    int half1, half2;  // where in the block; -1: none
    float weights[8];
    double sum;
};
const Known known[] = {
    {DType::q4_0, 0, -1, {0.75, -0.25, 1.25, 0.75, -0.75, -1, -0.75, 0.5}, -142},
    {DType::q4_1, 0, 2, {0.5, 4, 2.25, 0.75, 2, 1.5, 1.25, 1.5}, 1201},
    {DType::q5_0, 0, -1, {3.5, -4, 3, -4, -1.25, -1.5, 1.5, 0.5}, -70.5},
    {DType::q5_1, 0, 2, {2.25, 7.25, 7, 7, 5.75, 5.5, 4, 5.75}, 2551},
    {DType::q8_0, 0, -1, {10.75, 1.75, 27.25, 18.75, -17.5, -19, -23.5, -18.75}, -1012},
    {DType::q2_k, 80, 82, {0.25, -1, -5, 4.5, -3, -3.25, -1, -1.5}, 9436.75},
    {DType::q3_k, 108, -1, {6.25, 9.75, 6, -13, -0, -0.5, -16.5, -24}, 32502},
    {DType::q4_k, 0, 2, {84.5, 50.5, -13.5, -6, 103.5, 70, 87.5, 196.5}, 2091631},
    {DType::q5_k, 0, 2, {148.5, 104.5, 46.5, 62.75, 27.5, 178, 143.5, 167}, 4887430},
    {DType::q6_k, 208, -1, {-63.75, -25, 252, -225.5, -952, 922.25, 201.5, 174}, -343028},
    {DType::iq4_nl, 0, -1, {9.5, -2.5, 17.25, 9.5, -8.75, -12.25, -8.75, 6.25}, -1765},
    {DType::iq4_xs, 0, -1, {-40, -207.5, -73.5, 276.25, 99, 593.25, 182, -39.75}, -982322.75},
    {DType::tq2_0, 64, -1, {0, 0.5, 0, -0.25, -0.25, -0.25, 0.25, 0.5}, 3747.5},
    {DType::mxfp4, -1, -1, {-0.75, 1.5, -0.375, -0.5, -1.5, 0.75, 1.5, 1}, 126.25},
};

}  // namespace

TEST_CASE("every block type has its known answer on every instruction set") {
    for (const DTypeInfo& row : dtypes()) {
        if (row.block == 1 || !row.is_weight) continue;
        const Known* answer = nullptr;
        for (const Known& k : known)
            if (k.type == row.type) answer = &k;
        REQUIRE_MESSAGE(answer, row.name);
        std::vector<std::byte> block(static_cast<std::size_t>(row.bytes));
        for (std::size_t i = 0; i < block.size(); i++)
            block[i] = static_cast<std::byte>((37 * i * i + 11 * i + 5) / 4);
        std::uint16_t quarter = f32_to_f16(0.25f), half = f32_to_f16(0.5f);
        if (answer->half1 >= 0) std::memcpy(&block[static_cast<std::size_t>(answer->half1)], &quarter, 2);
        if (answer->half2 >= 0) std::memcpy(&block[static_cast<std::size_t>(answer->half2)], &half, 2);
        if (row.type == DType::mxfp4) block[0] = std::byte{125};
        each_table([&]<class Real>(const KernelTable<Real>& table) {
            std::vector<Real> w(static_cast<std::size_t>(row.block));
            table.load(row.block, row.type, block.data(), w.data());
            CAPTURE(row.name);
            CAPTURE(table.name);
            double sum = 0;
            for (std::size_t i = 0; i < w.size(); i++)
                sum += static_cast<double>(w[i]) * static_cast<double>(i + 1);
            CHECK(sum == answer->sum);
            for (std::size_t j = 0; j < 8; j++) {
                std::size_t i = std::min(j * w.size() / 8 + 3 * j % 8, w.size() - 1);
                CHECK(w[i] == Real(answer->weights[j]));
            }
        });
    }
}

namespace {

/// Relative rms error of normal weights after quantizing and loading; a fifth above what this search reaches.
struct Fidelity {
    DType type;
    double error;
};
const Fidelity fidelity[] = {
    {DType::q4_0, 0.105},  {DType::q4_1, 0.083}, {DType::q5_0, 0.051},   {DType::q5_1, 0.040},
    {DType::q8_0, 0.0066}, {DType::q2_k, 0.33},  {DType::q3_k, 0.19},    {DType::q4_k, 0.084},
    {DType::q5_k, 0.041},  {DType::q6_k, 0.021}, {DType::iq4_nl, 0.088}, {DType::iq4_xs, 0.089},
    {DType::mxfp4, 0.135}, {DType::tq2_0, 0.53},
};

/// Normal by the sum of twelve uniform numbers.
std::vector<float> normal(std::int64_t n) {
    Rng rng(5, 0);
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); i++) {
        double sum = -6;
        for (std::uint64_t k = 0; k < 12; k++) sum += rng.uniform(12 * i + k);
        x[i] = static_cast<float>(0.02 * sum);
    }
    return x;
}

template <class Real>
double distance(const std::vector<Real>& a, const std::vector<Real>& b, const std::vector<Real>& weight) {
    double error = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        double left = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        error += static_cast<double>(weight[i]) * left * left;
    }
    return error;
}

}  // namespace

TEST_CASE(
    "every block type is made with a small error on every instruction set, smaller where importance says") {
    for (const DTypeInfo& row : dtypes()) {
        if (row.block == 1 || !row.is_weight) continue;
        auto known_error = std::find_if(std::begin(fidelity), std::end(fidelity),
                                        [&](const Fidelity& f) { return f.type == row.type; });
        REQUIRE_MESSAGE(known_error != std::end(fidelity), row.name);
        std::vector<float> source = normal(16 * row.block > 2048 ? 16 * row.block : 2048);
        std::fill_n(source.begin(), row.block, 0.0f);
        each_table([&]<class Real>(const KernelTable<Real>& table) {
            CAPTURE(row.name);
            CAPTURE(table.name);
            auto n = static_cast<std::int64_t>(source.size());
            std::vector<Real> x(source.begin(), source.end()), y(x.size()), z(x.size()), one(x.size(), 1),
                weight = one;
            std::vector<std::byte> blocks(static_cast<std::size_t>(n / row.block * row.bytes));
            table.quantize(n, row.type, x.data(), nullptr, blocks.data());
            table.load(n, row.type, blocks.data(), y.data());
            CHECK(std::sqrt(distance(x, y, one) / distance(x, std::vector<Real>(x.size()), one)) <
                  known_error->error);
            for (std::size_t i = 0; i < static_cast<std::size_t>(row.block); i++) CHECK(y[i] == 0);
            for (std::size_t i = 0; i < x.size(); i += 3) weight[i] = 20;
            table.quantize(n, row.type, x.data(), weight.data(), blocks.data());
            table.load(n, row.type, blocks.data(), z.data());
            CHECK(distance(x, z, weight) < distance(x, y, weight));
        });
    }
}

TEST_CASE("q8_0 and q4_0 are llama.cpp's bytes: halves rounded away from 0, the farthest weight at -8") {
    float x[32] = {};
    x[0] = 127, x[1] = 0.5f, x[2] = -0.5f, x[3] = -2.5f, x[4] = 0.49999997f;
    for (const KernelTable<float>* table : whole_tables()) {
        signed char block[34];
        table->quantize(32, DType::q8_0, x, nullptr, block);
        CHECK(std::vector<int>(block + 2, block + 7) == std::vector<int>{127, 1, -1, -3, 0});
        float y[32] = {};
        y[0] = 4, y[1] = -4, y[2] = 0.25f, y[17] = -0.26f;  // d = -0.5
        unsigned char four[18];
        table->quantize(32, DType::q4_0, y, nullptr, four);
        CHECK(four[2] == 0x80);
        CHECK(four[3] == (15 | 9 << 4));
        CHECK(four[4] == (8 | 8 << 4));
    }
}

TEST_CASE("a search for scales ends whatever the weights are; q8_0 of what is not finite is NaN throughout") {
    std::vector<float> x(256, 1), back(256);
    std::vector<std::byte> block(256 * 4);
    for (const KernelTable<float>* table : whole_tables()) {
        for (const float large : {1e15f, 1e25f, 3e38f}) {
            x[7] = large;
            for (const DTypeInfo& row : dtypes())
                if (row.block > 1 && row.is_weight)
                    table->quantize(256, row.type, x.data(), nullptr, block.data());
        }
        for (const float wrong : {NAN, INFINITY}) {
            x.assign(256, 1);
            x[40] = wrong;
            table->quantize(256, DType::q8_0, x.data(), nullptr, block.data());
            table->load(256, DType::q8_0, block.data(), back.data());
            for (std::size_t i = 0; i < back.size(); i++) CHECK(std::isnan(back[i]) == (i / 32 == 1));
        }
    }
}
