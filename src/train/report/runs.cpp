#include "train/report/runs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/html.h"
#include "base/terminal.h"
#include "train/report/parts.h"

namespace linnet {
namespace {

struct Run {
    std::string name, style;
    LoggedRun log;
    double tokens_a_step = NAN, flops_a_token = NAN;
};

/// The number at a path of the config: "train.batch".
double setting(const LoggedRun& log, const char* pointer) {
    const LogRecord::json_pointer path(pointer);
    if (!log.start.contains(path)) return NAN;
    const LogRecord& value = log.start[path];
    return value.is_number() ? value.get<double>() : NAN;
}

bool has_groups(const Run& run) {
    const LogRecord::json_pointer path("/config/train/groups");
    return run.log.start.contains(path) && !run.log.start[path].empty();
}

Run read(const NamedLog& named, std::size_t index) {
    Run run{named.name, line_style(index), read_logged_run(named.log)};
    run.tokens_a_step = setting(run.log, "/config/train/batch") * setting(run.log, "/config/train/sequence") *
                        setting(run.log, "/config/train/accumulate");
    run.flops_a_token = number_of(run.log.start, "flops_per_token");
    return run;
}

/// What a curve may stand against.
struct Axis {
    const char *name, *label;
    double (*at)(const Run& run, std::int64_t step, double seconds);
};
double steps_at(const Run&, std::int64_t step, double) {
    return static_cast<double>(step);
}
double tokens_at(const Run& run, std::int64_t step, double) {
    return static_cast<double>(step) * run.tokens_a_step;
}
double seconds_at(const Run&, std::int64_t, double seconds) {
    return seconds;
}
double flops_at(const Run& run, std::int64_t step, double) {
    return static_cast<double>(step) * run.tokens_a_step * run.flops_a_token;
}
constexpr Axis axes[] = {{"steps", "step", steps_at},
                         {"tokens", "tokens", tokens_at},
                         {"time", "seconds", seconds_at},
                         {"FLOPs", "floating-point operations", flops_at}};

/// A line for every run that has such records, of what `value` tells of each.
template <class Record, class Value>
std::vector<Series> lines(const std::vector<Run>& runs, std::map<std::int64_t, Record> LoggedRun::*records,
                          const Axis& axis, const Value& value) {
    std::vector<Series> all;
    for (const Run& run : runs) {
        Series line{run.name, run.style, {}, {}, (run.log.*records).size() <= 60};
        bool any = false;
        for (const auto& [step, record] : run.log.*records) {
            line.x.push_back(axis.at(run, step, number_of(record, "seconds")));
            line.y.push_back(value(record));
            any |= std::isfinite(line.x.back()) && std::isfinite(line.y.back());
        }
        if (any) all.push_back(std::move(line));
    }
    return all;
}

template <class Record>
std::string curve(const std::vector<Run>& runs, std::map<std::int64_t, Record> LoggedRun::*records,
                  const char* key, const Axis& axis, const std::string& title, const std::string& caption,
                  const std::string& unit, bool from_zero) {
    std::vector<Series> all =
        lines(runs, records, axis, [key](const Record& record) { return number_of(record, key); });
    if (all.empty()) return "";
    return figure(title, caption, {axis.label, unit, all, from_zero ? 220 : 340, from_zero});
}

std::string pane_id(std::size_t axis) {
    return "x" + std::to_string(axis);
}

/// The chosen axis' charts are shown.
std::string pane_styles() {
    std::string rules;
    for (std::size_t i = 0; i < std::size(axes); i++)
        rules += "#" + pane_id(i) + ":checked ~ ." + pane_id(i) + " { display:block } ";
    return rules;
}

/// Losses against each axis: one is shown at a time, chosen without a script.
std::string losses(const std::vector<Run>& runs) {
    std::string buttons, panes;
    for (std::size_t i = 0; i < std::size(axes); i++) {
        const Axis& axis = axes[i];
        const std::string against = std::string(", against ") + axis.name;
        const std::string charts =
            curve(runs, &LoggedRun::evals, "loss", axis, "Validation loss" + against,
                  "Cross-entropy of the held-out text in nats per token.", "nats per token", false) +
            curve(runs, &LoggedRun::steps, "loss", axis, "Training loss" + against,
                  "Cross-entropy of each step's batch.", "nats per token", false);
        if (charts.empty()) continue;
        const std::string id = pane_id(i);
        buttons += "<input type=\"radio\" name=\"x\" id=\"" + id + "\"" +
                   (buttons.empty() ? " checked" : "") + "><label for=\"" + id + "\">" + axis.name +
                   "</label>";
        panes += "<div class=\"pane " + id + "\">" + charts + "</div>\n";
    }
    return panes.empty() ? "" : "<div class=\"tabs\">" + buttons + panes + "</div>\n";
}

/// The loss of one of several texts at an evaluation; NaN where that has none of its name.
double loss_of_text(const LogRecord& eval, const std::string& wanted) {
    for (const auto& [name, loss] : text_losses(eval))
        if (name == wanted) return loss;
    return NAN;
}

/// A chart for each text that any run evaluates by itself.
std::string losses_by_text(const std::vector<Run>& runs) {
    constexpr std::size_t most_texts = 64;  // that a page shows, whatever a log has
    std::set<std::string> names;
    for (const Run& run : runs)
        for (const auto& [step, eval] : run.log.evals)
            for (const auto& [name, loss] : text_losses(eval))
                if (names.size() < most_texts) names.insert(name);
    std::string out;
    for (const std::string& name : names) {
        const std::vector<Series> all =
            lines(runs, &LoggedRun::evals, axes[0],
                  [&name](const LogRecord& eval) { return loss_of_text(eval, name); });
        if (!all.empty())
            out += figure("Loss of " + name, "Of the text's own held-out part, in nats per token.",
                          {axes[0].label, "nats per token", all, 260, false});
    }
    return out;
}

/// A chart for each run with groups of parameters.
std::string rates_of_groups(const std::vector<Run>& runs) {
    std::string out;
    for (const Run& run : runs) {
        std::vector<Series> rates = group_rates(run.log);
        if (rates.empty()) continue;
        for (Series& rest : lines({run}, &LoggedRun::steps, axes[0],
                                  [](const StepRecord& step) { return number_of(step, "lr"); })) {
            rest.name = "in no group", rest.style = line_style(0);
            rates.insert(rates.begin(), std::move(rest));
        }
        out += figure("Learning rates of " + run.name, rates_by_group,
                      {axes[0].label, "rate", rates, 220, true});
    }
    return out;
}

/// What one compares first: a column of the table.
struct Fact {
    const char* label;
    std::string (*of)(const Run& run);  // empty: not known
};

double last_step(const Run& run) {
    return run.log.steps.empty() ? 0 : static_cast<double>(run.log.steps.rbegin()->first);
}
std::string count_or_nothing(double count, std::string (*shown)(double)) {
    return std::isfinite(count) ? shown(count) : "";
}
std::string parameters(const Run& run) {
    return count_or_nothing(number_of(run.log.start, "parameters"), [](double n) { return human_count(n); });
}
std::string steps(const Run& run) {
    return short_number(last_step(run));
}
std::string tokens(const Run& run) {
    return count_or_nothing(last_step(run) * run.tokens_a_step, short_number);
}
std::string time(const Run& run) {
    double seconds = NAN;
    for (const auto& [step, record] : run.log.steps)
        seconds = std::fmax(seconds, number_of(record, "seconds"));
    return count_or_nothing(seconds, [](double s) { return human_seconds(s); });
}
std::string best(const Run& run, const char* key) {
    const LogRecord* record = best_eval(run.log);
    const std::string value = count_or_nothing(record ? number_of(*record, key) : NAN, short_number);
    return value.empty() || losses_comparable(run.log) ? value : value + " (the last)";
}
std::string skipped(const Run& run) {
    const double count = number_of(run.log.end, "skipped");
    return count > 0 ? short_number(count) : "";
}

constexpr Fact facts[] = {
    {"best validation loss, nats per token", [](const Run& run) { return best(run, "loss"); }},
    {"bits per byte there", [](const Run& run) { return best(run, "bpb"); }},
    {"parameters", parameters},
    {"steps", steps},
    {"tokens", tokens},
    {"time", time},
    {"ending", [](const Run& run) { return ending_of(run.log); }},
    {"steps skipped as outliers", skipped}};

/// A row for each run, of what any of them has.
std::string comparison(const std::vector<Run>& runs) {
    std::string head, body;
    std::vector<std::string> cells(runs.size());
    for (const Fact& fact : facts) {
        std::vector<std::string> values;
        for (const Run& run : runs) values.push_back(fact.of(run));
        if (std::ranges::all_of(values, &std::string::empty)) continue;
        head += std::string("<th>") + fact.label + "</th>";
        for (std::size_t i = 0; i < runs.size(); i++)
            cells[i] += "<td>" + (values[i].empty() ? "–" : escape_html(values[i])) + "</td>";
    }
    for (std::size_t i = 0; i < runs.size(); i++)
        body += "<tr><th>" + key_of(runs[i].style, runs[i].name) + "</th>" + cells[i] + "</tr>\n";
    return "<section class=\"wide-table\"><table class=\"runs\">\n<tr><th></th>" + head + "</tr>\n" + body +
           "</table></section>\n";
}

std::string by_block(const std::vector<Run>& runs, const char* key, const std::string& title,
                     const std::string& caption) {
    std::string maps;
    for (const Run& run : runs) {
        const std::string map = block_map(run.log, key);
        if (!map.empty()) maps += "<p>" + key_of(run.style, run.name) + "</p>\n" + map;
    }
    return maps.empty() ? ""
                        : "<section><h2>" + title + "</h2>\n<p>" + caption + "</p>\n" + maps + "</section>\n";
}

/// What each run wrote at which step.
std::string samples(const std::vector<Run>& runs) {
    std::set<std::int64_t> steps;
    for (const Run& run : runs)
        for (const auto& [step, record] : run.log.samples) steps.insert(step);
    std::string out;
    for (std::int64_t step : steps) {
        out += std::string("<details") + (step == *steps.rbegin() ? " open" : "") + "><summary>step " +
               std::to_string(step) + "</summary>\n";
        for (const Run& run : runs) {
            const auto found = run.log.samples.find(step);
            if (found == run.log.samples.end()) continue;
            out += "<p>" + key_of(run.style, run.name) + "</p><pre><span class=\"prompt\">" +
                   escape_html(text_of(found->second, "prompt")) + "</span>" +
                   escape_html(text_of(found->second, "text")) + "</pre>\n";
        }
        out += "</details>\n";
    }
    return out.empty() ? "" : "<section><h2>What they wrote</h2>\n" + out + "</section>\n";
}

}  // namespace

std::string runs_report_html(const std::vector<NamedLog>& logs) {
    std::vector<Run> runs;
    for (const NamedLog& log : logs) runs.push_back(read(log, runs.size()));
    const Axis& by_steps = axes[0];
    std::string title = std::to_string(runs.size()) + (runs.size() == 1 ? " training run" : " training runs");
    std::string page = page_begin(title, pane_styles()) + "<h1>" + title +
                       "</h1>\n<p>Trained by linnet.</p>\n" + comparison(runs);
    page += losses(runs) + losses_by_text(runs);
    page += curve(runs, &LoggedRun::steps, "lr", by_steps, "Learning rate",
                  std::ranges::any_of(runs, has_groups) ? "Of parameters in no group." : "Of each step.",
                  "rate", true);
    page += rates_of_groups(runs);
    page += curve(runs, &LoggedRun::steps, "grad_norm", by_steps, "Gradient norm", "Before clipping.", "norm",
                  true);
    page += curve(runs, &LoggedRun::steps, "tokens_per_s", by_steps, "Speed", "Tokens trained per second.",
                  "tokens per second", true);
    page +=
        by_block(runs, "update", "Updates by block",
                 "Size of a step over the size of the weights, from the first step on the left to the last; "
                 "the darker, the larger.");
    page += by_block(runs, "grad_norm", "Gradients by block", "Their norms before clipping, likewise.");
    return page + samples(runs) + page_end();
}

}  // namespace linnet
