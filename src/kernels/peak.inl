// Probes for the machine's limits: what no kernel can beat.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

/// Multiply-adds on registers alone; returns the floating-point operations done.
double fma_probe(int64_t iterations) {
    constexpr int chains = 12;  // two units, latency 4 or 5
    Vec acc[chains];
    LINNET_UNROLL
    for (int i = 0; i < chains; i++) acc[i] = set1(Real(i));
    Vec x = set1(Real(0.999)), y = set1(Real(0.001));
    for (int64_t n = 0; n < iterations; n++) {
        LINNET_UNROLL
        for (int i = 0; i < chains; i++) acc[i] = fma(acc[i], x, y);
    }
    Vec total = zero();
    LINNET_UNROLL
    for (int i = 0; i < chains; i++) total = total + acc[i];
    double done = 2.0 * W * chains * static_cast<double>(iterations);
    return sum(total) == Real(0) ? 0 : done;  // the sums are looked at, so the loop stays
}

/// For the sets without such instructions.
double no_probe(int64_t) {
    return 0;
}

template <int Streams>
inline double read_streams(int64_t n, const Real* x) {
    constexpr int64_t step = 8 * W, ahead = read_ahead(Streams) / sizeof(Real);
    Vec total[8];
    LINNET_UNROLL
    for (int v = 0; v < 8; v++) total[v] = zero();
    int64_t part = n / Streams / step * step, rest = part * Streams;
    for (int64_t i = 0; i < part; i += step) {
        LINNET_UNROLL
        for (int s = 0; s < Streams; s++) {
            const Real* at = x + s * part + i;
            LINNET_UNROLL
            for (int v = 0; v < 8; v++) total[v] = total[v] + load(at + v * W);
            LINNET_UNROLL
            for (int64_t line = 0; line < step; line += 64 / sizeof(Real))
                __builtin_prefetch(at + ahead + line, 0, 2);
        }
    }
    each_vector(n - rest, [&](int64_t j, int64_t some) { total[0] = total[0] + load_n(x + rest + j, some); });
    LINNET_UNROLL
    for (int v = 1; v < 8; v++) total[0] = total[0] + total[v];
    return static_cast<double>(sum(total[0]));
}

double read_probe(int64_t n, const Real* x, int streams) {
    return streams == 8   ? read_streams<8>(n, x)
           : streams == 4 ? read_streams<4>(n, x)
                          : read_streams<1>(n, x);
}

}  // namespace
}  // namespace linnet
