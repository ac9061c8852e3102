// The loss and its gradients in bf16: nearly those of f32, whatever the vocabulary's width, and the same bits
// for any number of threads.
#include <doctest/doctest.h>

#include <vector>

#include "../kernels/kernel_support.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "ops/op.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// Element (line, place) of an operand, rounded to bf16.
float rounded(const Operand& x, std::int64_t line, std::int64_t place) {
    const std::int64_t at = line * x.row + place * x.col;
    return bf16_to_f32(x.type == DType::bf16 ? static_cast<const std::uint16_t*>(x.data)[at]
                                             : f32_to_bf16(static_cast<const float*>(x.data)[at]));
}

/// NarrowProducts::rounded, as plainly as can be.
void plain_product(const Gemm<float>& g, void*) {
    for (std::int64_t i = g.m_begin; i < g.m_end; i++)
        for (std::int64_t j = g.n_begin; j < g.n_end; j++) {
            float sum = 0;
            for (std::int64_t k = 0; k < g.k; k++) sum += rounded(g.a, i, k) * rounded(g.b, k, j);
            if (g.bias) sum += g.bias[j];
            const std::int64_t at = i * g.c_row + j;
            if (g.bf16)
                g.bf16[at] = f32_to_bf16(sum);
            else
                g.c[at] = g.accumulate ? g.c[at] + sum : sum;
        }
}

/// The scalar table with that, and those of this machine with such products.
std::vector<KernelTable<float>> narrow_tables() {
    std::vector<KernelTable<float>> tables = {**usable_kernels().begin()};
    tables[0].narrow.rounded = plain_product;
    tables[0].narrow.rounded_longest = 4096;
    tables[0].narrow.cut = {32, 32, 8, 8};
    for (const KernelTable<float>* table : usable_kernels())
        if (table->narrow.rounded) tables.push_back(*table);
    return tables;
}

constexpr std::int64_t rows = 70, width = 40;

struct Loss {
    std::int64_t vocabulary;
    Values<float> x, w, bias, out, dx, dw;
    Batch batch;

    explicit Loss(std::int64_t v)
        : vocabulary(v),
          x(rows * width, 1),
          w(v * width, 2),
          bias(v, 3),
          out(rows),
          dx(rows * width),
          dw(v * width) {
        for (std::int64_t r = 0; r < rows; r++)
            batch.targets.push_back(r % 9 == 4 ? -1 : static_cast<std::int32_t>(r * 7 % v));
        batch.loss_scale = 1.0 / rows;
        batch.training = true;
    }

    /// Backward, which makes the losses too, by so many threads in turn.
    void run(const KernelTable<float>& table, ProductKernel product, const Attributes& attributes,
             int threads) {
        const std::int64_t inputs[] = {width};
        const Shape parameters[] = {Shape(vocabulary, width), Shape(vocabulary)};
        const NodeShape shape{inputs, parameters, attributes};
        Values<float> scratch(cross_entropy_op.scratch(shape, rows));
        Workspace workspace(kernel_workspace(table));
        Call<float> call;
        call.kernels = &table, call.product = product, call.attributes = &attributes, call.batch = &batch;
        call.rows = rows, call.width = 1, call.ids = batch.targets;
        call.in[0] = x.data(), call.in_type[0] = DType::f32, call.in_width[0] = width;
        call.parameter[0] = {w.data(), DType::f32, Shape(vocabulary, width)};
        call.parameter[1] = {bias.data(), DType::f32, Shape(vocabulary)};
        call.parameter_grad[0] = dw.data(), call.din[0] = dx.data(), call.out = out.data();
        call.scratch = scratch.data(), call.workspace = workspace.data();
        for (call.round = 0; call.round < cross_entropy_op.backward_rounds.of(call); call.round++)
            for (int t = 0; t < threads; t++) {
                call.worker.index = t, call.worker.count = threads;
                cross_entropy_op.backward(call);
            }
    }
};

}  // namespace

TEST_CASE("the loss and its gradients in bf16 are nearly those of f32") {
    const Attributes each[] = {{}, {{"scale", 0.6}, {"softcap", 1.5}}, {{"smoothing", 0.1}}};
    for (const KernelTable<float>& table : narrow_tables())
        for (const Attributes& attributes : each)
            for (std::int64_t vocabulary : {1, 5, 33, 100, 256}) {
                Loss f32(vocabulary), bf16(vocabulary), parts(vocabulary);
                f32.run(table, ProductKernel::panels, attributes, 1);
                bf16.run(table, ProductKernel::bf16, attributes, 1);
                parts.run(table, ProductKernel::bf16, attributes, 3);
                INFO(table.name << ", V " << vocabulary << " " << attributes.text());
                CHECK(distance(bf16.out, f32.out, rows) < 0.01);
                CHECK(bf16.out[4] == 0);
                CHECK(bf16.dx[4 * width] == 0);
                if (vocabulary > 1) {  // of one class they are 0
                    CHECK(relative_error(bf16.dx, f32.dx) < 0.02);
                    CHECK(relative_error(bf16.dw, f32.dw) < 0.02);
                }
                CHECK(same_bits(parts.out, bf16.out, rows));
                CHECK(same_bits(parts.dx, bf16.dx, bf16.dx.size()));
                CHECK(same_bits(parts.dw, bf16.dw, bf16.dw.size()));
            }
}
