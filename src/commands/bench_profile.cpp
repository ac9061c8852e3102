#include "commands/bench_profile.h"

#include <algorithm>
#include <cstdio>

#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace linnet {
namespace {

/// What the products of reading can reach at most with weights of this type.
double peak_of(const std::string& weights, int threads) {
    const std::optional<DType> type = dtype_from_name(weights);
    const BlockProducts<float>& own = kernels().block;
    const bool halves = type && (*type == DType::f16 || *type == DType::bf16),
               blocks = type && info(*type).block > 1;
    if (own.panels && own.panel_numbers == PanelNumbers::bf16 && blocks) return measured_tile_flops(threads);
    if (own.panels_take_halves() && halves) return measured_tile_flops(threads) / 3;  // high and low parts
    if (own.panels && own.panel_numbers == PanelNumbers::integers && blocks)
        return 2 * measured_peak_flops(threads);  // pairs of 16-bit integers in the place of one float
    if (own.panels && own.panel_numbers == PanelNumbers::bytes && blocks) return 0;  // no probe
    return measured_peak_flops(threads);
}

std::string share(double rate, double limit) {
    char text[32] = "";
    if (limit > 0) std::snprintf(text, sizeof text, "%.0f %%", 100 * rate / limit);
    return text;
}

double seconds_of(const std::vector<OpTime>& ops) {
    double sum = 0;
    for (const OpTime& op : ops) sum += op.seconds;
    return sum;
}

/// One line per op: its time, divided by `count`, and what `rate` and `share` say.
template <class Rate>
std::string table(const std::vector<OpTime>& ops, int count, Rate rate) {
    std::string text;
    const double all = seconds_of(ops);
    for (const OpTime& op : ops) {
        char line[160];
        std::snprintf(line, sizeof line, "  %-16s %-8s %10.3f ms %5.1f %%", op.op.c_str(), op.weights.c_str(),
                      op.seconds / count * 1e3, 100 * op.seconds / all);
        text += line + rate(op) + "\n";
    }
    return text;
}

}  // namespace

void add_profile(std::vector<OpTime>& sums, const std::vector<OpTime>& more) {
    for (const OpTime& op : more) {
        auto same = std::ranges::find_if(
            sums, [&](const OpTime& s) { return s.op == op.op && s.weights == op.weights; });
        if (same == sums.end())
            sums.push_back(op);
        else
            same->seconds += op.seconds, same->flops += op.flops, same->bytes += op.bytes;
    }
}

std::string profile_text(const ModelProfile& profile, int threads) {
    std::string text;
    char line[160];
    if (!profile.reading.empty()) {
        std::snprintf(line, sizeof line,
                      "\nreading op by op, %.3f s; GFLOP/s, of the peak for such weights\n",
                      seconds_of(profile.reading));
        text += line + table(profile.reading, 1, [&](const OpTime& op) {
                    char figures[64] = "";
                    if (op.weights.empty()) return std::string();
                    const double rate = op.flops / op.seconds;
                    std::snprintf(figures, sizeof figures, " %10.1f %6s", rate / 1e9,
                                  share(rate, peak_of(op.weights, threads)).c_str());
                    return std::string(figures);
                });
    }
    if (profile.written) {
        const ReadBandwidth memory = measured_read_bandwidth(threads);
        std::snprintf(line, sizeof line,
                      "\nwriting op by op, %.3f s per token; GB/s, of %.1f that the memory delivers\n",
                      seconds_of(profile.writing) / profile.written, memory.bytes_per_s / 1e9);
        text += line + table(profile.writing, profile.written, [&](const OpTime& op) {
                    char figures[64] = "";
                    if (op.weights.empty()) return std::string();
                    const double rate = op.bytes / op.seconds;
                    std::snprintf(figures, sizeof figures, " %10.2f %6s", rate / 1e9,
                                  share(rate, memory.bytes_per_s).c_str());
                    return std::string(figures);
                });
    }
    return text;
}

}  // namespace linnet
