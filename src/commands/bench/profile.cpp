#include "commands/bench/profile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

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
    if (!type || !own.reading(*type)) return peaks.floats;
    switch (own.numbers_of(*type)) {
        case PanelNumbers::bf16:
            return info(*type).block > 1 ? peaks.tiles : peaks.tiles / 3;  // high and low parts
        case PanelNumbers::integers:
            return 2 * peaks.floats;  // pairs of 16-bit integers in the place of one float
        case PanelNumbers::dots:
            return peaks.bytes;
        case PanelNumbers::bytes:
            break;  // no probe
    }
    return 0;
}

/// The longest first: each op's time divided by `count`, and of products `amount` by second.
std::vector<ProfileRow> rows_of(const std::vector<OpTime>& ops, int count, double OpTime::*amount) {
    std::vector<ProfileRow> rows;
    for (const OpTime& op : ops)
        rows.push_back({op.op, op.weights, op.seconds / count,
                        op.weights.empty() ? 0 : op.*amount / std::max(op.seconds, 1e-9), 0});
    std::ranges::stable_sort(rows, std::greater(), &ProfileRow::seconds);
    return rows;
}

/// What a table's times are.
std::string times_of(const ModelProfile& profile) {
    return profile.rounds == 1 ? "one round" : "medians of " + std::to_string(profile.rounds) + " rounds";
}

std::vector<ProfileRow> reading_rows(const ModelProfile& profile) {
    return rows_of(profile.reading, 1, &OpTime::flops);
}
std::vector<ProfileRow> writing_rows(const ModelProfile& profile) {
    return rows_of(profile.writing, profile.written, &OpTime::bytes);
}

}  // namespace

double median_of(std::vector<double> rounds) {
    std::sort(rounds.begin(), rounds.end());
    return rounds.empty() ? 0 : rounds[rounds.size() / 2];
}

ModelProfile median_profile(const std::vector<ModelProfile>& rounds) {
    ModelProfile median = rounds.at(0);
    median.rounds = static_cast<int>(rounds.size());
    for (auto part : {&ModelProfile::reading, &ModelProfile::writing})
        for (std::size_t i = 0; i < (median.*part).size(); i++) {
            std::vector<double> seconds;
            for (const ModelProfile& round : rounds) seconds.push_back((round.*part).at(i).seconds);
            (median.*part)[i].seconds = median_of(seconds);
        }
    return median;
}

double seconds_of(const std::vector<ProfileRow>& rows) {
    double sum = 0;
    for (const ProfileRow& row : rows) sum += row.seconds;
    return sum;
}

std::string profile_table(const std::vector<ProfileRow>& rows, int decimals) {
    std::string text;
    const double all = seconds_of(rows);
    for (const ProfileRow& row : rows) {
        char line[160];
        std::snprintf(line, sizeof line, "  %-18s %-8s %10.3f ms %5.1f %%", row.op.c_str(), row.kind.c_str(),
                      row.seconds * 1e3, 100 * row.seconds / all);
        text += line;
        if (row.amount > 0) {
            std::snprintf(line, sizeof line, " %10.*f", decimals, row.amount / 1e9);
            text += line;
        }
        if (row.amount > 0 && row.limit > 0) {
            std::snprintf(line, sizeof line, " %4.0f %%", 100 * row.amount / row.limit);
            text += line;
        }
        text += "\n";
    }
    return text;
}

nlohmann::ordered_json profile_json(const std::vector<ProfileRow>& rows, const char* kind,
                                    const char* amount) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const double all = seconds_of(rows);
    for (const ProfileRow& row : rows)
        list.push_back({{"op", row.op},
                        {kind, row.kind},
                        {"ms", row.seconds * 1e3},
                        {"share", row.seconds / all},
                        {amount, row.amount}});
    return list;
}

std::string profile_text(const ModelProfile& profile, int threads) {
    std::string text;
    char line[160];
    if (!profile.reading.empty()) {
        const Peaks peaks{measured_peak_flops(threads), measured_tile_flops(threads),
                          measured_int8_ops(threads)};
        std::vector<ProfileRow> rows = reading_rows(profile);
        for (ProfileRow& row : rows) row.limit = peak_of(row.kind, peaks);
        std::snprintf(line, sizeof line,
                      "\nreading op by op, %.3f s, %s; GFLOP/s, of the peak for such weights\n",
                      seconds_of(rows), times_of(profile).c_str());
        text += line + profile_table(rows, 1);
    }
    if (profile.written > 0) {
        const ReadBandwidth memory = measured_read_bandwidth(threads);
        std::vector<ProfileRow> rows = writing_rows(profile);
        for (ProfileRow& row : rows) row.limit = memory.bytes_per_s;
        std::snprintf(line, sizeof line,
                      "\nwriting op by op, %.3f s per token, %s; GB/s, of %.1f that the memory delivers\n",
                      seconds_of(rows), times_of(profile).c_str(), memory.bytes_per_s / 1e9);
        text += line + profile_table(rows, 2);
    }
    return text;
}

nlohmann::ordered_json profile_json(const ModelProfile& profile) {
    return {{"reading", profile_json(reading_rows(profile), "weights", "flops_per_s")},
            {"writing", profile_json(writing_rows(profile), "weights", "bytes_per_s")}};
}

}  // namespace linnet
