// For the kernel tests: random data at awkward places, and every table in double clothing.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

namespace linnet::test {

/// n values in [-1, 1) that begin `misaligned` elements behind a 64-byte boundary.
template <class Real>
class Values {
  public:
    explicit Values(std::int64_t n, std::uint64_t seed = 0, int misaligned = 0)
        : storage_(static_cast<std::size_t>(n + 32 + misaligned)), n_(n) {
        auto at = reinterpret_cast<std::uintptr_t>(storage_.data());
        data_ = storage_.data() + (64 - at % 64) % 64 / sizeof(Real) + misaligned;
        Rng rng(seed, 0);
        for (std::int64_t i = 0; i < n && seed; i++) {
            data_[i] = static_cast<Real>(2 * rng.uniform(static_cast<std::uint64_t>(i)) - 1);
        }
    }
    Values(const Values& other) : Values(other.n_) { *this = other; }
    Values& operator=(const Values& other) {
        for (std::int64_t i = 0; i < n_; i++) data_[i] = other.data_[i];
        return *this;
    }
    Real* data() const { return data_; }
    Real& operator[](std::int64_t i) const { return data_[i]; }
    std::int64_t size() const { return n_; }

  private:
    std::vector<Real> storage_;
    Real* data_;
    std::int64_t n_;
};

/// 64-byte aligned scratch, of exactly the size that was asked for (ASan sees past its end).
class Workspace {
  public:
    explicit Workspace(std::size_t bytes) : data_(std::aligned_alloc(64, (bytes + 63) / 64 * 64)) {}
    ~Workspace() { std::free(data_); }
    Workspace(const Workspace&) = delete;
    void* data() const { return data_; }

  private:
    void* data_;
};

/// The float tables that this machine runs, without those that add products with block types alone.
inline std::vector<const KernelTable<float>*> whole_tables() {
    std::vector<const KernelTable<float>*> tables;
    for (const KernelTable<float>* table : usable_kernels())
        if (tables.empty() || table->gemm != tables.back()->gemm) tables.push_back(table);
    return tables;
}

/// Calls f(table) with each of them, and with the double one.
template <class F>
void each_table(F f) {
    for (const KernelTable<float>* table : whole_tables()) f(*table);
    f(double_kernels());
}

template <class Real>
constexpr double tolerance(double for_float, double for_double) {
    return sizeof(Real) == 4 ? for_float : for_double;
}

/// Largest |a - b| / (1 + |b|); NaN where one is.
template <class A, class B>
double distance(const A& a, const B& b, std::int64_t n) {
    double worst = 0;
    for (std::int64_t i = 0; i < n; i++) {
        double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]),
               d = std::abs(x - y) / (1 + std::abs(y));
        if (std::isnan(d)) return d;
        worst = std::max(worst, d);
    }
    return worst;
}

/// Root mean square of the difference, of that of the expected (where that is 0, of 1).
template <class A, class B>
double relative_error(const A& found, const B& expected) {
    double error = 0, size = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(expected.size()); i++) {
        const double x = static_cast<double>(found[i]), y = static_cast<double>(expected[i]);
        error += (x - y) * (x - y), size += y * y;
    }
    return size > 0 ? std::sqrt(error / size) : std::sqrt(error);
}

/// What dropout multiplies element i with, as base/rng.h draws it.
template <class Real>
Real kept_by(const Dropout<Real>& d, std::int64_t i) {
    const auto words = philox(d.key, d.stream, d.counter + static_cast<std::uint64_t>(i / dropout_draws));
    const std::uint32_t draw =
        words[static_cast<std::size_t>(i % dropout_draws / 2)] >> (i % 2 * 16) & 0xFFFFu;
    return draw >= d.limit ? d.factor : Real(0);
}

template <class A, class B>
bool same_bits(const A& a, const B& b, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i++) {
        static_assert(sizeof a[i] == sizeof b[i]);
        if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) return false;
    }
    return true;
}

}  // namespace linnet::test
