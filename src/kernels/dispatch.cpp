// Which kernels this processor can run, and which are in force.
#include <atomic>
#include <cstring>

#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace linnet {

extern const KernelTable<float> scalar_kernels;
extern const KernelTable<double> double_table;
#if defined(__x86_64__)
extern const KernelTable<float> avx2_kernels, avx512_kernels;
#elif defined(__aarch64__)
extern const KernelTable<float> neon_kernels;
#endif

namespace {

bool always() {
    return true;
}

#if defined(__x86_64__)

/// Register state that the operating system saves for us (XCR0); 0 where it cannot be asked.
std::uint64_t saved_state() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0;  // OSXSAVE
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

bool has(std::uint64_t state, unsigned leaf1_ecx, unsigned leaf7_ebx) {
    unsigned a, b, c, d, b7;
    if ((saved_state() & state) != state) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1_ecx) != leaf1_ecx) return false;
    return __get_cpuid_count(7, 0, &a, &b7, &c, &d) && (b7 & leaf7_ebx) == leaf7_ebx;
}

constexpr std::uint64_t ymm_state = 0x6, zmm_state = 0xE6;
constexpr unsigned fma_f16c = 1u << 12 | 1u << 29, avx2 = 1u << 5;
constexpr unsigned avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;

bool has_avx2() {
    return has(ymm_state, fma_f16c, avx2);
}
bool has_avx512() {
    return has(zmm_state, fma_f16c, avx2 | avx512_f_dq_bw_vl);
}

#endif

/// What is built in, best last, and how to know whether this machine has it. (NEON is part of every AArch64.)
struct Tier {
    const KernelTable<float>* table;
    bool (*usable)();
};
constexpr Tier tiers[] = {
    {&scalar_kernels, always},
#if defined(__x86_64__)
    {&avx2_kernels, has_avx2},
    {&avx512_kernels, has_avx512},
#elif defined(__aarch64__)
    {&neon_kernels, always},
#endif
};
constexpr int tier_count = sizeof(tiers) / sizeof(tiers[0]);

struct Usable {
    const KernelTable<float>* table[tier_count];
    int count = 0;
    Usable() {
        for (const Tier& tier : tiers) {
            if (tier.usable()) table[count++] = tier.table;
        }
    }
};

const Usable& usable() {
    static const Usable list;
    return list;
}

std::atomic<const KernelTable<float>*>& in_force() {
    static std::atomic<const KernelTable<float>*> table{usable().table[usable().count - 1]};
    return table;
}

}  // namespace

KernelList usable_kernels() {
    return {usable().table, usable().table + usable().count};
}

const char* built_kernels() {
#if defined(__x86_64__)
    return "scalar avx2 avx512";
#elif defined(__aarch64__)
    return "scalar neon";
#else
    return "scalar";
#endif
}

const KernelTable<float>& kernels() {
    return *in_force().load(std::memory_order_relaxed);
}

bool select_kernels(const char* name) {
    for (const KernelTable<float>* table : usable_kernels()) {
        if (std::strcmp(table->name, name) == 0) {
            in_force().store(table, std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

const KernelTable<double>& double_kernels() {
    return double_table;
}

}  // namespace linnet
