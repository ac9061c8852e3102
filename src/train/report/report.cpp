#include "train/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/html.h"
#include "base/terminal.h"
#include "train/report/parts.h"

namespace linnet {
namespace {

template <class Record>
Series series(const std::map<std::int64_t, Record>& records, const char* key, std::string name,
              std::string style, double scale = 1) {
    Series out{std::move(name), std::move(style), {}, {}, false};
    for (const auto& [step, record] : records) {
        out.x.push_back(static_cast<double>(step));
        out.y.push_back(number_of(record, key) * scale);
    }
    out.markers = records.size() <= 60 && out.style == "b";
    return out;
}

bool any(const Series& s) {
    for (double y : s.y)
        if (std::isfinite(y)) return true;
    return false;
}

std::string tile(const std::string& value, const std::string& label) {
    return "<div class=\"tile\"><b>" + escape_html(value) + "</b><span>" + escape_html(label) +
           "</span></div>\n";
}

/// The numbers that one looks for first.
std::string tiles(const LoggedRun& run) {
    std::string out;
    double parameters = number_of(run.start, "parameters"), speed = 0, seconds = 0;
    std::size_t counted = 0;
    for (const auto& [step, record] : run.steps) {
        if (double t = number_of(record, "tokens_per_s"); std::isfinite(t)) speed += t, counted++;
        if (double s = number_of(record, "seconds"); std::isfinite(s)) seconds = std::max(seconds, s);
    }
    const LogRecord* best = best_eval(run);
    if (std::isfinite(parameters)) out += tile(human_count(parameters), "parameters");
    if (!run.steps.empty()) out += tile(std::to_string(run.steps.rbegin()->first), "steps");
    if (best) {
        out +=
            tile(short_number(number_of(*best, "loss")),
                 std::string(losses_comparable(run) ? "best" : "last") + " validation loss, nats per token");
        if (double bpb = number_of(*best, "bpb"); std::isfinite(bpb))
            out += tile(short_number(bpb), "bits per byte there");
        if (double accuracy = number_of(*best, "accuracy"); std::isfinite(accuracy))
            out += tile(short_number(100 * accuracy) + " %", "told rightly there");
    } else if (!run.steps.empty()) {
        out += tile(short_number(number_of(run.steps.rbegin()->second, "loss")), "last loss, nats per token");
    }
    if (counted) out += tile(human_count(speed / static_cast<double>(counted)), "tokens per second");
    if (double skipped = number_of(run.end, "skipped"); skipped > 0)
        out += tile(short_number(skipped), "steps skipped as outliers");
    double took = number_of(run.end, "seconds");
    if (!std::isfinite(took)) took = seconds;
    if (took > 0) out += tile(human_seconds(took), "of training");
    return "<div class=\"tiles\">\n" + out + "</div>\n";
}

/// Validation of each of several texts.
std::string losses_by_text(const LoggedRun& run) {
    std::map<std::string, Series> lines;
    for (const auto& [step, record] : run.evals)
        for (const auto& [name, loss] : text_losses(record)) {
            Series& line =
                lines.try_emplace(name, Series{name, line_style(lines.size()), {}, {}, true}).first->second;
            line.x.push_back(static_cast<double>(step));
            line.y.push_back(loss);
        }
    std::vector<Series> all;
    for (auto& [name, line] : lines) all.push_back(std::move(line));
    if (all.empty()) return "";
    return figure("Loss by text", "Of each text's own held-out part, in nats per token.",
                  {"step", "nats per token", all, 260, false});
}

std::string figures(const LoggedRun& run) {
    Series loss = series(run.steps, "loss", "training", "a"),
           validation = series(run.evals, "loss", "validation", "b");
    std::vector<Series> lines{loss};
    if (any(validation)) lines.push_back(validation);
    std::string out =
        figure("Loss", "Cross-entropy in nats per token, of each step's batch and of the held-out text.",
               {"step", "nats per token", lines, 340, false});
    out += losses_by_text(run);
    Series guesses = series(run.evals, "generator_loss", "validation", "b");
    if (any(guesses))
        out += figure("Loss of the generator", "Of the masked tokens that it guesses in the held-out text.",
                      {"step", "nats per token", {guesses}, 220, false});
    Series accuracy = series(run.evals, "accuracy", "accuracy", "b", 100);
    if (any(accuracy))
        out += figure("Accuracy", "Share of the held-out examples' classes or tags that were told rightly.",
                      {"step", "percent", {accuracy}, 220, false});
    Series rate = series(run.steps, "lr", "rate", "a"), norm = series(run.steps, "grad_norm", "norm", "c");
    Series speed = series(run.steps, "tokens_per_s", "tokens/s", "a"),
           mfu = series(run.steps, "mfu", "share", "c", 100);
    if (any(rate)) {
        std::vector<Series> rates = group_rates(run);
        const bool groups = !rates.empty();
        if (groups) rate.name = "in no group";
        rates.insert(rates.begin(), rate);
        out += figure("Learning rate", groups ? rates_by_group : "Warm-up, then decay.",
                      {"step", "rate", rates, 200, true});
    }
    if (any(norm)) out += figure("Gradient norm", "Before clipping.", {"step", "norm", {norm}, 200, true});
    if (any(speed))
        out +=
            figure("Speed", "Tokens trained per second.", {"step", "tokens per second", {speed}, 200, true});
    if (any(mfu))
        out +=
            figure("Share of the machine's peak", "Arithmetic done over the measured peak of the precision.",
                   {"step", "percent", {mfu}, 200, true});
    return out;
}

/// Each layer's shares of a record of expert use, times the number of its experts.
std::vector<std::pair<std::string, std::vector<double>>> expert_shares(const LogRecord& record) {
    std::vector<std::pair<std::string, std::vector<double>>> layers;
    auto list = record.find("layers");
    for (std::size_t i = 0; list != record.end() && list->is_array() && i < list->size(); i++) {
        const LogRecord& layer = (*list)[i];
        if (!layer.is_object() || !layer.contains("shares") || !layer["shares"].is_array()) continue;
        double count = static_cast<double>(layer["shares"].size());
        std::vector<double> shares;
        for (const LogRecord& share : layer["shares"])
            if (share.is_number()) shares.push_back(share.get<double>() * count);
        if (!shares.empty()) layers.emplace_back(short_number(number_of(layer, "layer")), std::move(shares));
    }
    return layers;
}

/// A row of squares for each layer, as dark as its experts are used.
std::string expert_table(const LogRecord& record) {
    std::string out;
    for (const auto& [layer, shares] : expert_shares(record)) {
        out += "<div class=\"use\"><span>layer " + escape_html(layer) + "</span>";
        for (std::size_t e = 0; e < shares.size(); e++) {
            char cell[120];
            std::snprintf(cell, sizeof cell, "<i style=\"opacity:%.2f\" title=\"expert %zu: %.3g\"></i>",
                          std::clamp(shares[e] / 2, 0.04, 1.0), e, shares[e]);
            out += cell;
        }
        out += "</div>\n";
    }
    return out;
}

std::string expert_use(const LoggedRun& run) {
    if (run.experts.empty()) return "";
    Series most{"busiest", "a", {}, {}, true}, least{"least used", "c", {}, {}, true};
    for (const auto& [step, record] : run.experts) {
        double high = NAN, low = NAN;
        for (const auto& [layer, shares] : expert_shares(record)) {
            high = std::fmax(high, *std::max_element(shares.begin(), shares.end()));
            low = std::fmin(low, *std::min_element(shares.begin(), shares.end()));
        }
        for (Series* s : {&most, &least}) s->x.push_back(static_cast<double>(step));
        most.y.push_back(high), least.y.push_back(low);
    }
    return figure(
               "Use of experts",
               "Of the busiest and the least used expert of any layer, times an even share (1: all alike).",
               {"step", "even shares", {most, least}, 220, true}) +
           "<section><h2>Experts by layer</h2>\n<p>In the last step that was looked at; the darker, the "
           "more used.</p>\n" +
           expert_table(run.experts.rbegin()->second) + "</section>\n";
}

std::string block_maps(const LoggedRun& run) {
    const std::string updates = block_map(run, "update");
    if (updates.empty()) return "";
    return "<section><h2>Updates by block</h2>\n<p>Size of a step over the size of the weights, from the "
           "first "
           "step on the left to the last; the darker, the larger.</p>\n" +
           updates +
           "</section>\n<section><h2>Gradients by block</h2>\n<p>Their norms before clipping, "
           "likewise.</p>\n" +
           block_map(run, "grad_norm") + "</section>\n";
}

std::string confusion(const LoggedRun& run) {
    const std::string table = confusion_table(run.confusion);
    if (table.empty()) return "";
    return "<section><h2>What was taken for what</h2>\n<p>Held-out examples at step " +
           short_number(number_of(run.confusion, "step")) +
           ": a row for each class, a column for what its examples were taken for; the darker, the larger "
           "the share "
           "of the row.</p>\n" +
           table + "</section>\n";
}

std::string samples(const LoggedRun& run) {
    if (run.samples.empty()) return "";
    std::string out =
        "<section><h2>What it wrote</h2>\n<p>Samples taken while it learned, each after a line of the "
        "held-out text; the last is open.</p>\n";
    std::size_t left = run.samples.size();
    for (const auto& [step, record] : run.samples) {
        bool last = --left == 0;
        out += std::string("<details") + (last ? " open" : "") + "><summary>step " + std::to_string(step) +
               "</summary><pre><span class=\"prompt\">" + escape_html(text_of(record, "prompt")) + "</span>" +
               escape_html(text_of(record, "text")) + "</pre></details>\n";
    }
    return out + "</section>\n";
}

std::string provenance(const LoggedRun& run) {
    LogRecord about = run.start;
    for (const char* key : {"event", "config"}) about.erase(key);
    for (const auto& [key, value] : run.end.items())
        if (key != "event") about["end." + key] = value;
    if (run.resumes) about["resumed"] = std::to_string(run.resumes) + (run.resumes == 1 ? " time" : " times");
    return about.empty() ? ""
                         : "<section><h2>Where it comes from</h2>\n<table>\n" + config_rows(about) +
                               "</table></section>\n";
}

}  // namespace

std::string report_html(const LoggedRun& run, const std::string& name) {
    std::string page = page_begin(name);
    page += "<h1>" + escape_html(name) + "</h1>\n<p>Trained by linnet; " + ending_of(run) + ".</p>\n";
    page += tiles(run) + figures(run) + confusion(run) + expert_use(run) + block_maps(run) + samples(run);
    if (auto config = run.start.find("config"); config != run.start.end() && config->is_object())
        page += "<section><h2>Config</h2>\n<table>\n" + config_rows(*config) + "</table></section>\n";
    return page + provenance(run) + page_end();
}

std::string report_html(std::string_view log, const std::string& name) {
    return report_html(read_logged_run(log), name);
}

void write_report(const std::string& path, const LoggedRun& run) {
    write_file(path, report_html(run, last_name(path + "/..")), Existing::replace_name);
}

}  // namespace linnet
