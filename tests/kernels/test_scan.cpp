// The recurrences of kernels/scan.h: every table against the one in double, over odd numbers of channels, and
// the same bits whatever part of the channels or of the rows is asked for.
#include <doctest/doctest.h>

#include "kernel_support.h"
#include "kernels/scan.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr std::int64_t rows = 37, first = 9, states = 5;

template <class Real>
struct Selective {
    std::int64_t channels;
    Values<Real> x, dt, b, c, a, skip, state, kept, y, dy, dx, ddt, dbc, da, dskip;

    explicit Selective(std::int64_t n)
        : channels(n),
          x(rows * n, 1, 1),
          dt(rows * n, 2, 1),
          b(rows * states, 3),
          c(rows * states, 4),
          a(n * states, 5, 1),
          skip(n, 6, 1),
          state(n * states, 7, 1),
          kept(8 * n * states),
          y(rows * n, 0, 1),
          dy(rows * n, 8, 1),
          dx(rows * n, 9),
          ddt(rows * n),
          dbc(rows * 2 * states),
          da(n * states, 10),
          dskip(n, 11) {
        for (std::int64_t i = 0; i < a.size(); i++) a[i] -= 1;
    }
    SelectiveScan<Real> scan(std::int64_t from = 0, std::int64_t count = rows) const {
        SelectiveScan<Real> s;
        s.rows = count, s.first = first + from, s.channels = channels, s.states = states;
        s.x = x.data() + from * channels, s.dt = dt.data() + from * channels;
        s.b = b.data() + from * states, s.c = c.data() + from * states;
        s.a = a.data(), s.skip = skip.data(), s.state = state.data(), s.y = y.data() + from * channels;
        return s;
    }
    void run(const KernelTable<Real>& table) const { table.selective_scan(scan(), 0, channels); }
    /// From a state of 0, forwards and backwards.
    void back(const KernelTable<Real>& table) const {
        SelectiveScanBackward<Real> s{.forward = scan()};
        s.forward.state = nullptr, s.forward.kept = kept.data();
        table.selective_scan(s.forward, 0, channels);
        s.dy = dy.data(), s.dx = dx.data(), s.ddt = ddt.data(), s.accumulate_x = true;
        s.dbc = dbc.data(), s.da = da.data(), s.dskip = dskip.data();
        table.selective_scan_backward(s, 0, channels);
    }
};

/// Largest difference, of the largest value; NaN where one is.
template <class Real>
double off(const Values<Real>& x, const Values<double>& y) {
    double most = 0, scale = 1e-6;
    for (std::int64_t i = 0; i < x.size(); i++) {
        const double difference = std::abs(static_cast<double>(x[i]) - y[i]);
        if (std::isnan(difference)) return difference;
        most = std::max(most, difference);
        scale = std::max(scale, std::abs(y[i]));
    }
    return most / scale;
}

template <class Real>
struct Matrix {
    std::int64_t values;
    bool one_decay, before, delta;
    Values<Real> r, w, k, v, a, b, state, kept, y, dy, dr, dw, dk, dv, da, db;

    Matrix(std::int64_t n, bool one, bool early, bool rule)
        : values(n),
          one_decay(one),
          before(early),
          delta(rule),
          r(rows * states, 1),
          w(rows * states, 2),
          k(rows * states, 3),
          v(rows * n, 4, 1),
          a(rows * states, 5),
          b(rows * states, 6),
          state(n * states, 7, 1),
          kept(8 * n * states),
          y(rows * n),
          dy(rows * n, 8),
          dr(rows * states),
          dw(rows * states),
          dk(rows * states, 9),
          dv(rows * n),
          da(rows * states),
          db(rows * states) {
        for (std::int64_t i = 0; i < w.size(); i++) w[i] = (w[i] + 1) / 2;
    }
    MatrixScan<Real> scan(std::int64_t from = 0, std::int64_t count = rows) const {
        MatrixScan<Real> s;
        s.rows = count, s.first = first + from, s.keys = states, s.values = values;
        s.key_row = s.w_row = states, s.value_row = values, s.kept_row = states * values;
        s.one_decay = one_decay, s.before = before;
        s.r = r.data() + from * states, s.w = w.data() + from * states, s.k = k.data() + from * states;
        s.v = v.data() + from * values, s.state = state.data(), s.y = y.data() + from * values;
        if (delta) s.a = a.data() + from * states, s.b = b.data() + from * states;
        return s;
    }
    void back(const KernelTable<Real>& table) const {
        MatrixScanBackward<Real> s{.forward = scan()};
        s.forward.state = nullptr, s.forward.kept = kept.data();
        table.matrix_scan(s.forward);
        s.dy = dy.data(), s.dr = dr.data(), s.dw = dw.data(), s.dk = dk.data(), s.dv = dv.data();
        s.da = da.data(), s.db = db.data(), s.accumulate_k = true;
        table.matrix_scan_backward(s);
    }
};

}  // namespace

TEST_CASE("selective scans of every set are those in double, and have the bits of their parts") {
    for (const KernelTable<float>* table : whole_tables())
        for (std::int64_t n : {1, 3, 16, 21}) {
            INFO(table->name << " channels " << n);
            Selective<float> one(n), parts(n), back(n);
            Selective<double> exact(n), exact_back(n);
            one.run(*table), exact.run(double_kernels());
            CHECK(off(one.y, exact.y) < 2e-6);
            CHECK(off(one.state, exact.state) < 2e-6);
            for (std::int64_t from : {0, 5, 30}) {  // cut anywhere, a channel at a time
                const std::int64_t end = from == 0 ? 5 : from == 5 ? 30 : rows;
                for (std::int64_t c = 0; c < n; c++)
                    table->selective_scan(parts.scan(from, end - from), c, c + 1);
            }
            CHECK(same_bits(parts.y, one.y, one.y.size()));
            CHECK(same_bits(parts.state, one.state, one.state.size()));
            back.back(*table), exact_back.back(double_kernels());
            CHECK(off(back.dx, exact_back.dx) < 1e-5);
            CHECK(off(back.ddt, exact_back.ddt) < 1e-5);
            CHECK(off(back.dbc, exact_back.dbc) < 1e-5);
            CHECK(off(back.da, exact_back.da) < 1e-5);
            CHECK(off(back.dskip, exact_back.dskip) < 1e-5);
        }
}

TEST_CASE("matrix scans of every set are those in double, wherever a sequence is cut") {
    for (const KernelTable<float>* table : whole_tables())
        for (std::int64_t n : {1, 3, 16, 21})
            for (int kind = 0; kind < 8; kind++) {
                INFO(table->name << " values " << n << " kind " << kind);
                Matrix<float> one(n, kind & 1, kind & 2, kind & 4), parts(n, kind & 1, kind & 2, kind & 4);
                Matrix<double> exact(n, kind & 1, kind & 2, kind & 4);
                table->matrix_scan(one.scan()), double_kernels().matrix_scan(exact.scan());
                CHECK(off(one.y, exact.y) < 5e-6);
                CHECK(off(one.state, exact.state) < 5e-6);
                table->matrix_scan(parts.scan(0, 11)), table->matrix_scan(parts.scan(11, rows - 11));
                CHECK(same_bits(parts.y, one.y, one.y.size()));
                CHECK(same_bits(parts.state, one.state, one.state.size()));
                one.back(*table), exact.back(double_kernels());
                CHECK(off(one.dr, exact.dr) < 2e-5);
                CHECK(off(one.dw, exact.dw) < 2e-5);
                CHECK(off(one.dk, exact.dk) < 2e-5);
                CHECK(off(one.dv, exact.dv) < 2e-5);
                if (kind & 4) CHECK(off(one.da, exact.da) < 2e-5);
                if (kind & 4) CHECK(off(one.db, exact.db) < 2e-5);
            }
}
