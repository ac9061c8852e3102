#include "commands/bench/profile.h"

#include <algorithm>
#include <cstdio>

#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace linnet {
namespace {

/// What the machine can at most, with the instruction set in force.
struct Peaks {
    double floats, tiles, bytes;
};

/// What the products of reading can reach at most with weights of this type.
double peak_of(const std::string& weights, const Peaks& peaks) {
    const std::optional<DType> type = dtype_from_name(weights);
    const BlockProducts<float>& own = kernels().block;
    if (type && (*type == DType::f16 || *type == DType::bf16) && own.panels_take_halves())
        return peaks.tiles / 3;  // high and low parts
    if (!type || info(*type).block == 1 || !own.panels) return peaks.floats;
    switch (own.numbers_of(*type)) {
        case PanelNumbers::bf16:
            return peaks.tiles;
        case PanelNumbers::integers:
            return 2 * peaks.floats;  // pairs of 16-bit integers in the place of one float
        case PanelNumbers::dots:
            return peaks.bytes;
        case PanelNumbers::bytes:
            break;  // no probe
    }
    return 0;
}

std::string share(double rate, double limit) {
    char text[32] = "";
    if (limit > 0) std::snprintf(text, sizeof text, "%.0f %%", 100 * rate / limit);
    return text;
}

/// A line per op, the longest first: its time divided by `count`, and for products the billions of `amount` a
/// second with `decimals` and their share of limit(op).
template <class Limit>
std::string table(std::vector<OpTime>& ops, int count, double OpTime::*amount, int decimals, Limit limit) {
    std::ranges::stable_sort(ops, std::greater(), &OpTime::seconds);
    std::string text;
    const double all = seconds_of(ops);
    for (const OpTime& op : ops) {
        char line[160];
        std::snprintf(line, sizeof line, "  %-16s %-8s %10.3f ms %5.1f %%", op.op.c_str(), op.weights.c_str(),
                      op.seconds / count * 1e3, 100 * op.seconds / all);
        text += line;
        if (!op.weights.empty()) {
            const double rate = op.*amount / op.seconds;
            std::snprintf(line, sizeof line, " %10.*f %6s", decimals, rate / 1e9,
                          share(rate, limit(op)).c_str());
            text += line;
        }
        text += "\n";
    }
    return text;
}

}  // namespace

std::string profile_text(ModelProfile profile, int threads) {
    std::string text;
    char line[160];
    if (!profile.reading.empty()) {
        const Peaks peaks{measured_peak_flops(threads), measured_tile_flops(threads),
                          measured_int8_ops(threads)};
        std::snprintf(line, sizeof line,
                      "\nreading op by op, %.3f s; GFLOP/s, of the peak for such weights\n",
                      seconds_of(profile.reading));
        text += line + table(profile.reading, 1, &OpTime::flops, 1,
                             [&](const OpTime& op) { return peak_of(op.weights, peaks); });
    }
    if (profile.written) {
        const ReadBandwidth memory = measured_read_bandwidth(threads);
        std::snprintf(line, sizeof line,
                      "\nwriting op by op, %.3f s per token; GB/s, of %.1f that the memory delivers\n",
                      seconds_of(profile.writing) / profile.written, memory.bytes_per_s / 1e9);
        text += line + table(profile.writing, profile.written, &OpTime::bytes, 2,
                             [&](const OpTime&) { return memory.bytes_per_s; });
    }
    return text;
}

}  // namespace linnet
