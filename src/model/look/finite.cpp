#include "model/look/finite.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/processors.h"
#include "base/signals.h"
#include "base/team.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

constexpr std::int64_t piece = std::int64_t{1} << 24;  // weights between two looks at signals

/// The first row of [begin, end) with a weight that is not finite, or `end`.
std::int64_t first_bad_row(const Tensor& tensor, std::int64_t begin, std::int64_t end, int threads) {
    const std::int64_t columns = tensor.shape.columns();
    std::vector<std::int64_t> first(static_cast<std::size_t>(threads), end);
    run_team(threads, [&](Worker worker) {
        const Range range = worker.share(end - begin);
        std::vector<float> row(static_cast<std::size_t>(columns));
        for (std::int64_t i = begin + range.begin; i < begin + range.end; i++) {
            kernels().load(columns, tensor.type, tensor.row(i), row.data());
            if (std::isfinite(kernels().sum_squares(columns, row.data()))) continue;
            first[static_cast<std::size_t>(worker.index)] = i;
            return;
        }
    });
    return *std::ranges::min_element(first);
}

[[noreturn]] void refuse(const Gguf& file, const GgufTensor& t, const Tensor& tensor, std::int64_t row) {
    const std::int64_t columns = tensor.shape.columns();
    std::vector<float> values(static_cast<std::size_t>(columns));
    kernels().load(columns, tensor.type, tensor.row(row), values.data());
    const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    const std::int64_t block = (bad - values.begin()) / info(t.type).block;
    fail_input(
        file.path_of(t),
        "tensor " + quoted(t.name) + ", row " + std::to_string(row) + ", block " + std::to_string(block),
        "finite weights", "a weight of " + std::to_string(*bad));
}

}  // namespace

Scanned scan_weights(const Gguf& file, int threads,
                     const std::function<void(double done, double all)>& progress) {
    Scanned scanned;
    double done = 0, all = 0;
    for (const GgufTensor& t : file.tensors()) all += static_cast<double>(t.bytes.size());
    for (const GgufTensor& t : file.tensors()) {
        if (!info(t.type).is_weight) {
            scanned.skipped++;
            done += static_cast<double>(t.bytes.size());
            continue;
        }
        const Tensor tensor{const_cast<std::byte*>(t.bytes.data()), t.type, t.shape};
        const std::int64_t columns = t.shape.columns(), rows = t.shape.count() / columns,
                           some = std::max<std::int64_t>(1, piece / columns);
        for (std::int64_t row = 0; row < rows; row += some) {
            const std::int64_t end = std::min(rows, row + some);
            const std::int64_t bad = first_bad_row(tensor, row, end, threads_or_cores(threads));
            if (bad < end) refuse(file, t, tensor, bad);
            done += static_cast<double>((end - row) * tensor.row_bytes());
            progress(done, all);
            if (int signal = stop_signal()) throw Stopped{signal};
        }
        scanned.tensors++;
        scanned.blocks += t.shape.count() / info(t.type).block;
    }
    return scanned;
}

}  // namespace linnet
