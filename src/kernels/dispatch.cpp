// Which kernels this processor can run, and which are in force.
#include <atomic>
#include <cstring>
#include <string>

#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace linnet {

extern const KernelTable<float> scalar_kernels;
extern const KernelTable<double> double_table;
#if defined(__x86_64__)
extern const KernelTable<float> avx2_kernels, avx512_kernels;
extern const AddedKernels avxvnni_kernels, avx512vnni_kernels, avx512bf16_kernels, amx_kernels;
#elif defined(__aarch64__)
extern const KernelTable<float> neon_kernels;
extern const AddedKernels dotprod_kernels, i8mm_kernels;
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

/// A bit of leaf 7, part `part`, in register 0 to 3: EAX, EBX, ECX, EDX.
bool has_feature(unsigned part, int in, unsigned bit) {
    unsigned r[4];
    return __get_cpuid_count(7, part, &r[0], &r[1], &r[2], &r[3]) && (r[in] & 1u << bit);
}
bool has_avxvnni() {
    return has_avx2() && has_feature(1, 0, 4);
}
bool has_avx512vnni() {
    return has_avx512() && has_feature(0, 2, 11);
}
bool has_avx512bf16() {
    return has_avx512vnni() && has_feature(1, 0, 5);
}

/// The registers of tiles must be asked for, once per process: Linux refuses where a signal stack is too
/// small for them.
bool may_use_tiles() {
#if defined(__linux__)
    constexpr long request_permission = 0x1023, tile_data = 18;  // arch_prctl(2): ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}
bool has_amx() {
    constexpr std::uint64_t tile_state = 0x60000;
    return has_avx512bf16() && has_feature(0, 3, 22) && has_feature(0, 3, 24) &&
           (saved_state() & tile_state) == tile_state && may_use_tiles();
}

#elif defined(__aarch64__)

#if defined(__APPLE__)
bool has_feature(const char* name) {
    int value = 0;
    std::size_t bytes = sizeof value;
    return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value == 1;
}
bool has_dotprod() {
    return has_feature("hw.optional.arm.FEAT_DotProd");
}
bool has_i8mm() {
    return has_dotprod() && has_feature("hw.optional.arm.FEAT_I8MM");
}
#else
bool has_dotprod() {
    constexpr unsigned long dot_products = 1ul << 20;  // HWCAP_ASIMDDP
    return getauxval(AT_HWCAP) & dot_products;
}
bool has_i8mm() {
    constexpr unsigned long byte_matrices = 1ul << 13;  // HWCAP2_I8MM
    return has_dotprod() && getauxval(AT_HWCAP2) & byte_matrices;
}
#endif

#endif

/// What is built in, best last, and how to know whether this machine has it. (NEON is part of every AArch64.)
/// What is added stands on the one before.
struct Tier {
    bool (*usable)();
    const KernelTable<float>* table;
    const AddedKernels* added = nullptr;

    const char* name() const { return added ? added->name : table->name; }
};
constexpr Tier tiers[] = {
    {always, &scalar_kernels},
#if defined(__x86_64__)
    {has_avx2, &avx2_kernels},
    {has_avxvnni, nullptr, &avxvnni_kernels},
    {has_avx512, &avx512_kernels},
    {has_avx512vnni, nullptr, &avx512vnni_kernels},
    {has_avx512bf16, nullptr, &avx512bf16_kernels},
    {has_amx, nullptr, &amx_kernels},
#elif defined(__aarch64__)
    {always, &neon_kernels},
    {has_dotprod, nullptr, &dotprod_kernels},
    {has_i8mm, nullptr, &i8mm_kernels},
#endif
};
constexpr int tier_count = sizeof(tiers) / sizeof(tiers[0]);

KernelTable<float> with(KernelTable<float> below, const AddedKernels& added) {
    below.name = added.name;
    BlockProducts<float> block = added.block.panels ? added.block : below.block;
    const BlockProducts<float>& writing = added.block.rows ? added.block : below.block;
    block.rows = writing.rows, block.rows_longest = writing.rows_longest;
    below.block = block;
    if (added.narrow.rounded) below.narrow = added.narrow;
    if (added.tile_probe) below.tile_probe = added.tile_probe;
    return below;
}

struct Usable {
    KernelTable<float> made[tier_count];
    const KernelTable<float>* table[tier_count];
    int count = 0;
    Usable() {
        for (int i = 0; i < tier_count; i++) {
            made[i] = tiers[i].added ? with(made[i - 1], *tiers[i].added) : *tiers[i].table;
            if (tiers[i].usable()) table[count++] = &made[i];
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
    static const std::string names = [] {
        std::string all;
        for (const Tier& tier : tiers) all += std::string(all.empty() ? "" : " ") + tier.name();
        return all;
    }();
    return names.c_str();
}

int memory_streams() {
#if defined(__x86_64__)
    return 4;
#else
    return 1;
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
