#include "train/step/precision.h"

#include <algorithm>
#include <limits>

#include "base/arena.h"
#include "base/clock.h"
#include "ops/matmul.h"

namespace linnet {
namespace {

/// The three products of a layer [N,K] for `rows` rows, once; the best seconds of some tries.
class LayerProbe {
  public:
    LayerProbe(std::int64_t rows, std::int64_t n, std::int64_t k, int threads)
        : rows_(rows),
          n_(n),
          k_(k),
          threads_(threads),
          x_(filled(rows * k)),
          y_(filled(rows * n)),
          w_(filled(n * k)),
          out_(filled(std::max({rows * k, rows * n, n * k}))) {}

    double seconds(ProductKernel kernel) {
        constexpr int tries = 4;
        constexpr double enough = 2e-3;  // of tries, in seconds: a short product needs several
        const std::size_t stride = kernel_workspace(kernels());
        const Arena workspaces = allocate_arena(stride * static_cast<std::size_t>(threads_));
        double best = std::numeric_limits<double>::infinity(), all = 0;
        for (int i = 0; i < tries || all < enough; i++) {
            const auto start = Clock::now();
            for (int kind = 0; kind < 3; kind++)
                run_team(threads_, [&](Worker worker) {
                    Call<float> call;
                    call.worker = worker, call.kernels = &kernels(), call.product = kernel;
                    call.workspace = static_cast<std::byte*>(workspaces.get()) +
                                     stride * static_cast<std::size_t>(worker.index);
                    team_matmul(call, product(kind));
                });
            const double took = seconds_since(start);
            best = std::min(best, took), all += took;
        }
        return best;
    }

  private:
    static Arena filled(std::int64_t n) {
        Arena memory = allocate_arena(static_cast<std::size_t>(n) * sizeof(float));
        std::fill_n(static_cast<float*>(memory.get()), n, 0.5f);
        return memory;
    }
    Gemm<float> product(int kind) const {
        Gemm<float> g;
        if (kind == 0) {  // y = x · Wᵀ
            g.m = rows_, g.n = n_, g.k = k_;
            g.a = {x_.get(), DType::f32, k_, 1}, g.b = {w_.get(), DType::f32, 1, k_};
        } else if (kind == 1) {  // dx = dy · W
            g.m = rows_, g.n = k_, g.k = n_;
            g.a = {y_.get(), DType::f32, n_, 1}, g.b = {w_.get(), DType::f32, k_, 1};
        } else {  // dW = dyᵀ · x
            g.m = n_, g.n = k_, g.k = rows_;
            g.a = {y_.get(), DType::f32, 1, n_}, g.b = {x_.get(), DType::f32, k_, 1};
        }
        g.c = static_cast<float*>(out_.get()), g.c_row = g.n;
        return g;
    }

    std::int64_t rows_, n_, k_;
    int threads_;
    Arena x_, y_, w_, out_;
};

}  // namespace

std::string fastest_precision(const RunConfig& config, int threads) {
    const ModelConfig& m = config.model;
    constexpr std::int64_t narrow = 64;  // models as small as that spend their time elsewhere
    if (!kernels().narrow.rounded || m.width <= narrow) return "f32";
    const std::int64_t rows = std::clamp<std::int64_t>(config.train.batch * config.train.sequence, 1, 256);
    LayerProbe probe(rows, std::clamp<std::int64_t>(4 * m.width, 1, 1024),
                     std::clamp<std::int64_t>(m.width, 1, 1024), threads);
    constexpr double worth = 1.25;  // less is lost again on what is not a product
    // In turns, the best of each: what else the machine does meets both.
    constexpr int turns = 4;
    double f32 = std::numeric_limits<double>::infinity(), bf16 = f32;
    for (int i = 0; i < turns; i++) {
        f32 = std::min(f32, probe.seconds(ProductKernel::panels));
        bf16 = std::min(bf16, probe.seconds(ProductKernel::bf16));
    }
    return f32 > worth * bf16 ? "bf16" : "f32";
}

LearnerNumbers numbers_of(const RunConfig& config) {
    const std::string& precision = config.train.precision;
    LearnerNumbers numbers;
    if (precision == "f32-split") numbers.products = ProductKernel::split;
    if (precision == "bf16") numbers.products = ProductKernel::bf16, numbers.activation = DType::bf16;
    numbers.recompute = config.train.recompute == "blocks";
    return numbers;
}

}  // namespace linnet
