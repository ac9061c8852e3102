#include "train/report/parts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "base/html.h"
#include "base/json_line.h"

namespace linnet {
namespace {

constexpr const char* style = R"(
:root { --page:#fbfaf8; --ink:#20242b; --soft:#667080; --rule:#e3e1dc; --card:#fff; --a:#2f6fd0; --b:#d2552c; --c:#16857a;
--d:#8a4fc4; --e:#a87a00; --f:#c2387e; --g:#4d7a1f; --h:#5b6472; }
@media (prefers-color-scheme: dark) {
:root { --page:#15181d; --ink:#e6e8ec; --soft:#98a2b1; --rule:#2c323b; --card:#1c2027; --a:#6ea3f5; --b:#f08a5d; --c:#4fc0b2;
--d:#bb8ff0; --e:#dcb44a; --f:#f283b6; --g:#97c668; --h:#a3adba; } }
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
.key { display:inline-block; width:18px; height:3px; border-radius:2px; margin:0 6px 3px 0 } .key ~ .key { margin-left:16px }
table { border-collapse:collapse; width:100%; font-size:13.5px; margin:8px 0 6px }
th, td { text-align:left; vertical-align:top; padding:5px 10px 5px 0; border-top:1px solid var(--rule); overflow-wrap:anywhere }
th { font-weight:500; color:var(--soft); width:44% } td { font-variant-numeric:tabular-nums }
details { border-top:1px solid var(--rule); padding:6px 0 } summary { cursor:pointer; color:var(--soft) }
.prompt { color:var(--soft) }
.use { display:flex; flex-wrap:wrap; gap:2px; margin:3px 0; font-size:12.5px } .use span { width:72px; color:var(--soft) }
.use i { width:14px; height:14px; border-radius:3px; background:var(--a) }
.wide-table { overflow-x:auto } .confusion { width:auto } .confusion th, .confusion td { display:table-cell; width:auto; text-align:right;
  padding:4px 8px; border:1px solid var(--rule); overflow-wrap:normal; position:relative }
.confusion i { position:absolute; inset:0; background:var(--a) } .confusion td span { position:relative }
.runs th, .runs td { display:table-cell; width:auto; padding:5px 0 5px 14px; text-align:right; vertical-align:bottom;
  border-top:1px solid var(--rule); white-space:nowrap } .runs tr:first-child > * { border-top:0; white-space:normal; overflow-wrap:normal; min-width:86px }
.runs th:first-child { text-align:left; padding-left:0; position:sticky; left:0; background:var(--card) }
.tabs > input { position:absolute; opacity:0 } .tabs > label { display:inline-block; padding:6px 12px; margin:0 4px 0 0; cursor:pointer;
  border:1px solid var(--rule); border-radius:8px; color:var(--soft); font-size:13.5px } .tabs > .pane { display:none }
.tabs > input:checked + label { color:var(--ink); background:var(--card); border-color:var(--soft) }
.tabs > input:focus-visible + label { outline:2px solid var(--a) }
.map { display:flex; align-items:center; gap:8px; margin:2px 0; font-size:12.5px } .map span { width:112px; flex:none; color:var(--soft); overflow-wrap:anywhere }
.map svg { height:16px; flex:1 } .map rect { fill:var(--a) }
svg.narrow { display:none }
@media (max-width:600px) { body { padding:20px 12px 40px } h1 { font-size:22px; overflow-wrap:anywhere }
figure, section { padding:14px 12px 10px } svg.narrow { display:block } svg.wide { display:none }
.tiles { grid-template-columns:repeat(2,1fr); gap:8px } th, td { display:block; width:auto; padding:2px 0 } td { border-top:0 } }
pre { white-space:pre-wrap; overflow-wrap:anywhere; font:13px/1.5 ui-monospace,monospace; margin:8px 0 }
)";

/// The colours of lines "a" to "h".
std::string line_colours() {
    std::string out;
    for (char c = 'a'; c <= 'h'; c++) {
        const std::string name(1, c), colour = "var(--" + name + ") }";
        out += ".line." + name + " { stroke:" + colour + " .dot." + name + ", .name." + name +
               " { fill:" + colour + " .key." + name + " { background:" + colour + "\n";
    }
    for (const auto& [name, dashes, shown] :
         {std::tuple{"dashed", "7 4", "60%"}, std::tuple{"dotted", "2 4", "30%"}})
        out += std::string(".line.") + name + " { stroke-dasharray:" + dashes + " } .key." + name +
               " { background-image:linear-gradient(90deg,transparent " + shown +
               ",var(--card) 0); background-size:6px }\n";
    return out;
}

std::string shown(const LogRecord& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) {  // settings exactly, as people write them
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", value.get<double>());
        return text;
    }
    return dumped(value);
}

/// Values of one block of a record's `key`, by the block's name.
std::map<std::string, double> by_block(const LogRecord& record, const char* key) {
    std::map<std::string, double> values;
    const auto names = record.find("names"), list = record.find(key);
    if (names == record.end() || list == record.end() || !names->is_array() || !list->is_array())
        return values;
    for (std::size_t i = 0; i < std::min(names->size(), list->size()); i++)
        if ((*names)[i].is_string() && (*list)[i].is_number())
            values[(*names)[i].get<std::string>()] = (*list)[i].get<double>();
    return values;
}

/// Names in the order of the first record.
std::vector<std::string> block_names(const LoggedRun& run) {
    std::vector<std::string> names;
    const auto list = run.blocks.begin()->second.find("names");
    if (list == run.blocks.begin()->second.end() || !list->is_array()) return names;
    for (const LogRecord& name : *list)
        if (name.is_string()) names.push_back(name.get<std::string>());
    return names;
}

/// What the run's config says that the group is of.
std::string group_name(const LoggedRun& run, std::size_t group) {
    const std::string number = std::to_string(group);
    const LogRecord::json_pointer path("/config/train/groups/" + number + "/match");
    if (!run.start.contains(path)) return "group " + number;
    const LogRecord& match = run.start[path];
    std::string name;
    if (match.is_array())
        for (const LogRecord& pattern : match) name += (name.empty() ? "" : ", ") + shown(pattern);
    else
        name = shown(match);
    return name.empty() ? "group " + number : name;
}

}  // namespace

std::string config_rows(const LogRecord& object, const std::string& prefix) {
    std::string out;
    for (const auto& [key, value] : object.items()) {
        if (value.is_object())
            out += config_rows(value, prefix + key + ".");
        else
            out += "<tr><th>" + escape_html(prefix + key) + "</th><td>" + escape_html(shown(value)) +
                   "</td></tr>\n";
    }
    return out;
}

std::string key_of(const std::string& style, const std::string& name) {
    return "<span class=\"key " + style + "\"></span>" + escape_html(name);
}

std::string figure(const std::string& title, const std::string& caption, const Chart& chart) {
    std::string legend;
    Chart narrow = chart;
    narrow.width = Chart::narrow;
    narrow.height = std::min(chart.height, 260);
    for (const Series& s : chart.series) legend += key_of(s.style, s.name) + " ";
    return "<figure>\n<figcaption><h2>" + escape_html(title) + "</h2><p>" + escape_html(caption) + "</p>" +
           (chart.series.size() > 1 ? "<p class=\"legend\">" + legend + "</p>" : "") + "</figcaption>\n" +
           svg(chart) + svg(narrow) + "</figure>\n";
}

std::string block_map(const LoggedRun& run, const char* key) {
    if (run.blocks.empty()) return "";
    double low = INFINITY, high = -INFINITY;
    std::vector<std::pair<std::int64_t, std::map<std::string, double>>> columns;
    for (const auto& [step, record] : run.blocks) {
        columns.emplace_back(step, by_block(record, key));
        for (const auto& [name, value] : columns.back().second)
            if (value > 0) low = std::min(low, std::log(value)), high = std::max(high, std::log(value));
    }
    std::string out;
    for (const std::string& name : block_names(run)) {
        std::string squares;
        for (std::size_t i = 0; i < columns.size(); i++) {
            const auto found = columns[i].second.find(name);
            if (found == columns[i].second.end() || !(found->second > 0)) continue;
            const double dark =
                high > low ? 0.08 + 0.92 * (std::log(found->second) - low) / (high - low) : 0.5;
            char rect[200];
            std::snprintf(rect, sizeof rect,
                          "<rect x=\"%zu\" width=\"1\" height=\"1\" opacity=\"%.2f\"><title>step %lld: ", i,
                          dark, static_cast<long long>(columns[i].first));
            squares += rect + short_number(found->second) + "</title></rect>";
        }
        out += "<div class=\"map\"><span>" + escape_html(name) + "</span><svg viewBox=\"0 0 " +
               std::to_string(columns.size()) + " 1\" preserveAspectRatio=\"none\">" + squares +
               "</svg></div>\n";
    }
    return out;
}

std::vector<Series> group_rates(const LoggedRun& run) {
    std::vector<Series> lines;
    for (const auto& [step, record] : run.steps)
        for (std::size_t g = 0; g < record.group_rates.size(); g++) {
            if (g == lines.size())
                lines.push_back({group_name(run, g), line_style(g + 1), {}, {}, run.steps.size() <= 60});
            lines[g].x.push_back(static_cast<double>(step));
            lines[g].y.push_back(record.group_rates[g]);
        }
    return lines;
}

std::string confusion_table(const LogRecord& record) {
    const auto labels = record.find("labels"), counts = record.find("counts");
    if (labels == record.end() || counts == record.end() || !labels->is_array() || !counts->is_array())
        return "";
    std::string head, body;
    for (const LogRecord& label : *labels) head += "<th>" + escape_html(shown(label)) + "</th>";
    for (std::size_t i = 0; i < std::min(labels->size(), counts->size()); i++) {
        const LogRecord& row = (*counts)[i];
        double all = 0;
        for (const LogRecord& count : row) all += count.is_number() ? count.get<double>() : 0;
        body += "<tr><th>" + escape_html(shown((*labels)[i])) + "</th>";
        for (const LogRecord& count : row) {
            const double share = count.is_number() && all > 0 ? count.get<double>() / all : 0;
            char cell[80];
            std::snprintf(cell, sizeof cell, "<td><i style=\"opacity:%.2f\"></i><span>",
                          0.75 * std::clamp(share, 0.0, 1.0));
            body += cell + (share == 0 ? "" : escape_html(shown(count))) + "</span></td>";
        }
        body += "</tr>\n";
    }
    return "<div class=\"wide-table\"><table class=\"confusion\">\n<tr><th></th>" + head + "</tr>\n" + body +
           "</table></div>\n";
}

std::string page_begin(const std::string& title, const std::string& further) {
    return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           escape_html(title) + " · linnet</title>\n<style>" + style + line_colours() + further +
           "</style>\n</head>\n<body>\n";
}

std::string page_end() {
    return "</body>\n</html>\n";
}

}  // namespace linnet
