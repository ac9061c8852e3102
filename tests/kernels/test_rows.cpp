// Kernels over rows and single values, each against plain double code, and its backward against differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr Activation activations[] = {
    Activation::relu, Activation::gelu,    Activation::gelu_tanh, Activation::silu, Activation::relu2,
    Activation::tanh, Activation::sigmoid, Activation::softplus,  Activation::exp,  Activation::elu1};

double activate(Activation kind, double x) {
    switch (kind) {
        case Activation::relu:
            return x > 0 ? x : 0;
        case Activation::gelu:
            return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
        case Activation::silu:
            return x / (1 + std::exp(-x));
        case Activation::relu2:
            return x > 0 ? x * x : 0;
        case Activation::tanh:
            return std::tanh(x);
        case Activation::sigmoid:
            return 1 / (1 + std::exp(-x));
        case Activation::softplus:
            return std::log1p(std::exp(x));
        case Activation::exp:
            return std::exp(x);
        case Activation::elu1:
            return x > 0 ? x + 1 : std::exp(x);
    }
    return 0;
}

double slope(Activation kind, double x) {
    double h = 1e-6;
    return (activate(kind, x + h) - activate(kind, x - h)) / (2 * h);
}

/// Largest distance of `gradient` from central differences of `loss` in `x` (double).
double differences(const Values<double>& x, const Values<double>& gradient,
                   const std::function<double()>& loss) {
    double worst = 0, h = 1e-5;
    for (std::int64_t i = 0; i < x.size(); i++) {
        double old = x[i];
        x[i] = old + h;
        double up = loss();
        x[i] = old - h;
        double down = loss();
        x[i] = old;
        double numeric = (up - down) / (2 * h);
        worst = std::max(worst, std::abs(numeric - gradient[i]) / std::max(1e-2, std::abs(gradient[i])));
    }
    return worst;
}

template <class Real>
double weighted(const Values<Real>& y, const Values<Real>& w) {
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); i++) sum += static_cast<double>(y[i]) * static_cast<double>(w[i]);
    return sum;
}

const std::int64_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 1000};

}  // namespace

TEST_CASE("no table has a gap") {
    auto walk = [](const auto& table) {
        // Words that must all be set, but for products with block types and with narrow numbers: those have a
        // plain way too, and where they are there, all that goes with them is.
        const auto* words = reinterpret_cast<const std::uintptr_t*>(&table);
        const auto* free_from = reinterpret_cast<const std::uintptr_t*>(&table.block);
        const auto* free_to = reinterpret_cast<const std::uintptr_t*>(&table.attention_workspace);
        for (std::size_t i = 0; i < sizeof(table) / sizeof(std::uintptr_t); i++) {
            if (words + i >= free_from && words + i < free_to) continue;
            INFO(table.name << " word " << i);
            CHECK(words[i] != 0);
        }
        INFO(table.name);
        CHECK((table.block.rows == nullptr) == (table.block.rows_longest == 0));
        if (table.block.panel_numbers == PanelNumbers::bf16) {
            CHECK(table.block.panel_cut.tile_m > 0);
            CHECK((table.block.halves == table.block.panels));
            CHECK(table.block.half_numbers == PanelNumbers::bf16);
        }
        const auto& narrow = table.narrow;
        CHECK((narrow.attention == nullptr) == (narrow.attention_backward == nullptr));
        if (narrow.rounded) {
            CHECK(narrow.rounded_longest > 0);
            CHECK(narrow.workspace > 0);
            CHECK(narrow.cut.tile_m > 0);
            CHECK(narrow.cut.tile_n > 0);
        }
    };
    each_table(walk);
}

TEST_CASE("activations and their slopes, over every length and for extreme values") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (Activation kind : activations) {
            for (std::int64_t n : lengths) {
                int shift = static_cast<int>(n % 3);
                Values<Real> x(n, 1, shift), y(n, 0, shift), dy(n, 2, shift), dx(n, 3, shift),
                    up(n, 4, shift), dup(n, 5, shift);
                for (std::int64_t i = 0; i < n; i++) x[i] *= 6;
                Values<Real> before = dx, up_before = dup;
                INFO(table.name << " kind " << static_cast<int>(kind) << " n " << n);
                std::vector<double> value(static_cast<std::size_t>(n)), d = value, g = value, dg = value,
                                                                        du = value;
                for (std::int64_t i = 0; i < n; i++) {
                    auto at = static_cast<std::size_t>(i);
                    double s = static_cast<double>(x[i]), w = static_cast<double>(dy[i]);
                    value[at] = activate(kind, s);
                    d[at] = w * slope(kind, s);
                    g[at] = value[at] * static_cast<double>(up[i]);
                    dg[at] = d[at] * static_cast<double>(up[i]) + static_cast<double>(before[i]);
                    du[at] = w * value[at] + static_cast<double>(up_before[i]);
                }
                table.activation(kind, n, x.data(), y.data());
                CHECK(distance(y, value, n) < tolerance<Real>(5e-7, 1e-14));
                table.gated(kind, n, x.data(), up.data(), y.data());
                CHECK(distance(y, g, n) < tolerance<Real>(5e-7, 1e-14));
                table.gated_backward(kind, n, x.data(), up.data(), dy.data(), dx.data(), dup.data(), true,
                                     true);
                CHECK(distance(dx, dg, n) < tolerance<Real>(2e-6, 2e-8));
                CHECK(distance(dup, du, n) < tolerance<Real>(2e-6, 1e-14));
                table.gated_backward(kind, n, x.data(), up.data(), dy.data(), dx.data(), dup.data(), false,
                                     false);
                for (std::int64_t i = 0; i < n; i++) dx[i] += before[i];
                CHECK(distance(dx, dg, n) < tolerance<Real>(2e-6, 2e-8));
                table.activation_backward(kind, n, x.data(), dy.data(), dx.data(), false);
                CHECK(distance(dx, d, n) < tolerance<Real>(2e-6, 2e-8));
            }
            Values<Real> x(6), y(6);
            double extreme[] = {-100, -30, -10, 10, 30, 100};
            for (int i = 0; i < 6; i++) x[i] = static_cast<Real>(extreme[i]);
            table.activation(kind, 6, x.data(), y.data());
            for (int i = 0; i < 6; i++) {
                INFO(table.name << " kind " << static_cast<int>(kind) << " x " << extreme[i]);
                double expected = activate(kind, extreme[i]), given = static_cast<double>(y[i]);
                if (expected > static_cast<double>(std::numeric_limits<Real>::max()))
                    CHECK(std::isinf(given));
                else
                    CHECK(std::abs(given - expected) < 1e-5 * std::max(1.0, std::abs(expected)));
            }
            x[0] = static_cast<Real>(NAN);
            table.activation(kind, 6, x.data(), y.data());
            CHECK(std::isnan(y[0]));
        }
    });
}

TEST_CASE("an element's bits do not depend on where it stands") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        Values<Real> x(200, 1), whole(200), parts(200);
        for (Activation kind : activations) {
            table.activation(kind, 200, x.data(), whole.data());
            for (std::int64_t i = 0; i < 200; i += 7) {
                table.activation(kind, std::min<std::int64_t>(7, 200 - i), x.data() + i, parts.data() + i);
            }
            CHECK(same_bits(whole, parts, 200));
        }
    });
}

TEST_CASE("layer_norm and rms_norm, forward") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t width : lengths) {
            if (width == 0) continue;
            std::int64_t rows = 3;
            for (bool rms : {false, true}) {
                for (int given = 0; given < 4; given++) {
                    Values<Real> x(rows * width, 1, 1), w(width, 2, 2), b(width, 3), y(rows * width),
                        stats(2 * rows);
                    const Real *weight = given & 1 ? w.data() : nullptr,
                               *bias = given & 2 && !rms ? b.data() : nullptr;
                    for (std::int64_t i = 0; i < x.size(); i++) x[i] += 3;
                    if (rms)
                        table.rms_norm(rows, width, x.data(), weight, Real(1e-5), y.data(), stats.data());
                    else
                        table.layer_norm(rows, width, x.data(), weight, bias, Real(1e-5), y.data(),
                                         stats.data());
                    std::vector<double> expected;
                    for (std::int64_t r = 0; r < rows; r++) {
                        double mean = 0, var = 0;
                        for (std::int64_t c = 0; c < width && !rms; c++)
                            mean += static_cast<double>(x[r * width + c]) / static_cast<double>(width);
                        for (std::int64_t c = 0; c < width; c++)
                            var += std::pow(static_cast<double>(x[r * width + c]) - mean, 2) /
                                   static_cast<double>(width);
                        double rstd = 1 / std::sqrt(var + 1e-5);
                        for (std::int64_t c = 0; c < width; c++) {
                            expected.push_back((static_cast<double>(x[r * width + c]) - mean) * rstd *
                                                   (weight ? static_cast<double>(w[c]) : 1) +
                                               (bias ? static_cast<double>(b[c]) : 0));
                        }
                        if (width == 1 && !rms) continue;
                        CHECK(std::abs(static_cast<double>(stats[2 * r]) - mean) < 1e-5);
                        CHECK(std::abs(static_cast<double>(stats[2 * r + 1]) / rstd - 1) < 1e-4);
                    }
                    INFO(table.name << " width " << width << " rms " << rms);
                    CHECK(distance(y, expected, rows * width) <
                          (width < 4 ? tolerance<Real>(1e-3, 1e-11) : tolerance<Real>(2e-5, 1e-12)));
                    Values<Real> again(rows * width);
                    if (rms)
                        table.rms_norm(rows, width, x.data(), weight, Real(1e-5), again.data(), nullptr);
                    else
                        table.layer_norm(rows, width, x.data(), weight, bias, Real(1e-5), again.data(),
                                         nullptr);
                    CHECK(same_bits(y, again, rows * width));
                }
            }
        }
    });
}

TEST_CASE("norm backwards agree with central differences") {
    const KernelTable<double>& t = double_kernels();
    std::int64_t rows = 3, width = 11;
    for (bool rms : {false, true}) {
        Values<double> x(rows * width, 1), w(width, 2), b(width, 3), y(rows * width), dy(rows * width, 4),
            stats(2 * rows), dx(rows * width), dw(width), db(width);
        auto forward = [&] {
            if (rms)
                t.rms_norm(rows, width, x.data(), w.data(), 1e-5, y.data(), stats.data());
            else
                t.layer_norm(rows, width, x.data(), w.data(), b.data(), 1e-5, y.data(), stats.data());
        };
        auto loss = [&] { return forward(), weighted(y, dy); };
        forward();
        (rms ? t.rms_norm_backward : t.layer_norm_backward)(rows, width, x.data(), w.data(), stats.data(),
                                                            dy.data(), dx.data(), false);
        t.norm_backward_weights(rows, width, 0, 4, x.data(), stats.data(), dy.data(), dw.data(), db.data());
        t.norm_backward_weights(rows, width, 4, width, x.data(), stats.data(), dy.data(), dw.data(),
                                db.data());
        CHECK(differences(x, dx, loss) < 1e-7);
        CHECK(differences(w, dw, loss) < 1e-7);
        if (!rms) CHECK(differences(b, db, loss) < 1e-7);
        Values<double> twice = dx;
        (rms ? t.rms_norm_backward : t.layer_norm_backward)(rows, width, x.data(), w.data(), stats.data(),
                                                            dy.data(), twice.data(), true);
        for (std::int64_t i = 0; i < dx.size(); i++) dx[i] *= 2;
        CHECK(distance(twice, dx, dx.size()) < 1e-14);
    }
}

TEST_CASE(
    "norm backwards, column sums: float agrees with double on every tier, split anywhere with equal bits") {
    const KernelTable<double>& t = double_kernels();
    for (const KernelTable<float>* table : whole_tables()) {
        for (std::int64_t width : {5, 16, 67, 130}) {
            std::int64_t rows = 9;
            Values<float> x(rows * width, 1, 1), dy(rows * width, 2), dx(rows * width, 3), dw(width, 4),
                db(width, 5), stats(2 * rows, 6), w(width, 7);
            Values<double> xd(rows * width, 1), dyd(rows * width, 2), dxd(rows * width, 3), dwd(width, 4),
                dbd(width, 5), statsd(2 * rows, 6), wd(width, 7);
            Values<float> dw2 = dw, db2 = db;
            table->layer_norm_backward(rows, width, x.data(), w.data(), stats.data(), dy.data(), dx.data(),
                                       true);
            t.layer_norm_backward(rows, width, xd.data(), wd.data(), statsd.data(), dyd.data(), dxd.data(),
                                  true);
            CHECK(distance(dx, dxd, dx.size()) < 3e-6);
            table->norm_backward_weights(rows, width, 0, width, x.data(), stats.data(), dy.data(), dw.data(),
                                         db.data());
            t.norm_backward_weights(rows, width, 0, width, xd.data(), statsd.data(), dyd.data(), dwd.data(),
                                    dbd.data());
            CHECK(distance(dw, dwd, width) < 3e-6);
            CHECK(distance(db, dbd, width) < 3e-6);
            for (std::int64_t c = 0; c < width; c += 3) {
                table->norm_backward_weights(rows, width, c, std::min(c + 3, width), x.data(), stats.data(),
                                             dy.data(), dw2.data(), db2.data());
            }
            CHECK(same_bits(dw, dw2, width));
            CHECK(same_bits(db, db2, width));
            table->column_sum(rows, width, 0, width, x.data(), db.data());
            t.column_sum(rows, width, 0, width, xd.data(), dbd.data());
            CHECK(distance(db, dbd, width) < 3e-6);
            for (std::int64_t c = 0; c < width; c += 5)
                table->column_sum(rows, width, c, std::min(c + 5, width), x.data(), db2.data());
            CHECK(same_bits(db, db2, width));
        }
    }
}

TEST_CASE("add, scale, sum_squares") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t n : lengths) {
            Values<Real> a(n, 1, 1), b(n, 2), y(n);
            double squares = 0;
            for (std::int64_t i = 0; i < n; i++)
                squares += static_cast<double>(a[i]) * static_cast<double>(a[i]);
            CHECK(std::abs(table.sum_squares(n, a.data()) - squares) <= 1e-14 * squares);
            table.add(n, a.data(), b.data(), y.data());
            for (std::int64_t i = 0; i < n; i++) CHECK(y[i] == a[i] + b[i]);
            Values<Real> old = b;
            table.add(n, b.data(), y.data(), b.data());  // in place
            for (std::int64_t i = 0; i < n; i++) CHECK(b[i] == old[i] + y[i]);
            table.scale(n, Real(0.3), a.data(), y.data());
            for (std::int64_t i = 0; i < n; i++) CHECK(y[i] == a[i] * Real(0.3));
        }
    });
}

TEST_CASE("what goes element by element makes over an input what it makes beside it") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t n : lengths) {
            const Values<Real> a(n, 1, 1), b(n, 2, 1);
            const auto alike = [&](auto make) {  // make(a, b, y)
                Values<Real> y(n, 0), over_a = a, over_b = b;
                make(a.data(), b.data(), y.data());
                make(over_a.data(), b.data(), over_a.data());
                make(a.data(), over_b.data(), over_b.data());
                bool same = true;
                for (std::int64_t i = 0; i < n; i++) same &= over_a[i] == y[i] && over_b[i] == y[i];
                return same;
            };
            INFO(table.name << " n " << n);
            CHECK(alike([&](auto* x, auto* z, auto* y) { table.add(n, x, z, y); }));
            CHECK(alike([&](auto* x, auto* z, auto* y) { table.multiply(n, x, z, y, false); }));
            for (Activation kind : activations)
                CHECK(alike([&](auto* x, auto* z, auto* y) { table.gated(kind, n, x, z, y); }));
            const auto alone = [&](auto make) {  // make(x, y)
                Values<Real> y(n, 0), over = a;
                make(a.data(), y.data());
                make(over.data(), over.data());
                bool same = true;
                for (std::int64_t i = 0; i < n; i++) same &= over[i] == y[i];
                return same;
            };
            CHECK(alone([&](auto* x, auto* y) { table.scale(n, Real(0.3), x, y); }));
            for (Activation kind : activations)
                CHECK(alone([&](auto* x, auto* y) { table.activation(kind, n, x, y); }));
        }
    });
}

TEST_CASE("rope rotates pairs, and back") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t width : {2, 4, 6, 16, 32, 34, 64, 80, 128, 130}) {
            for (bool halves : {false, true}) {
                std::int64_t half = width / 2;
                Values<Real> x(width, 1, 1), y(width, 0, 1), angle(half, 2), table_cs(width), back(width, 3);
                for (std::int64_t i = 0; i < half; i++) {
                    table_cs[2 * i] = std::cos(3 * angle[i]);
                    table_cs[2 * i + 1] = std::sin(3 * angle[i]);
                }
                table.rope(width, halves, table_cs.data(), Real(1), x.data(), y.data(), false);
                std::vector<double> expected(static_cast<std::size_t>(width));
                for (std::int64_t i = 0; i < half; i++) {
                    std::int64_t first = halves ? i : 2 * i, second = halves ? i + half : 2 * i + 1;
                    double c = static_cast<double>(table_cs[2 * i]),
                           s = static_cast<double>(table_cs[2 * i + 1]);
                    double x0 = static_cast<double>(x[first]), x1 = static_cast<double>(x[second]);
                    expected[static_cast<std::size_t>(first)] = x0 * c - x1 * s;
                    expected[static_cast<std::size_t>(second)] = x0 * s + x1 * c;
                }
                INFO(table.name << " D " << width << " halves " << halves);
                CHECK(distance(y, expected, width) < tolerance<Real>(2e-7, 1e-15));
                Values<Real> start = back;
                table.rope(width, halves, table_cs.data(), Real(-1), y.data(), back.data(), true);
                for (std::int64_t i = 0; i < width; i++) back[i] -= start[i];
                CHECK(distance(back, x, width) < tolerance<Real>(5e-7, 1e-15));
                table.rope(width, halves, table_cs.data(), Real(-1), y.data(), y.data(), false);
                CHECK(distance(y, x, width) < tolerance<Real>(5e-7, 1e-15));
            }
        }
    });
}

TEST_CASE("cross_entropy and its gradient") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t v : {1, 2, 7, 16, 17, 65, 1000}) {
            Values<Real> x(v, 1, 1), kept(v, 1, 1);
            for (std::int64_t i = 0; i < v; i++) kept[i] = x[i] *= 8;
            std::int64_t target = v / 2;
            double total = 0, scale = 0.25;
            for (std::int64_t i = 0; i < v; i++) total += std::exp(static_cast<double>(x[i]));
            double loss = std::log(total) - static_cast<double>(x[target]);
            INFO(table.name << " V " << v);
            CHECK(std::abs(table.cross_entropy(v, target, Real(scale), false, x.data()) - loss) <
                  tolerance<Real>(2e-6, 1e-13));
            CHECK(same_bits(x, kept, v));
            CHECK(std::abs(table.cross_entropy(v, target, Real(scale), true, x.data()) - loss) <
                  tolerance<Real>(2e-6, 1e-13));
            std::vector<double> gradient;
            for (std::int64_t i = 0; i < v; i++)
                gradient.push_back((std::exp(static_cast<double>(kept[i])) / total - (i == target)) * scale);
            CHECK(distance(x, gradient, v) < tolerance<Real>(3e-7, 1e-14));
        }
        Values<Real> x(40, 1);
        x[17] = static_cast<Real>(NAN);
        CHECK(std::isnan(table.cross_entropy(40, 3, Real(1), false, x.data())));
        x[17] = static_cast<Real>(INFINITY);
        CHECK(!std::isfinite(table.cross_entropy(40, 3, Real(1), false, x.data())));
        x[17] = static_cast<Real>(1e30);
        CHECK(table.cross_entropy(40, 17, Real(1), false, x.data()) == 0);
    });
}

TEST_CASE("multiply rounds products and sums apart") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (std::int64_t n : lengths) {
            Values<Real> a(n, 1, 1), b(n, 2, 2), y(n, 3), expected(n), sums = y;
            for (std::int64_t i = 0; i < n; i++) {
                const volatile Real product = a[i] * b[i];
                expected[i] = product, sums[i] += product;
            }
            INFO(table.name << " n " << n);
            table.multiply(n, a.data(), b.data(), y.data(), true);
            CHECK(same_bits(y, sums, n));
            table.multiply(n, a.data(), b.data(), y.data(), false);
            CHECK(same_bits(y, expected, n));
        }
    });
}

TEST_CASE("dropout keeps what base/rng.h draws, wherever a part begins") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        const std::int64_t n = 1000;
        Values<Real> x(n, 1, 1), before(n, 2), expected(n);
        // The counter's low word runs over in the middle.
        const Dropout<Real> whole{0x0123456789ABCDEF, 0xFEDCBA9876543210, 0xFFFFFFC0, 13107, Real(1.25)};
        for (std::int64_t i = 0; i < n; i++) expected[i] = x[i] * kept_by(whole, i);
        for (std::int64_t begin : {0, 8, 80, 992})
            for (std::int64_t length : lengths) {
                length = std::min(length, n - begin);
                INFO(table.name << " from " << begin << ", " << length);
                Dropout<Real> part = whole;
                part.counter += static_cast<std::uint64_t>(begin / dropout_draws);
                Values<Real> y = before;
                table.dropout(length, part, x.data() + begin, y.data() + begin, false);
                CHECK(std::equal(y.data(), y.data() + begin, before.data()));
                CHECK(std::equal(y.data() + begin, y.data() + begin + length, expected.data() + begin));
                CHECK(std::equal(y.data() + begin + length, y.data() + n, before.data() + begin + length));
                y = before;
                table.dropout(length, part, x.data() + begin, y.data() + begin, true);
                for (std::int64_t i = begin; i < begin + length; i++) CHECK(y[i] == before[i] + expected[i]);
            }
        Values<Real> y(n);
        table.dropout(n, {.factor = Real(1)}, x.data(), y.data(), false);
        CHECK(same_bits(x, y, n));
    });
}

namespace {

/// One element's step, in double.
struct PlainStep {
    double p, m, v;

    void take(const Update<double>& o, double g, bool has_m) {
        const double d = g * o.gradient_scale + o.l2 * p;
        double u = d;
        if (o.rule == UpdateRule::adam) {
            m = o.beta1 * m + (1 - o.beta1) * d, v = o.beta2 * v + (1 - o.beta2) * d * d;
            u = m / o.correction1;
            if (o.rectified != 0) u *= o.rectified / (std::sqrt(v / o.correction2) + o.epsilon);
        } else if (o.rule == UpdateRule::lion) {
            const double mean = o.beta1 * m + (1 - o.beta1) * d;
            m = o.beta2 * m + (1 - o.beta2) * d;
            u = mean > 0 ? 1 : mean < 0 ? -1 : 0;
        } else if (has_m) {
            m = o.beta1 * m + d;
            u = o.nesterov ? d + o.beta1 * m : m;
        }
        p -= o.lr * (u + (o.cautious && u * p <= 0 ? 0 : o.weight_decay) * p);
    }
};

template <class Real>
Update<Real> rounded(const Update<double>& o) {
    auto r = [](double x) { return static_cast<Real>(x); };
    return {o.rule,           r(o.lr),          r(o.beta1),
            r(o.beta2),       r(o.epsilon),     r(o.weight_decay),
            r(o.correction1), r(o.correction2), r(o.gradient_scale),
            r(o.l2),          r(o.rectified),   o.nesterov,
            o.cautious};
}

}  // namespace

TEST_CASE("an optimizer's update is the step of its paper") {
    const Update<double> adamw{UpdateRule::adam, 0.01, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.0975, 0.5};
    std::vector<Update<double>> updates(8, adamw);
    updates[1].l2 = 0.3, updates[1].weight_decay = 0;
    updates[2].rectified = 0.4;
    updates[3].rectified = 0, updates[3].cautious = true;
    updates[4].rule = updates[5].rule = updates[6].rule = UpdateRule::momentum;
    updates[5].nesterov = true, updates[6].lr = -1;
    updates[7].rule = UpdateRule::lion;
    each_table([&]<class Real>(const KernelTable<Real>& table) {
        for (const Update<double>& o : updates)
            for (bool has_m : {true, false})
                for (std::int64_t n : {1, 15, 16, 37}) {
                    if (!has_m && o.rule != UpdateRule::momentum) continue;
                    Values<Real> g(n, 1, 1), p(n, 2), m(n, 3), v(n, 4);
                    std::vector<double> pe, me, ve;
                    for (std::int64_t i = 0; i < n; i++) {
                        v[i] = std::abs(v[i]);
                        PlainStep s{static_cast<double>(p[i]), static_cast<double>(m[i]),
                                    static_cast<double>(v[i])};
                        s.take(o, static_cast<double>(g[i]), has_m);
                        pe.push_back(s.p), me.push_back(s.m), ve.push_back(s.v);
                    }
                    table.update(n, rounded<Real>(o), g.data(), p.data(), has_m ? m.data() : nullptr,
                                 v.data());
                    INFO(table.name << " rule " << static_cast<int>(o.rule) << " n " << n);
                    CHECK(distance(p, pe, n) < tolerance<Real>(3e-7, 1e-15));
                    CHECK(distance(m, me, n) < tolerance<Real>(3e-7, 1e-15));
                    CHECK(distance(v, ve, n) < tolerance<Real>(3e-7, 1e-15));
                }
    });
}

TEST_CASE("load and store convert as kernels/half.h does, for every half and every length") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        std::vector<std::uint16_t> all(65536), back(65536);
        for (std::size_t i = 0; i < all.size(); i++) all[i] = static_cast<std::uint16_t>(i);
        std::vector<Real> wide(65536);
        for (DType type : {DType::f16, DType::bf16}) {
            bool f16 = type == DType::f16;
            table.load(65536, type, all.data(), wide.data());
            table.store(65536, type, wide.data(), back.data());
            int wrong = 0;
            for (std::size_t i = 0; i < all.size(); i++) {
                float expected = f16 ? f16_to_f32(all[i]) : bf16_to_f32(all[i]);
                bool nan = std::isnan(expected);
                wrong +=
                    nan ? !std::isnan(wide[i]) : static_cast<float>(wide[i]) != expected || back[i] != all[i];
            }
            INFO(table.name);
            CHECK(wrong == 0);
            Values<Real> x(5000, 9);
            for (std::int64_t i = 0; i < 5000; i++)
                x[i] =
                    static_cast<Real>(std::ldexp(static_cast<double>(x[i]), static_cast<int>(i % 60) - 40));
            table.store(5000, type, x.data(), back.data());
            for (std::size_t i = 0; i < 5000; i++) {
                float f = static_cast<float>(x[static_cast<std::int64_t>(i)]);
                wrong += back[i] != (f16 ? f32_to_f16(f) : f32_to_bf16(f));
            }
            CHECK(wrong == 0);
            for (std::int64_t n : lengths) {
                std::vector<std::uint16_t> few(static_cast<std::size_t>(n) + 1, 0x1234);
                std::vector<Real> out(static_cast<std::size_t>(n) + 1, Real(7));
                table.store(n, type, x.data(), few.data());
                table.load(n, type, few.data(), out.data());
                CHECK(few.back() == 0x1234);
                CHECK(out.back() == Real(7));
                CHECK(std::equal(few.begin(), few.end() - 1, back.begin()));
            }
        }
        Values<Real> x(37, 1), y(37);
        DType full = sizeof(Real) == 4 ? DType::f32 : DType::f64;
        table.store(37, full, x.data(), y.data());
        CHECK(same_bits(x, y, 37));
        table.load(37, full, x.data(), y.data());
        CHECK(same_bits(x, y, 37));
    });
}

TEST_CASE("a tier can be forced by name, and only one that this machine has") {
    const KernelTable<float>* best = &kernels();
    for (const KernelTable<float>* table : usable_kernels()) {
        CHECK(select_kernels(table->name));
        CHECK(&kernels() == table);
    }
    CHECK(&kernels() == best);
    CHECK(!select_kernels("mmx"));
    CHECK(!select_kernels(""));
    CHECK(&kernels() == best);
    CHECK(std::string((*usable_kernels().begin())->name) == "scalar");
}
