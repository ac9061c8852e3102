#include "kernels/peaks.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/team.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

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

double measured_tile_flops(int threads) {
    return best_rate(threads, [](Worker) { return kernels().tile_probe(probe_iterations / 4); });
}

namespace {

/// Bytes of the last cache, as far as the system tells.
std::size_t last_cache() {
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    for (int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
        bytes = std::max(bytes, sysconf(level));
#endif
    return static_cast<std::size_t>(bytes);
}

}  // namespace

ReadBandwidth measured_read_bandwidth(int threads) {
    constexpr std::size_t least = std::size_t{256} << 20, most = std::size_t{1} << 30;
    const std::size_t bytes = std::clamp(4 * last_cache(), least, most);
    const Arena memory = allocate_arena(bytes);
    auto* values = static_cast<float*>(memory.get());
    const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
    run_team(threads, [&](Worker worker) {  // pages of one's own, which zeroes would not be
        Range part = worker.share(count, 1024);
        std::fill(values + part.begin, values + part.end, 1.0f);
    });
    ReadBandwidth best;
    for (int streams : {1, 4, 8}) {
        const double rate = best_rate(threads, [&](Worker worker) {
            Range part = worker.share(count, 1024);
            double sum = kernels().read_probe(part.size(), values + part.begin, streams);
            return sum > 0 ? static_cast<double>(part.size()) * sizeof(float) : 0;
        });
        if (rate > best.bytes_per_s) best = {rate, streams};
    }
    return best;
}

}  // namespace linnet
