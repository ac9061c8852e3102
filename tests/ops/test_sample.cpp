// Tokens drawn from logits, whether they are others, and their places among the rest.
#include "ops/sample.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"

using namespace linnet;

namespace {

constexpr std::int64_t rows = 7, width = 3, classes = 21;

/// Rows of a model with random weights, and numbers to draw by.
template <class Real>
struct Guesses {
    std::vector<Real> x, w, bias, scratch;
    std::vector<std::int32_t> draws, out;
    std::vector<std::byte> workspace;
    Attributes none;
    Batch batch;

    Guesses() : draws(rows), out(rows) {
        Rng rng(5, 0);
        std::uint64_t draw = 0;
        for (auto [v, n] : {std::pair(&x, rows * width), {&w, classes * width}, {&bias, classes}})
            for (std::int64_t i = 0; i < n; i++) v->push_back(static_cast<Real>(rng.normal(draw++)));
        const std::vector<std::int64_t> in{width};
        const std::vector<Shape> shapes{Shape(classes, width), Shape(classes)};
        scratch.resize(static_cast<std::size_t>(sample_op.scratch({in, shapes, none}, rows)));
        workspace.resize(kernel_workspace(kernels_for<Real>()) + 4096);
    }

    std::vector<std::int32_t> drawn(int parts) {
        Call<Real> call;
        call.kernels = &kernels_for<Real>();
        call.batch = &batch, call.attributes = &none;
        call.rows = rows, call.width = 1;
        call.ids = draws;
        call.in[0] = x.data(), call.in_type[0] = kernel_type<Real>, call.in_width[0] = width;
        call.parameter[0] = {w.data(), kernel_type<Real>, Shape(classes, width)};
        call.parameter[1] = {bias.data(), kernel_type<Real>, Shape(classes)};
        call.out = reinterpret_cast<Real*>(out.data());
        call.scratch = scratch.data();
        auto at = reinterpret_cast<std::uintptr_t>(workspace.data());
        call.workspace = reinterpret_cast<void*>((at + 63) / 64 * 64);
        for (call.round = 0; call.round < sample_op.forward_rounds.of(call); call.round++)
            for (int part = parts - 1; part >= 0; part--) {
                call.worker = {part, parts};
                sample_op.forward(call);
            }
        return out;
    }

    /// Softmax of the row's logits, as sums up to each class.
    std::vector<double> sums(std::int64_t row) const {
        std::vector<double> sums;
        double all = 0;
        for (std::int64_t v = 0; v < classes; v++) {
            double logit = static_cast<double>(bias[static_cast<std::size_t>(v)]);
            for (std::int64_t i = 0; i < width; i++)
                logit += static_cast<double>(x[static_cast<std::size_t>(row * width + i)]) *
                         static_cast<double>(w[static_cast<std::size_t>(v * width + i)]);
            sums.push_back(all += std::exp(logit));
        }
        for (double& sum : sums) sum /= all;
        return sums;
    }
};

}  // namespace

TEST_CASE_TEMPLATE("tokens are drawn as often as they are likely, by the row's number alone", Real, float,
                   double) {
    Guesses<Real> guesses;
    constexpr std::int64_t steps = 4000;
    std::vector<std::vector<std::int64_t>> counts(rows, std::vector<std::int64_t>(classes));
    for (std::int64_t i = 0; i < steps; i++) {  // every number is as likely
        for (std::int32_t& draw : guesses.draws)
            draw = static_cast<std::int32_t>((2 * i + 1) * (std::int64_t{1} << 30) / steps);
        const std::vector<std::int32_t> drawn = guesses.drawn(1);
        for (std::size_t r = 0; r < rows; r++) counts[r][static_cast<std::size_t>(drawn[r])]++;
    }
    for (std::int64_t r = 0; r < rows; r++) {
        const std::vector<double> sums = guesses.sums(r);
        double before = 0;
        for (std::size_t v = 0; v < classes; v++) {
            const double share = static_cast<double>(counts[static_cast<std::size_t>(r)][v]) / steps;
            CHECK(std::abs(share - (sums[v] - before)) < 2.0 / steps);
            before = sums[v];
        }
    }
    // The last number draws a class that is possible, whatever rounding leaves of the sum.
    guesses.bias.back() = static_cast<Real>(-200);
    guesses.draws.assign(rows, 0x7fffffff);
    for (const std::int32_t drawn : guesses.drawn(1)) CHECK(drawn < classes - 1);
    guesses.draws = {0, 1 << 20, 1 << 28, 1 << 29, 1 << 30, 3 << 29, 0x7fffffff};
    const std::vector<std::int32_t> alone = guesses.drawn(1);
    for (int parts : {2, 3, 5}) CHECK(guesses.drawn(parts) == alone);
}

TEST_CASE("a drawn token that is the one that stood there is no other, and each goes to its place") {
    Attributes none;
    std::vector<std::int32_t> drawn{4, 9, 2}, stood{4, 8, 2}, out(3);
    Call<float> call;
    call.attributes = &none;
    call.rows = 3, call.ids = stood;
    call.in[0] = reinterpret_cast<const float*>(drawn.data());
    call.out = reinterpret_cast<float*>(out.data());
    differ_op.forward(call);
    CHECK(out == std::vector<std::int32_t>{0, 1, 0});
    std::vector<std::int32_t> given{7, -1, 0, -3, -2, 5};
    out.resize(given.size());
    call.rows = 6, call.ids = given;
    call.out = reinterpret_cast<float*>(out.data());
    for (int part : {1, 0}) {
        call.worker = {part, 2};
        insert_op.forward(call);
    }
    CHECK(out == std::vector<std::int32_t>{7, 4, 0, 2, 9, 5});
}
