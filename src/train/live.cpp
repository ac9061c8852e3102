#include "train/live.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace linnet {
namespace {

std::string formatted(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

}  // namespace

std::string progress_line(const Progress& p, int width) {
    struct Part {
        std::string text;
        int rank;  // the highest goes first where room is short
    };
    std::vector<Part> parts;
    std::string steps = std::to_string(p.steps), step = std::to_string(p.step);
    step.insert(0, steps.size() > step.size() ? steps.size() - step.size() : 0,
                ' ');  // the line does not jump
    parts.push_back({"step " + step + (p.steps > 0 ? "/" + steps : ""), 0});
    if (p.steps > 0)
        parts.push_back({formatted("%3.0f%%", std::floor(100.0 * static_cast<double>(p.step) /
                                                         static_cast<double>(p.steps))),
                         5});
    auto add = [&](double value, const std::string& text, int rank) {
        if (std::isfinite(value)) parts.push_back({text, rank});
    };
    add(p.loss, formatted("loss %.3f", p.loss), 1);
    add(p.validation, formatted("val %.3f", p.validation), 2);
    add(p.lr, formatted("lr %.1e", p.lr), 7);
    add(p.tokens_per_s, human_count(p.tokens_per_s) + " tokens/s", 4);
    add(p.peak_share, formatted("%.0f%% of peak", 100 * p.peak_share), 6);
    add(p.seconds_left, human_seconds(p.seconds_left) + " left", 3);
    auto length = [&] {
        std::size_t n = 0;
        for (const Part& part : parts) n += part.text.size() + (n ? 2 : 0);
        return n;
    };
    while (parts.size() > 1 && length() > static_cast<std::size_t>(std::max(width, 0)))
        parts.erase(std::max_element(parts.begin(), parts.end(),
                                     [](const Part& a, const Part& b) { return a.rank < b.rank; }));
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    return line;
}

void LiveLine::step(std::int64_t step, std::int64_t steps, double loss, double lr, double tokens_per_s,
                    double share, double seconds_left) {
    if (first_ < 0) first_ = step - 1;
    // Speed varies from step to step on a shared machine; an average over some ten steps can be read.
    double before = progress_.tokens_per_s, weight = std::isfinite(before) ? 0.1 : 1.0;
    double smooth = weight * tokens_per_s + (weight < 1 ? (1 - weight) * before : 0);
    double elapsed = seconds_since(started_);
    progress_.step = step;
    progress_.steps = steps;
    progress_.loss = loss;
    progress_.lr = lr;
    progress_.peak_share = share > 0 && tokens_per_s > 0 ? share * smooth / tokens_per_s : NAN;
    progress_.tokens_per_s = smooth;
    progress_.seconds_left = std::min(
        seconds_left, elapsed / static_cast<double>(step - first_) * static_cast<double>(steps - step));
    status_.show(progress_line(progress_, stderr_is_terminal() ? stderr_width() - 1 : 200));
}

void LiveLine::evaluated(std::int64_t step, double loss, double bpb, double accuracy) {
    progress_.validation = loss;
    note("step " + grouped(static_cast<std::uint64_t>(step)) +
         formatted(": validation loss %.3f nats per token", loss) +
         (std::isnan(bpb) ? "" : formatted(", %.3f bits per byte", bpb)) +
         (std::isnan(accuracy) ? "" : formatted(", accuracy %.2f %%", 100 * accuracy)));
}

void LiveLine::sample(const std::string& prompt, const std::string& text) {
    // Its beginning: the report has all of it.
    constexpr std::size_t most_lines = 6;
    std::string whole = prompt + text;
    for (std::size_t begin = 0, shown = 0; shown < most_lines && begin < whole.size();) {
        std::size_t end = std::min(whole.find('\n', begin), whole.size());
        std::string line = whole.substr(begin, end - begin);
        begin = end + 1;
        if (line.find_first_not_of(" \t") == std::string::npos) continue;
        note("    " + line, true);
        shown++;
    }
}

}  // namespace linnet
