#include "kernels/peaks.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/team.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int tries = 5;
constexpr std::int64_t probe_iterations = 500'000;  // about 10 ms on one core

/// The best rate of several tries at `work`, which returns what one member did; members start together.
template <class Work>
double best_rate(int threads, Work work) {
    double best = 0;
    for (int i = 0; i < tries; i++) {
        std::vector<double> done(static_cast<std::size_t>(threads));
        Clock::time_point begin, end;
        run_team(threads, [&](Worker worker) {
            worker.sync();
            if (worker.index == 0) begin = Clock::now();
            done[static_cast<std::size_t>(worker.index)] = work(worker);
            worker.sync();
            if (worker.index == 0) end = Clock::now();
        });
        double total = 0;
        for (double d : done) total += d;
        best = std::max(best, total / std::chrono::duration<double>(end - begin).count());
    }
    return best;
}

}  // namespace

double measured_peak_flops(int threads) {
    return best_rate(threads, [](Worker) { return kernels().fma_probe(probe_iterations); });
}

double measured_bf16_flops(int threads) {
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx512bf16")) return 0;
#endif
    return best_rate(threads, [](Worker) { return kernels().bf16_probe(probe_iterations); });
}

double measured_int8_ops(int threads) {
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx512vnni")) return 0;
#endif
    return best_rate(threads, [](Worker) { return kernels().int8_probe(probe_iterations); });
}

double measured_read_bandwidth(int threads) {
    std::vector<float> memory(std::size_t{64} << 20, 1.0f);  // 256 MiB
    return best_rate(threads, [&](Worker worker) {
        Range part = worker.share(static_cast<std::int64_t>(memory.size()), 1024);
        double sum = kernels().read_probe(part.size(), memory.data() + part.begin);
        return sum > 0 ? static_cast<double>(part.size()) * sizeof(float) : 0;
    });
}

}  // namespace linnet
