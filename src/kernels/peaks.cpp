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
    constexpr std::int64_t iterations = 500'000;  // about 10 ms on one core
    return best_rate(threads, [](Worker) { return kernels().fma_probe(iterations); });
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
