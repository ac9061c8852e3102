// q8_0: 32 weights per block, one f16 scale d, then 32 signed bytes: w = d · q.
#pragma once

namespace linnet {
namespace {

struct BlockQ8_0 {
    static constexpr DType type = DType::q8_0;
    static constexpr int64_t elements = 32, bytes = 34;

    static void load(const char* block, Real* to) {
        uint16_t scale;
        __builtin_memcpy(&scale, block, sizeof scale);
        Real d = sum(StoredF16::get_n(&scale, 1));
        const auto* q = reinterpret_cast<const signed char*>(block + sizeof scale);
        for (int64_t i = 0; i < elements; i++) to[i] = d * static_cast<Real>(q[i]);
    }
};

}  // namespace
}  // namespace linnet
