// Attention with its products in bf16, on matrix units, by dot products of pairs and on the emulation of
// both: nearly that of f32, and a query's bits do not depend on the queries beside it.
#include <doctest/doctest.h>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/bf16/dot_attention.inl"
#include "kernels/bf16/tile_attention.inl"

#include "emulated_dots.h"
#include "emulated_tiles.h"
#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Forward = void (*)(const Attention<float>&, std::int64_t, std::int64_t, std::int64_t, void*);
using Backward = void (*)(const AttentionBackward<float>&, std::int64_t, void*);
struct Kernel {
    Forward forward;
    Backward backward;
    std::size_t workspace;
};

struct Case {
    std::int64_t rows, heads, kv_heads, width, window = 0;
    bool causal = true;
    float softcap = 0;
    std::int64_t globals = 0;
    float dropout = 0;
};
constexpr Case cases[] = {{1, 1, 1, 8},
                          {5, 2, 1, 16},
                          {33, 2, 2, 33},
                          {65, 1, 1, 64},
                          {130, 2, 1, 24, 40},
                          {70, 1, 1, 20, 0, false},
                          {140, 1, 1, 32, 20, true, 3, 2},
                          {200, 2, 2, 24, 10, false},
                          {210, 1, 1, 32, 30, false, 3, 70},
                          {300, 2, 1, 24},
                          {530, 1, 1, 16, 0, false},
                          {33, 2, 2, 33, 0, true, 0, 0, 0.25f},
                          {300, 2, 1, 24, 0, false, 0, 0, 0.25f},
                          {210, 1, 1, 32, 30, true, 3, 70, 0.25f}};

/// One sequence's values and gradients, of a kernel.
struct Sequence {
    Case is;
    Values<float> q, k, v, dout, out, lse, dq, dk, dv;
    AttentionBackward<float> b;

    explicit Sequence(const Case& c)
        : is(c),
          q(c.rows * c.heads * c.width, 1, 1),
          k(c.rows * c.kv_heads * c.width, 2),
          v(c.rows * c.kv_heads * c.width, 3),
          dout(c.rows * c.heads * c.width, 4),
          out(dout.size()),
          lse(c.heads * c.rows),
          dq(q.size()),
          dk(k.size()),
          dv(v.size()) {
        Attention<float>& f = b.forward;
        f.rows = f.keys = c.rows, f.heads = c.heads, f.kv_heads = c.kv_heads, f.head_width = c.width;
        f.window = c.window, f.causal = c.causal, f.softcap = c.softcap, f.globals = c.globals;
        f.dropout = {7, 8, 9, static_cast<std::uint32_t>(c.dropout * 65536), 1 / (1 - c.dropout)};
        f.scale = 2 / std::sqrt(static_cast<float>(c.width));
        f.q = q.data(), f.k = k.data(), f.v = v.data(), f.out = out.data(), f.lse = lse.data();
        f.q_row = f.out_row = c.heads * c.width, f.k_row = f.v_row = c.kv_heads * c.width;
        f.q_head = f.k_head = f.v_head = c.width;
        b.dout = dout.data(), b.dq = dq.data(), b.dk = dk.data(), b.dv = dv.data();
    }
    Sequence(const Sequence&) = delete;

    void forward(const Kernel& kernel, std::int64_t step) {
        Workspace workspace(kernel.workspace);
        for (std::int64_t h = 0; h < is.heads; h++)
            for (std::int64_t i = 0; i < is.rows; i += step)
                kernel.forward(b.forward, h, i, std::min(i + step, is.rows), workspace.data());
    }
    void backward(const Kernel& kernel) {
        Workspace workspace(kernel.workspace);
        for (std::int64_t h = 0; h < is.kv_heads; h++) kernel.backward(b, h, workspace.data());
    }
    void run(const Kernel& kernel, std::int64_t step) {
        forward(kernel, step);
        backward(kernel);
    }
};

}  // namespace

namespace {

template <class Units, std::int64_t room = linnet::query_room>
constexpr Kernel kernel_of = {linnet::bf16_attention<Units>, linnet::bf16_attention_backward<Units, room>,
                              sizeof(linnet::BF16Panels)};

/// The emulated ones first, then those of this machine.
std::vector<Kernel> narrow_kernels() {
    std::vector<Kernel> kernels = {kernel_of<TileUnits<EmulatedTiles>>, kernel_of<DotUnits<EmulatedDots>>};
    for (const KernelTable<float>* table : usable_kernels())
        if (table->narrow.attention)
            kernels.push_back(
                {table->narrow.attention, table->narrow.attention_backward, table->narrow.workspace});
    return kernels;
}

}  // namespace

TEST_CASE("attention in bf16 is nearly that of f32, forwards and backwards") {
    const KernelTable<float>& scalar = **usable_kernels().begin();
    const Kernel exact{scalar.attention, scalar.attention_backward, scalar.attention_workspace};
    for (const Kernel& kernel : narrow_kernels())
        for (const Case& c : cases) {
            Sequence expected(c), got(c), parts(c);
            expected.run(exact, c.rows), got.run(kernel, scalar.attention_block), parts.run(kernel, 5);
            INFO("T " << c.rows << " D " << c.width);
            constexpr double allowed = 0.01;
            CHECK(relative_error(got.out, expected.out) < allowed);
            CHECK(distance(got.lse, expected.lse, got.lse.size()) < allowed);
            CHECK(relative_error(got.dv, expected.dv) < allowed);
            if (c.rows > 1) {  // of one key, they are 0 but for rounding
                CHECK(relative_error(got.dq, expected.dq) < 2 * allowed);
                CHECK(relative_error(got.dk, expected.dk) < 2 * allowed);
            }
            CHECK(same_bits(got.out, parts.out, got.out.size()));
            CHECK(same_bits(got.lse, parts.lse, got.lse.size()));
        }
}

TEST_CASE(
    "attention of numbers in two parts is that of f32 but for one part in 100 000, on the emulation too") {
    const KernelTable<float>& scalar = **usable_kernels().begin();
    const Kernel exact{scalar.attention, nullptr, scalar.attention_workspace};
    std::vector<Kernel> kernels = {{linnet::bf16_attention<TileUnits<EmulatedTiles, true>>, nullptr,
                                    sizeof(linnet::BF16Attention<true>)}};
    for (const KernelTable<float>* table : usable_kernels())
        if (table->narrow.attention_split)
            kernels.push_back(
                {table->narrow.attention_split, nullptr, table->narrow.attention_split_workspace});
    for (const Case& c : cases) {
        if (c.dropout > 0) continue;  // of training alone
        Sequence expected(c);
        expected.forward(exact, c.rows);
        for (const Kernel& kernel : kernels) {
            Sequence got(c), parts(c);
            got.forward(kernel, scalar.attention_block), parts.forward(kernel, 5);
            INFO("T " << c.rows << " D " << c.width);
            CHECK(relative_error(got.out, expected.out) < 1e-5);
            CHECK(distance(got.lse, expected.lse, got.lse.size()) < 1e-5);
            CHECK(same_bits(got.out, parts.out, got.out.size()));
            CHECK(same_bits(got.lse, parts.lse, got.lse.size()));
        }
    }
}

TEST_CASE("attention in bf16 gives the same bits where its values are stored so") {
    const KernelTable<float>& scalar = **usable_kernels().begin();
    auto store = [&](const Values<float>& wide) {
        std::vector<std::uint16_t> narrow(static_cast<std::size_t>(wide.size()));
        scalar.store(wide.size(), DType::bf16, wide.data(), narrow.data());
        scalar.load(wide.size(), DType::bf16, narrow.data(), wide.data());
        return narrow;
    };
    auto address = [](std::vector<std::uint16_t>& v) { return reinterpret_cast<float*>(v.data()); };
    for (const Kernel& kernel : narrow_kernels())
        for (const Case& c : cases) {
            Sequence wide(c), got(c);
            std::vector<std::uint16_t> q = store(wide.q), k = store(wide.k), v = store(wide.v);
            std::vector<std::uint16_t> out(q.size());
            Attention<float>& f = got.b.forward;
            f.stored = DType::bf16, f.k = k.data(), f.v = v.data(), f.q = address(q), f.out = address(out);
            got.forward(kernel, scalar.attention_block), wide.forward(kernel, scalar.attention_block);
            INFO("T " << c.rows << " D " << c.width);
            CHECK(out == store(wide.out));
            CHECK(same_bits(got.lse, wide.lse, wide.lse.size()));
            got.backward(kernel), wide.backward(kernel);
            CHECK(same_bits(got.dq, wide.dq, wide.dq.size()));
            CHECK(same_bits(got.dk, wide.dk, wide.dk.size()));
            CHECK(same_bits(got.dv, wide.dv, wide.dv.size()));
        }
}

TEST_CASE("attention's backward in bf16 gives the same bits where not all queries find room") {
    constexpr std::int64_t one_block = 8 * 1024;
    const std::pair<Kernel, Kernel> each[] = {
        {kernel_of<TileUnits<EmulatedTiles>>, kernel_of<TileUnits<EmulatedTiles>, one_block>},
        {kernel_of<DotUnits<EmulatedDots>>, kernel_of<DotUnits<EmulatedDots>, one_block>}};
    for (const auto& [whole, one] : each) {
        Sequence a({130, 2, 1, 24, 40}), b({130, 2, 1, 24, 40});
        for (bool again : {false, true}) {
            for (Sequence* s : {&a, &b}) s->b.accumulate_q = s->b.accumulate_k = s->b.accumulate_v = again;
            a.run(whole, 130), b.run(one, 130);
            CHECK(same_bits(a.dq, b.dq, a.dq.size()));
            CHECK(same_bits(a.dk, b.dk, a.dk.size()));
            CHECK(same_bits(a.dv, b.dv, a.dv.size()));
        }
    }
}

TEST_CASE("attention's backward in bf16 adds to the gradients that stand there, or writes over them") {
    for (const Kernel& kernel : narrow_kernels()) {
        Sequence once({70, 2, 1, 24}), twice({70, 2, 1, 24});
        for (Values<float>* v : {&once.dq, &once.dk, &once.dv}) std::fill_n(v->data(), v->size(), 1e9f);
        once.run(kernel, 128), twice.run(kernel, 128);
        twice.b.accumulate_q = twice.b.accumulate_k = twice.b.accumulate_v = true;
        twice.backward(kernel);
        for (auto [one, two] : {std::pair(&once.dq, &twice.dq), std::pair(&once.dk, &twice.dk),
                                std::pair(&once.dv, &twice.dv)}) {
            for (std::int64_t i = 0; i < one->size(); i++) one->data()[i] *= 2;
            CHECK(relative_error(*two, *one) < 1e-6);
        }
    }
}

TEST_CASE("attention by the machine's dot products of pairs gives the emulation's products") {
    // Their order is the same; what differs is the exponential, which the plain primitives round elsewhere.
    const Kernel twin = kernel_of<DotUnits<EmulatedDots>>;
    for (const KernelTable<float>* table : usable_kernels()) {
        if (!table->narrow.attention || table->narrow.split) continue;
        const Kernel kernel{table->narrow.attention, table->narrow.attention_backward,
                            table->narrow.workspace};
        for (const Case& c : cases) {
            Sequence a(c), b(c);
            a.run(twin, 128), b.run(kernel, 128);
            INFO("T " << c.rows << " D " << c.width);
            constexpr double allowed = 1e-3;
            CHECK(relative_error(b.out, a.out) < allowed);
            CHECK(relative_error(b.dv, a.dv) < allowed);
            if (c.rows == 1) continue;
            CHECK(relative_error(b.dq, a.dq) < allowed);
            CHECK(relative_error(b.dk, a.dk) < allowed);
        }
    }
}
