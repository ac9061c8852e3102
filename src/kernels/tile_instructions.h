// AMX: eight registers of 16 rows × 64 bytes, and the product of two of them in bf16. In assembly, because
// GCC 12's own intrinsics do not tell the compiler which memory they read, and stores before them are lost at
// -O2. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS.
#pragma once
#include <stdint.h>

namespace linnet {
namespace {

struct TileInstructions {
    /// Every register as 16 rows of 64 bytes; to be called by each thread before it uses them. It costs 300
    /// cycles, so each product does it for itself, and no thread that the system makes later inherits live
    /// registers.
    static void begin() {
        struct alignas(64) Configuration {
            uint8_t palette, start_row, reserved[14];
            uint16_t row_bytes[16];
            uint8_t rows[16];
        } c = {};
        static_assert(sizeof c == 64);
        c.palette = 1;
        for (int i = 0; i < 8; i++) c.row_bytes[i] = 64, c.rows[i] = 16;
        __asm__ volatile("ldtilecfg %0" : : "m"(c) : "memory");
    }
    static void end() { __asm__ volatile("tilerelease" : : : "memory"); }

    template <int t>
    static void clear() {
        __asm__ volatile("tilezero %%tmm%c0" : : "i"(t));
    }
    /// 16 rows of 64 bytes, `stride` bytes apart, from memory and to it.
    template <int t>
    static void load(const void* from, int64_t stride) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(t) : "memory");
    }
    /// The same of what is read once: it is not to evict what L1 holds.
    template <int t>
    static void load_once(const void* from, int64_t stride) {
        __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(t) : "memory");
    }
    template <int t>
    static void store(void* to, int64_t stride) {
        __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(t) : "memory");
    }
    /// c [16,16] += a · b, in f32: a [16,32] rows of bf16, b [16][16][2] pairs of them along K.
    template <int c, int a, int b>
    static void multiply() {
        __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    }
};

}  // namespace
}  // namespace linnet
