#include "model/narrow.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

// The least magnitudes that are rounded to infinity: half a step beyond the largest number.
constexpr float beyond_f16 = 65520.0F, beyond_bf16 = 0x1.FFp127F;
constexpr double beyond_f32 = 0x1.FFFFFFp127;

template <class Real>
std::int64_t first_beyond(std::int64_t count, const Real* values, Real least) {
    const auto lost = [least](Real value) {
        const Real x = std::abs(value);
        return (x >= least) & (x <= std::numeric_limits<Real>::max());
    };
    int any = 0;  // without a branch, as nearly always none is
    for (std::int64_t i = 0; i < count; i++) any |= lost(values[i]);
    std::int64_t i = any ? 0 : count;
    while (i < count && !lost(values[i])) i++;
    return i;
}

}  // namespace

std::int64_t store_narrowed(std::int64_t count, DType type, const float* values, void* target) {
    kernels().store(count, type, values, target);
    if (type == DType::f32) return count;
    return first_beyond(count, values, type == DType::f16 ? beyond_f16 : beyond_bf16);
}

std::int64_t narrow(std::int64_t count, const double* values, float* target) {
    for (std::int64_t i = 0; i < count; i++) target[i] = static_cast<float>(values[i]);
    return first_beyond(count, values, beyond_f32);
}

void refuse_row(std::string_view file, std::string_view tensor, std::int64_t row, const std::string& expected,
                const std::string& got) {
    fail_input(file, (tensor.empty() ? "" : "tensor " + quoted(tensor) + ", ") + "row " + std::to_string(row),
               expected, got);
}

void refuse_narrowed(std::string_view file, std::string_view tensor, std::int64_t row, DType type) {
    refuse_row(file, tensor, row, "weights that " + std::string(info(type).name) + " can hold",
               "larger ones");
}

}  // namespace linnet
