// `make bench-kernels`: the speed of the matrix products that training and decoding are made of, beside the
// machine's measured peaks. Best of several runs each, threads split as the executor splits.
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.h"

using namespace linnet;

namespace {

int threads = 1;

/// Seconds. One thread is timed by its processor time, so that a busy machine's other work does not count.
double now() {
    timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Best seconds of `work(thread, threads)` over about a second.
template <class F>
double best(F work, double budget = 0.6) {
    double least = 1e9, begin = now();
    for (int i = 0; i < 3 || now() - begin < budget; i++) {
        double t = 0;
#pragma omp parallel num_threads(threads)
        {
#pragma omp barrier
            double start = now();
            work(omp_get_thread_num(), threads);
#pragma omp barrier
#pragma omp single
            t = now() - start;
        }
        least = std::min(least, t);
    }
    return least;
}

void* aligned(std::size_t bytes) {
    void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::memset(p, 0, bytes);
    return p;
}

float* random_floats(std::size_t n) {
    float* p = static_cast<float*>(aligned(n * sizeof(float)));
    std::uint32_t s = 1;
    for (std::size_t i = 0; i < n; i++)
        p[i] = static_cast<float>((s = s * 1664525u + 1013904223u) >> 9) * 0x1p-22f - 1;
    return p;
}

double peak_flops(double (*probe)(std::int64_t)) {
    double done = probe(1000);
    double t = best([&](int, int) { probe(2000000); });
    return done * 2000 * threads / t;
}

/// kind: 'f' y = x·Wᵀ, 'x' dx = dy·W, 'w' dW = dyᵀ·x, 'r' y = x·Wᵀ in reading, with W of f16 or bf16.
void product(const KernelTable<float>& k, double peak, char kind, std::int64_t m, std::int64_t n,
             std::int64_t kk, DType type) {
    float* a = random_floats(static_cast<std::size_t>(m * kk));
    float* b32 = random_floats(static_cast<std::size_t>(n * kk));
    void* b = aligned(static_cast<std::size_t>(n * kk * 4));
    k.store(n * kk, type, b32, b);
    float* c = static_cast<float*>(aligned(static_cast<std::size_t>(m * n * 4)));
    Gemm<float> g;
    g.m = m, g.n = n, g.k = kk;
    g.a = {a, DType::f32, kk, 1};
    g.b = {b, type, 1, kk};
    if (kind == 'x') g.b = {b, type, n, 1};
    if (kind == 'w') g.a = {a, DType::f32, 1, m}, g.b = {b, type, n, 1}, g.accumulate = true;
    g.c = c, g.c_row = n, g.m_end = m, g.n_end = n;
    std::vector<void*> work;
    for (int i = 0; i < threads; i++) work.push_back(aligned(k.gemm_workspace));
    const auto run = kind == 'r' ? k.block.halves : k.gemm;
    double t = best([&](int thread, int count) {
        Gemm<float> mine = gemm_share(k, g, thread, count);
        if (mine.m_begin < mine.m_end && mine.n_begin < mine.n_end)
            run(mine, work[static_cast<std::size_t>(thread)]);
    });
    double rate = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(kk) / t;
    std::printf("%-7s gemm %c [%5ld,%5ld]x[%5ld,%5ld] %-4s %8.1f GFLOP/s %5.1f %%\n", k.name, kind, m, kk, kk,
                n, std::string(info(type).name).c_str(), rate * 1e-9, 100 * rate / peak);
    std::fflush(stdout);
    for (void* p : work) std::free(p);
    std::free(a), std::free(b32), std::free(b), std::free(c);
}

/// Products of training in bf16: as above, of an activation that is stored in bf16 ('f': x, 'w': x) and
/// gradients in f32; `narrow`: C is stored in bf16 ('f' alone).
void rounded_product(const KernelTable<float>& k, double peak, char kind, std::int64_t m, std::int64_t n,
                     std::int64_t kk, bool narrow) {
    const auto of = [](std::int64_t count) { return random_floats(static_cast<std::size_t>(count)); };
    float *a = of(m * kk), *b = of(n * kk), *c = of(m * n);
    Gemm<float> g;
    g.m = m, g.n = n, g.k = kk;
    g.a = {a, DType::f32, kk, 1};
    g.b = {b, DType::f32, 1, kk};
    if (kind == 'f') k.store(m * kk, DType::bf16, a, a), g.a.type = DType::bf16;
    if (kind == 'x') g.b = {b, DType::f32, n, 1};
    if (kind == 'w') {
        k.store(n * kk, DType::bf16, b, b);
        g.a = {a, DType::f32, 1, m}, g.b = {b, DType::bf16, n, 1}, g.accumulate = true;
    }
    g.c = c, g.c_row = n, g.m_end = m, g.n_end = n;
    if (narrow) g.bf16 = reinterpret_cast<std::uint16_t*>(c);
    std::vector<void*> work;
    for (int i = 0; i < threads; i++) work.push_back(aligned(k.narrow.workspace));
    double t = best([&](int thread, int count) {
        Gemm<float> mine = gemm_share(k.narrow.cut, g, thread, count);
        if (mine.m_begin < mine.m_end && mine.n_begin < mine.n_end)
            k.narrow.rounded(mine, work[static_cast<std::size_t>(thread)]);
    });
    double rate = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(kk) / t;
    std::printf("%-7s bf16 %c [%5ld,%5ld]x[%5ld,%5ld] to %-4s %8.1f GFLOP/s %5.1f %%\n", k.name, kind, m, kk,
                kk, n, narrow ? "bf16" : "f32", rate * 1e-9, 100 * rate / peak);
    std::fflush(stdout);
    for (void* p : work) std::free(p);
    std::free(a), std::free(b), std::free(c);
}

void decode(const KernelTable<float>& k, double peak, std::int64_t m, std::int64_t n, std::int64_t kk,
            DType type) {
    float* a = random_floats(static_cast<std::size_t>(m * kk));
    std::size_t bytes = static_cast<std::size_t>(n * kk * info(type).bytes);
    void* b = aligned(bytes);
    float* c = static_cast<float*>(aligned(static_cast<std::size_t>(m * n * 4)));
    Gemm<float> g;
    g.m = m, g.n = n, g.k = kk;
    g.a = {a, DType::f32, kk, 1}, g.b = {b, type, 1, kk};
    g.c = c, g.c_row = n, g.m_end = m;
    double t = best([&](int thread, int count) {
        Gemm<float> mine = g;
        mine.n_begin = n * thread / count, mine.n_end = n * (thread + 1) / count;
        k.gemv(mine);
    });
    std::printf("%-7s gemv [%ld,%ld]x[%ld,%ld] %-4s %8.1f GB/s %5.1f %%\n", k.name, m, kk, kk, n,
                std::string(info(type).name).c_str(), static_cast<double>(bytes) / t * 1e-9,
                100 * static_cast<double>(bytes) / t / peak);
    std::free(a), std::free(b), std::free(c);
}

/// Rows of activations with weights of block types that are in cache: the products of writing and of reading.
void quantized(const KernelTable<float>& k, DType type) {
    constexpr std::int64_t n = 384, kk = 2048, most = 16;
    const std::size_t row = static_cast<std::size_t>(kk / info(type).block * info(type).bytes);
    float *a = random_floats(most * kk), *wide = random_floats(n * kk);
    auto* w = static_cast<char*>(aligned(n * row));
    auto* c = static_cast<float*>(aligned(most * n * 4));
    void* space = aligned(k.gemm_workspace);
    k.quantize(n * kk, type, wide, nullptr, w);
    Gemm<float> g;
    g.n = g.n_end = n, g.k = kk;
    g.a = {a, DType::f32, kk, 1}, g.b = {w, type, 1, kk};
    g.c = c, g.c_row = n;
    std::printf("%-12s %-6s of weights, GB/s, writing", k.name, std::string(info(type).name).c_str());
    for (const auto product : {k.block.rows, k.block.panels}) {
        if (product == k.block.panels) std::printf("; reading");
        for (std::int64_t m : {1, 2, 4, 8, 16}) {
            g.m = g.m_end = m;
            const double t = best([&](int, int) { product(g, space); }, 0.1);
            std::printf(" %ld: %.1f", m, static_cast<double>(n * row) / t * 1e-9);
        }
    }
    std::printf("\n");
    std::free(a), std::free(wide), std::free(w), std::free(c), std::free(space);
}

/// narrow: the products in bf16, whose operands are stored so.
void attend(const KernelTable<float>& k, double peak, std::int64_t t, std::int64_t heads, std::int64_t d,
            std::int64_t batch, std::int64_t cached, bool narrow = false) {
    std::int64_t width = heads * d, keys = cached + t;
    auto values = [&](std::int64_t rows) {
        return random_floats(static_cast<std::size_t>(rows * width * batch));
    };
    float *q = values(t), *key = values(keys), *v = values(keys), *out = values(t), *dout = values(t),
          *dq = values(t), *dk = values(keys), *dv = values(keys);
    float* lse = random_floats(static_cast<std::size_t>(t * heads * batch));
    std::vector<void*> work;
    for (int i = 0; i < threads; i++)
        work.push_back(aligned(narrow ? k.narrow.workspace : k.attention_workspace));
    const std::int64_t element = narrow ? 2 : 4;
    for (float* p : {q, key, v})
        if (narrow) k.store((p == q ? t : keys) * width * batch, DType::bf16, p, p);
    auto of = [&](std::int64_t b) {
        Attention<float> f;
        f.rows = t, f.cached = cached, f.keys = keys, f.heads = f.kv_heads = heads, f.head_width = d;
        f.scale = 0.125f;
        auto at = [&](float* from, std::int64_t rows) {
            return reinterpret_cast<float*>(reinterpret_cast<char*>(from) + b * rows * width * element);
        };
        f.q = at(q, t), f.k = at(key, keys), f.v = at(v, keys), f.out = at(out, t);
        if (narrow) f.stored = DType::bf16;
        f.q_row = f.k_row = f.v_row = f.out_row = width;
        f.q_head = f.k_head = f.v_head = d;
        f.lse = lse + b * heads * t;
        return f;
    };
    double seconds = best([&](int thread, int count) {
        for (std::int64_t task = thread; task < heads * batch; task += count) {
            auto* kernel = t == 1 ? k.attention_decode : narrow ? k.narrow.attention : k.attention;
            kernel(of(task / heads), task % heads, 0, t, work[static_cast<std::size_t>(thread)]);
        }
    });
    double pairs =
        static_cast<double>(heads * batch) * (static_cast<double>(t) * (static_cast<double>(t) + 1) / 2 +
                                              static_cast<double>(t) * static_cast<double>(cached));
    double flops = 4.0 * static_cast<double>(d) * pairs;
    if (narrow) std::printf("bf16 ");
    std::printf("%-7s attention T %ld cached %ld D %ld forward  %8.3f ms %8.1f GFLOP/s %5.1f %%", k.name, t,
                cached, d, seconds * 1e3, flops / seconds * 1e-9, 100 * flops / seconds / peak);
    if (t == 1) std::printf("  %.1f GB/s", static_cast<double>(batch * keys * width) * 8 / seconds * 1e-9);
    std::printf("\n");
    if (cached == 0 && t > 1) {
        seconds = best([&](int thread, int count) {
            for (std::int64_t task = thread; task < heads * batch; task += count) {
                std::int64_t b = task / heads;
                AttentionBackward<float> back;
                back.forward = of(b);
                back.dout = dout + b * t * width;
                back.dq = dq + b * t * width, back.dk = dk + b * t * width, back.dv = dv + b * t * width;
                auto* kernel = narrow ? k.narrow.attention_backward : k.attention_backward;
                kernel(back, task % heads, work[static_cast<std::size_t>(thread)]);
            }
        });
        flops = 10.0 * static_cast<double>(d) * pairs;
        std::printf("%-7s attention T %ld cached %ld D %ld backward %8.3f ms %8.1f GFLOP/s %5.1f %%\n",
                    k.name, t, cached, d, seconds * 1e3, flops / seconds * 1e-9,
                    100 * flops / seconds / peak);
    }
    for (void* p : work) std::free(p);
    for (float* p : {q, key, v, out, dout, dq, dk, dv, lse}) std::free(p);
}

/// Values per second of the kernels that touch each value once.
void elementwise(const KernelTable<float>& k) {
    constexpr std::int64_t n = 1 << 14;
    float *x = random_floats(n), *y = random_floats(n), *z = random_floats(n), *w = random_floats(n);
    auto print = [&](const char* name, double t) {
        std::printf("%-7s %-20s %6.3f ns a value\n", k.name, name, t * 1e9 / n);
    };
    for (auto [kind, name] : {std::pair{Activation::gelu, "gelu"},
                              {Activation::gelu_tanh, "gelu_tanh"},
                              {Activation::silu, "silu"}}) {
        print(name, best([&](int, int) { k.activation(kind, n, x, y); }, 0.05));
        print("  backward", best([&](int, int) { k.activation_backward(kind, n, x, y, z, false); }, 0.05));
    }
    print("layer_norm 768",
          best([&](int, int) { k.layer_norm(n / 768, 768, x, y, w, 1e-5f, z, nullptr); }, 0.05));
    print("cross_entropy", best([&](int, int) { k.cross_entropy(n, 7, 1e-3f, true, x); }, 0.05));
    Update<float> o;
    o.lr = 1e-3f, o.beta1 = 0.9f, o.beta2 = 0.95f, o.epsilon = 1e-8f, o.weight_decay = 0.1f;
    o.correction1 = 0.1f, o.correction2 = 0.05f;
    print("adamw", best([&](int, int) { k.update(n, o, w, x, y, z); }, 0.05));
    for (float* p : {x, y, z, w}) std::free(p);
}

}  // namespace

int main(int argc, char** argv) {
    const char* only = argc > 2 ? argv[2] : "gvae";
    threads = argc > 3 ? std::atoi(argv[3]) : omp_get_max_threads();
    if (argc > 1 && !select_kernels(argv[1]))
        return std::printf("no tier %s here (%s)\n", argv[1], built_kernels()), 2;
    const KernelTable<float>& k = kernels();
    auto wants = [&](char c) { return std::strchr(only, c) != nullptr; };
    double peak = peak_flops(k.fma_probe);
    std::printf("%s, %d threads: multiply-add peak %.1f GFLOP/s\n", k.name, threads, peak * 1e-9);
    if (wants('g')) {
        for (DType type : {DType::f32, DType::f16}) product(k, peak, 'f', 2048, 2048, 2048, type);
        product(k, peak, 'f', 2048, 3072, 768, DType::f32);
        product(k, peak, 'x', 2048, 768, 3072, DType::f32);
        product(k, peak, 'w', 3072, 768, 2048, DType::f32);
        product(k, peak, 'w', 768, 3072, 256, DType::f32);
        product(k, peak, 'f', 256, 50257, 768, DType::f32);
        product(k, peak, 'x', 256, 768, 50257, DType::f32);
        product(k, peak, 'w', 50257, 768, 256, DType::f32);
        product(k, peak, 'f', 768, 512, 128, DType::f32);
        product(k, peak, 'f', 768, 128, 512, DType::f32);
        product(k, peak, 'f', 768, 65, 128, DType::f32);
        product(k, peak, 'w', 128, 128, 768, DType::f32);
        product(k, peak, 'w', 512, 128, 768, DType::f32);
        product(k, peak, 'f', 32, 768, 768, DType::f16);
        product(k, peak, 'f', 16, 3072, 768, DType::f16);
    }
    if (wants('b') && k.narrow.rounded) {
        const double bf16 = peak_flops(std::strcmp(k.name, "amx") == 0 ? k.tile_probe : k.bf16_probe);
        std::printf("%s, %d threads: bf16 peak %.1f GFLOP/s\n", k.name, threads, bf16 * 1e-9);
        for (std::int64_t rows : {4096, 2048}) {
            rounded_product(k, bf16, 'f', rows, 2304, 768, true);
            rounded_product(k, bf16, 'f', rows, 3072, 768, true);
            rounded_product(k, bf16, 'f', rows, 768, 3072, false);
            rounded_product(k, bf16, 'x', rows, 768, 3072, false);
            rounded_product(k, bf16, 'x', rows, 3072, 768, false);
            rounded_product(k, bf16, 'w', 3072, 768, rows, false);
            rounded_product(k, bf16, 'w', 768, 3072, rows, false);
        }
        rounded_product(k, bf16, 'f', 1024, 50257, 768, false);
        rounded_product(k, bf16, 'x', 1024, 768, 50257, false);
        rounded_product(k, bf16, 'w', 50257, 768, 1024, false);
        for (std::int64_t width : {288, 512}) {
            rounded_product(k, bf16, 'f', 2048, 4 * width, width, true);
            rounded_product(k, bf16, 'f', 2048, width, 4 * width, false);
            rounded_product(k, bf16, 'x', 2048, width, 4 * width, false);
            rounded_product(k, bf16, 'w', 4 * width, width, 2048, false);
            rounded_product(k, bf16, 'w', width, width, 2048, false);
        }
    }
    if (wants('v')) {
        std::int64_t n = std::int64_t{1} << 26;
        float* x = random_floats(static_cast<std::size_t>(n));
        double bytes = static_cast<double>(n) * 4;
        double rate = bytes / best([&](int i, int count) { k.read_probe(n / count, x + n / count * i, 4); });
        std::free(x);
        std::printf("%s, %d threads: memory read peak %.1f GB/s\n", k.name, threads, rate * 1e-9);
        for (DType type : {DType::f32, DType::f16, DType::bf16}) decode(k, rate, 1, 50257, 768, type);
        for (std::int64_t m : {2, 4, 8}) decode(k, rate, m, 50257, 768, DType::f16);
        decode(k, rate, 1, 768, 3072, DType::f16);
    }
    if (wants('q') && k.block.halves)
        for (const auto& [n, kk] :
             {std::pair{2048, 2048}, {5632, 2048}, {2048, 5632}, {3072, 768}, {1536, 576}})
            for (char kind : {'f', 'r'}) product(k, peak, kind, 512, n, kk, DType::f16);
    if (wants('q') && k.block.panels)
        for (const DTypeInfo& type : dtypes())
            if (type.block > 1 && type.is_weight) quantized(k, type.type);
    if (wants('a')) {
        attend(k, peak, 64, 4, 32, 12, 0);
        attend(k, peak, 256, 12, 64, 8, 0);
        attend(k, peak, 1024, 12, 64, 2, 0);
        attend(k, peak, 512, 12, 64, 4, 0);
        if (k.narrow.attention)
            for (std::int64_t t : {256, 512, 1024}) attend(k, peak, t, 12, 64, 2048 / t, 0, true);
        attend(k, peak, 1, 12, 64, 1, 1000);
    }
    if (wants('e')) elementwise(k);
}
