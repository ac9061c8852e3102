// Probes for the 16-bit and 8-bit dot products that newer AVX-512 processors have. Compiled for them function
// by function, as the rest of the table must run without; peaks.cpp calls them only where the CPU has the
// instructions.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace linnet {
namespace {

constexpr int dot_chains = 16;  // two units, latency up to 6, and some to spare

__attribute__((target("avx512bf16"))) double bf16_probe(int64_t iterations) {
    __m512 acc[dot_chains];
    for (auto& a : acc) a = _mm512_setzero_ps();
    __m512bh x = (__m512bh)_mm512_set1_epi16(0x3F80), y = (__m512bh)_mm512_set1_epi16(0x3F00);  // 1, 0.5
    for (int64_t n = 0; n < iterations; n++) {
#pragma GCC unroll 16
        for (auto& a : acc) a = _mm512_dpbf16_ps(a, x, y);
    }
    __m512 total = acc[0];
    for (int i = 1; i < dot_chains; i++) total = _mm512_add_ps(total, acc[i]);
    double done = 2.0 * 32 * dot_chains * static_cast<double>(iterations);
    return _mm512_reduce_add_ps(total) > 0 ? done : 0;
}

__attribute__((target("avx512vnni"))) double int8_probe(int64_t iterations) {
    __m512i acc[dot_chains];
    for (auto& a : acc) a = _mm512_setzero_si512();
    __m512i x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(1);
    for (int64_t n = 0; n < iterations; n++) {
#pragma GCC unroll 16
        for (auto& a : acc) a = _mm512_dpbusd_epi32(a, x, y);
        asm volatile("" : "+v"(x));  // integers could be summed up without the loop
    }
    __m512i total = acc[0];
    for (int i = 1; i < dot_chains; i++) total = _mm512_add_epi32(total, acc[i]);
    double done = 2.0 * 64 * dot_chains * static_cast<double>(iterations);
    return _mm512_reduce_add_epi32(total) != 0 ? done : 0;
}

}  // namespace
}  // namespace linnet
