#include "train/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/file.h"
#include "base/html.h"
#include "base/terminal.h"
#include "train/chart.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

/// A run, read back from its log. Steps are keys, so that what a resumed run did again stands once.
struct Run {
    Json start = Json::object(), end = Json::object();
    std::map<std::int64_t, Json> steps, evals, samples, experts;
    int resumes = 0;
};

double number(const Json& record, const char* key) {
    auto found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : NAN;
}

std::string text(const Json& record, const char* key) {
    auto found = record.find(key);
    return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A default run follows the clock, a resumed one may be given another end: the config is shown as it is now.
void set_steps(Json& start, const Json& record) {
    const Json::json_pointer steps("/config/train/steps");
    const auto now = record.find("steps");
    if (now != record.end() && start.contains(steps)) start[steps] = *now;
}

Run read_run(std::string_view log) {
    Run run;
    for (std::size_t begin = 0; begin < log.size();) {
        std::size_t end = std::min(log.find('\n', begin), log.size());
        std::string_view line = log.substr(begin, end - begin);
        Json record = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
        begin = end + 1;
        if (!record.is_object()) continue;
        std::string event = text(record, "event");
        double at = number(record, "step");
        auto step = static_cast<std::int64_t>(std::isfinite(at) ? at : 0);
        if (event == "start")
            run.start = std::move(record);
        else if (event == "step")
            run.steps[step] = std::move(record);
        else if (event == "eval")
            run.evals[step] = std::move(record);
        else if (event == "sample")
            run.samples[step] = std::move(record);
        else if (event == "experts")
            run.experts[step] = std::move(record);
        else if (event == "end")
            run.end = std::move(record);
        else if (event == "plan")
            set_steps(run.start, record);
        else if (event == "resume") {
            set_steps(run.start, record);
            run.resumes++;
            run.end = Json::object();
            for (auto* records : {&run.steps, &run.evals, &run.samples, &run.experts})
                records->erase(records->upper_bound(step), records->end());
        }
    }
    return run;
}

Series series(const std::map<std::int64_t, Json>& records, const char* key, std::string name,
              std::string style, double scale = 1) {
    Series out{std::move(name), std::move(style), {}, {}, false};
    for (const auto& [step, record] : records) {
        out.x.push_back(static_cast<double>(step));
        out.y.push_back(number(record, key) * scale);
    }
    out.markers = records.size() <= 60 && out.style == "b";
    return out;
}

bool any(const Series& s) {
    for (double y : s.y)
        if (std::isfinite(y)) return true;
    return false;
}

std::string shown(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) {  // settings exactly, as people write them
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", value.get<double>());
        return text;
    }
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Nested objects as rows with dotted keys, as `--set` spells them.
std::string rows(const Json& object, const std::string& prefix = "") {
    std::string out;
    for (const auto& [key, value] : object.items()) {
        if (value.is_object())
            out += rows(value, prefix + key + ".");
        else
            out += "<tr><th>" + escape_html(prefix + key) + "</th><td>" + escape_html(shown(value)) +
                   "</td></tr>\n";
    }
    return out;
}

std::string tile(const std::string& value, const std::string& label) {
    return "<div class=\"tile\"><b>" + escape_html(value) + "</b><span>" + escape_html(label) +
           "</span></div>\n";
}

/// The numbers that one looks for first.
std::string tiles(const Run& run) {
    std::string out;
    double parameters = number(run.start, "parameters"), speed = 0, seconds = 0;
    std::size_t counted = 0;
    for (const auto& [step, record] : run.steps) {
        if (double t = number(record, "tokens_per_s"); std::isfinite(t)) speed += t, counted++;
        if (double s = number(record, "seconds"); std::isfinite(s)) seconds = std::max(seconds, s);
    }
    const Json* best = nullptr;
    for (const auto& [step, record] : run.evals)
        if (std::isfinite(number(record, "loss")) &&
            (!best || number(record, "loss") < number(*best, "loss")))
            best = &record;
    if (std::isfinite(parameters)) out += tile(human_count(parameters), "parameters");
    if (!run.steps.empty()) out += tile(std::to_string(run.steps.rbegin()->first), "steps");
    if (best) {
        out += tile(short_number(number(*best, "loss")), "best validation loss, nats per token");
        if (double bpb = number(*best, "bpb"); std::isfinite(bpb))
            out += tile(short_number(bpb), "bits per byte there");
    } else if (!run.steps.empty()) {
        out += tile(short_number(number(run.steps.rbegin()->second, "loss")), "last loss, nats per token");
    }
    if (counted) out += tile(human_count(speed / static_cast<double>(counted)), "tokens per second");
    double took = number(run.end, "seconds");
    if (!std::isfinite(took)) took = seconds;
    if (took > 0) out += tile(human_seconds(took), "of training");
    return "<div class=\"tiles\">\n" + out + "</div>\n";
}

std::string figure(const std::string& title, const std::string& caption, const Chart& chart) {
    std::string legend;
    Chart narrow = chart;
    narrow.width = Chart::narrow;
    narrow.height = std::min(chart.height, 260);
    for (const Series& s : chart.series)
        legend += "<span class=\"key " + s.style + "\"></span>" + escape_html(s.name) + " ";
    return "<figure>\n<figcaption><h2>" + escape_html(title) + "</h2><p>" + escape_html(caption) + "</p>" +
           (chart.series.size() > 1 ? "<p class=\"legend\">" + legend + "</p>" : "") + "</figcaption>\n" +
           svg(chart) + svg(narrow) + "</figure>\n";
}

std::string figures(const Run& run) {
    Series loss = series(run.steps, "loss", "training", "a"),
           validation = series(run.evals, "loss", "validation", "b");
    std::vector<Series> lines{loss};
    if (any(validation)) lines.push_back(validation);
    std::string out =
        figure("Loss", "Cross-entropy in nats per token, of each step's batch and of the held-out text.",
               {"step", "nats per token", lines, 340, false});
    Series rate = series(run.steps, "lr", "rate", "a"), norm = series(run.steps, "grad_norm", "norm", "c");
    Series speed = series(run.steps, "tokens_per_s", "tokens/s", "a"),
           mfu = series(run.steps, "mfu", "share", "c", 100);
    if (any(rate))
        out += figure("Learning rate", "Warm-up, then decay.", {"step", "rate", {rate}, 200, true});
    if (any(norm)) out += figure("Gradient norm", "Before clipping.", {"step", "norm", {norm}, 200, true});
    if (any(speed))
        out +=
            figure("Speed", "Tokens trained per second.", {"step", "tokens per second", {speed}, 200, true});
    if (any(mfu))
        out += figure("Share of the machine's peak", "Arithmetic done over the measured f32 peak.",
                      {"step", "percent", {mfu}, 200, true});
    return out;
}

/// Each layer's shares of a record of expert use, times the number of its experts.
std::vector<std::pair<std::string, std::vector<double>>> expert_shares(const Json& record) {
    std::vector<std::pair<std::string, std::vector<double>>> layers;
    auto list = record.find("layers");
    for (std::size_t i = 0; list != record.end() && list->is_array() && i < list->size(); i++) {
        const Json& layer = (*list)[i];
        if (!layer.is_object() || !layer.contains("shares") || !layer["shares"].is_array()) continue;
        double count = static_cast<double>(layer["shares"].size());
        std::vector<double> shares;
        for (const Json& share : layer["shares"])
            if (share.is_number()) shares.push_back(share.get<double>() * count);
        if (!shares.empty()) layers.emplace_back(short_number(number(layer, "layer")), std::move(shares));
    }
    return layers;
}

/// A row of squares for each layer, as dark as its experts are used.
std::string expert_table(const Json& record) {
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

std::string expert_use(const Run& run) {
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

std::string samples(const Run& run) {
    if (run.samples.empty()) return "";
    std::string out =
        "<section><h2>What it wrote</h2>\n<p>Samples taken while it learned, each after a line of the "
        "held-out text; the last is open.</p>\n";
    std::size_t left = run.samples.size();
    for (const auto& [step, record] : run.samples) {
        bool last = --left == 0;
        out += std::string("<details") + (last ? " open" : "") + "><summary>step " + std::to_string(step) +
               "</summary><pre><span class=\"prompt\">" + escape_html(text(record, "prompt")) + "</span>" +
               escape_html(text(record, "text")) + "</pre></details>\n";
    }
    return out + "</section>\n";
}

std::string provenance(const Run& run) {
    Json about = run.start;
    for (const char* key : {"event", "config"}) about.erase(key);
    for (const auto& [key, value] : run.end.items())
        if (key != "event") about["end." + key] = value;
    if (run.resumes) about["resumed"] = std::to_string(run.resumes) + (run.resumes == 1 ? " time" : " times");
    return about.empty()
               ? ""
               : "<section><h2>Where it comes from</h2>\n<table>\n" + rows(about) + "</table></section>\n";
}

constexpr const char* style = R"(
:root { --page:#fbfaf8; --ink:#20242b; --soft:#667080; --rule:#e3e1dc; --card:#fff; --a:#2f6fd0; --b:#d2552c; --c:#16857a; }
@media (prefers-color-scheme: dark) {
:root { --page:#15181d; --ink:#e6e8ec; --soft:#98a2b1; --rule:#2c323b; --card:#1c2027; --a:#6ea3f5; --b:#f08a5d; --c:#4fc0b2; } }
* { box-sizing:border-box }
body { margin:0 auto; max-width:940px; padding:40px 24px 64px; background:var(--page); color:var(--ink);
  font:15px/1.55 system-ui,sans-serif }
h1 { font-size:27px; margin:0 0 4px; letter-spacing:-.01em } h2 { font-size:17px; margin:0 }
p { margin:2px 0 10px; color:var(--soft) }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(128px,1fr)); gap:12px; margin:26px 0 }
.tile { background:var(--card); border:1px solid var(--rule); border-radius:10px; padding:12px 14px }
.tile b { display:block; font-size:22px; font-weight:600; font-variant-numeric:tabular-nums }
.tile span { color:var(--soft); font-size:12.5px; line-height:1.3; display:block }
figure, section { background:var(--card); border:1px solid var(--rule); border-radius:10px; margin:18px 0; padding:18px 20px 12px }
figcaption p { font-size:13px } svg { width:100%; height:auto; display:block }
.grid { stroke:var(--rule) } .axis { stroke:var(--soft) }
.tick, .label { font-size:12px; fill:var(--soft); font-variant-numeric:tabular-nums } .name { font-size:12.5px; font-weight:600 }
.line { fill:none; stroke-width:1.8; stroke-linejoin:round } .hover { fill:transparent }
.line.a { stroke:var(--a) } .line.b { stroke:var(--b) } .line.c { stroke:var(--c) }
.dot.b { fill:var(--b) } .name.a { fill:var(--a) } .name.b { fill:var(--b) } .name.c { fill:var(--c) }
.key { display:inline-block; width:18px; height:3px; border-radius:2px; margin:0 6px 3px 0 } .key ~ .key { margin-left:16px }
.key.a { background:var(--a) } .key.b { background:var(--b) } .key.c { background:var(--c) }
table { border-collapse:collapse; width:100%; font-size:13.5px; margin:8px 0 6px }
th, td { text-align:left; vertical-align:top; padding:5px 10px 5px 0; border-top:1px solid var(--rule); overflow-wrap:anywhere }
th { font-weight:500; color:var(--soft); width:44% } td { font-variant-numeric:tabular-nums }
details { border-top:1px solid var(--rule); padding:6px 0 } summary { cursor:pointer; color:var(--soft) }
.prompt { color:var(--soft) }
.use { display:flex; flex-wrap:wrap; gap:2px; margin:3px 0; font-size:12.5px } .use span { width:72px; color:var(--soft) }
.use i { width:14px; height:14px; border-radius:3px; background:var(--a) }
svg.narrow { display:none }
@media (max-width:600px) { body { padding:20px 12px 40px } h1 { font-size:22px; overflow-wrap:anywhere }
figure, section { padding:14px 12px 10px } svg.narrow { display:block } svg.wide { display:none }
.tiles { grid-template-columns:repeat(2,1fr); gap:8px } th, td { display:block; width:auto; padding:2px 0 } td { border-top:0 } }
pre { white-space:pre-wrap; overflow-wrap:anywhere; font:13px/1.5 ui-monospace,monospace; margin:8px 0 }
)";

}  // namespace

std::string report_html(std::string_view log, const std::string& name) {
    Run run = read_run(log);
    static const std::map<std::string, std::string> endings{
        {"steps", "ended after its last step"},
        {"time", "ended when its time was up"},
        {"memorised", "ended as the text was being memorised"},
        {"signal", "stopped by a signal"}};
    std::string reason = text(run.end, "reason");
    auto ending = endings.find(reason);
    std::string state = run.end.empty()           ? "not ended yet"
                        : ending == endings.end() ? "ended"
                                                  : ending->second;
    std::string page =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
        escape_html(name) + " · linnet</title>\n<style>" + style + "</style>\n</head>\n<body>\n";
    page += "<h1>" + escape_html(name) + "</h1>\n<p>Trained by linnet; " + escape_html(state) + ".</p>\n";
    page += tiles(run) + figures(run) + expert_use(run) + samples(run);
    if (auto config = run.start.find("config"); config != run.start.end() && config->is_object())
        page += "<section><h2>Config</h2>\n<table>\n" + rows(*config) + "</table></section>\n";
    return page + provenance(run) + "</body>\n</html>\n";
}

void write_report(const std::string& path, const std::string& log_jsonl_path) {
    std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal().parent_path();
    write_file(path, report_html(read_file(log_jsonl_path), folder.filename().string()));
}

}  // namespace linnet
