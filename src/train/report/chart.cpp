#include "train/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/html.h"
#include "base/terminal.h"
#include "base/utf8.h"

namespace linnet {
namespace {

constexpr double top = 14, bottom = 44;

struct Point {
    double x, y;
};

struct Span {
    double low = INFINITY, high = -INFINITY;
    void take(double v) {
        low = std::min(low, v);
        high = std::max(high, v);
    }
};

std::string px(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", v);
    return text;
}

std::vector<Point> finite_points(const Series& series) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); i++)
        if (std::isfinite(series.x[i]) && std::isfinite(series.y[i]))
            points.push_back({series.x[i], series.y[i]});
    return points;
}

/// Means over equal runs of points, so that a million steps still make a page of kilobytes.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most_points) {
    if (points.size() <= most_points) return points;
    std::vector<Point> out;
    for (std::size_t i = 0; i < most_points; i++) {
        std::size_t begin = points.size() * i / most_points, end = points.size() * (i + 1) / most_points;
        Point mean{0, 0};
        for (std::size_t j = begin; j < end; j++) mean.x += points[j].x, mean.y += points[j].y;
        double n = static_cast<double>(end - begin);
        out.push_back({mean.x / n, mean.y / n});
    }
    return out;
}

/// Maps values to the plot's pixels.
struct Frame {
    double x0, x1, y0, y1, width, height;
    bool names;          // of the lines at their right ends; where there is no room, the legend names them
    double left, right;  // margins
    double x(double v) const { return left + (v - x0) / (x1 - x0) * (width - left - right); }
    double y(double v) const { return height - bottom - (v - y0) / (y1 - y0) * (height - top - bottom); }
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view style,
                    std::string_view text) {
    return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + std::string(anchor) +
           "\" class=\"" + std::string(style) + "\">" + escape_html(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
    return "<line x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) +
           "\" class=\"" + std::string(style) + "\"/>\n";
}

std::string axes(const Chart& chart, const Frame& f, const std::vector<double>& xs,
                 const std::vector<double>& ys) {
    std::string out;
    for (double y : ys) {
        out += line(f.left, f.y(y), f.width - f.right, f.y(y), "grid");
        out += text_at(f.left - 8, f.y(y) + 4, "end", "tick", short_number(y));
    }
    for (double x : xs) out += text_at(f.x(x), f.height - bottom + 18, "middle", "tick", short_number(x));
    out += line(f.left, f.height - bottom, f.width - f.right, f.height - bottom, "axis");
    out += text_at((f.left + f.width - f.right) / 2, f.height - 6, "middle", "label", chart.x_label);
    out += "<text transform=\"translate(12 " + px((top + f.height - bottom) / 2) +
           ") rotate(-90)\" text-anchor=\"middle\" class=\"label\">" + escape_html(chart.y_label) +
           "</text>\n";
    return out;
}

std::string drawn(const Series& series, const std::vector<Point>& points, const Frame& f) {
    std::string path, dots;
    for (const Point& p : points) {
        path += (path.empty() ? "M" : "L") + px(f.x(p.x)) + " " + px(f.y(p.y));
        // A line's hover targets are invisible; markers are their own.
        dots += "<circle cx=\"" + px(f.x(p.x)) + "\" cy=\"" + px(f.y(p.y)) + "\" r=\"" +
                (series.markers ? "3.5\" class=\"dot " + series.style : "6\" class=\"hover") + "\"><title>" +
                escape_html(series.name) + "\n" + short_number(p.x) + ": " + short_number(p.y) +
                "</title></circle>\n";
    }
    return "<path d=\"" + path + "\" class=\"line " + series.style + "\"/>\n" + dots;
}

/// Room at the left for the rotated label and the longest number beside it.
double room_for_ticks(const std::vector<double>& ys, double least) {
    constexpr double label = 20, gap = 8, digit = 7;  // pixels, as axes() places them
    std::size_t longest = 0;
    for (double y : ys) longest = std::max(longest, short_number(y).size());
    return std::max(least, label + gap + digit * static_cast<double>(longest));
}

constexpr double letter = 7.6;  // pixels of a letter of a name, at most but for the widest

/// Room for the longest name, up to a fifth of the chart.
double room_for_names(const Chart& chart) {
    std::size_t longest = 0;
    for (const Series& series : chart.series) longest = std::max(longest, series.name.size());
    return std::clamp(16 + letter * static_cast<double>(longest), 84.0, chart.width / 5.0);
}

/// As much of a name as there is room for.
std::string fitted(const std::string& name, double room) {
    const auto most = static_cast<std::size_t>(std::lround((room - 16) / letter));
    if (name.size() <= most) return name;
    std::size_t end = most - 1;
    return name.substr(0, character_start(name, end)) + "…";
}

/// Names at the lines' right ends, moved apart where they would overlap, and up where they would leave the
/// chart.
std::string end_labels(const Chart& chart, const std::vector<std::vector<Point>>& points, const Frame& f) {
    std::vector<std::pair<double, const Series*>> labels;
    for (std::size_t i = 0; i < points.size(); i++)
        if (!points[i].empty()) labels.push_back({f.y(points[i].back().y), &chart.series[i]});
    std::sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const double count = static_cast<double>(std::max<std::size_t>(labels.size(), 1));
    const double apart = std::min(15.0, (f.height - top) / count);
    double least = 0, most = f.height - 8;
    for (auto& [y, series] : labels) y = std::max(y, least), least = y + apart;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label)
        label->first = std::min(label->first, most), most = label->first - apart;
    std::string out;
    for (const auto& [y, series] : labels)
        out += text_at(f.width - f.right + 9, y + 4, "start", "name " + series->style,
                       fitted(series->name, f.right));
    return out;
}

}  // namespace

std::string short_number(double v) {
    char text[48];
    if (!std::isfinite(v)) return "–";
    if (v == 0) return "0";  // also -0
    double a = std::fabs(v);
    if (a < 0.001) return two_digits(v);
    if (a < 9999.5) {  // what rounds to 10 000 has a unit
        std::snprintf(text, sizeof text, "%.4g", v);
        return text;
    }
    const char* units[] = {"k", "M", "G", "T", "P"};
    int unit = -1;
    while (a >= 999.5 && unit < 4) a /= 1000, v /= 1000, unit++;
    std::snprintf(text, sizeof text, "%.3g%s", v, units[unit]);
    return text;
}

std::vector<double> ticks(double low, double high, int count) {
    double room = (high - low) / count, power = std::pow(10, std::floor(std::log10(room)));
    double step = 10 * power;
    for (double m : {5.0, 2.5, 2.0, 1.0})
        if (m * power >= room * (1 - 1e-9)) step = m * power;
    std::vector<double> out;
    const double first = std::ceil(low / step - 1e-9);
    for (int i = 0; i <= count + 1 && (first + i) * step <= high + step * 1e-9; i++)
        out.push_back((first + i) * step);
    return out;
}

std::string svg(const Chart& chart) {
    std::vector<std::vector<Point>> points;
    Span xs, ys;
    for (const Series& series : chart.series) {
        std::vector<Point> all = finite_points(series);
        for (const Point& p : all) xs.take(p.x);
        points.push_back(series.markers ? all
                                        : thinned(all, static_cast<std::size_t>(chart.width /
                                                                                2)));  // one every two pixels
        for (const Point& p : points.back()) ys.take(p.y);
    }
    if (xs.low > xs.high) return "<p class=\"none\">Nothing was recorded.</p>\n";
    if (chart.y_from_zero) ys.take(0);
    if (xs.high == xs.low) xs.high = xs.low + std::max(1.0, std::fabs(xs.low) * 1e-3);
    double margin = std::max((ys.high - ys.low) * 0.05, std::max(std::fabs(ys.high), 1e-12) * 1e-3);
    bool roomy = chart.width > 600;
    Frame f{xs.low,
            xs.high,
            chart.y_from_zero ? 0 : ys.low - margin,
            ys.high + margin,
            static_cast<double>(chart.width),
            static_cast<double>(chart.height),
            roomy,
            0,
            roomy ? room_for_names(chart) : 14.0};
    const std::vector<double> y_ticks = ticks(f.y0, f.y1, std::max(3, chart.height / 55));
    f.left = room_for_ticks(y_ticks, roomy ? 74 : 62);
    std::string out = std::string("<svg class=\"") + (roomy ? "wide" : "narrow") + "\" viewBox=\"0 0 " +
                      px(f.width) + " " + std::to_string(chart.height) + "\" role=\"img\" aria-label=\"" +
                      escape_html(chart.y_label) + "\">\n";
    out += axes(chart, f, ticks(f.x0, f.x1, roomy ? 8 : 4), y_ticks);
    for (std::size_t i = 0; i < points.size(); i++)
        if (!points[i].empty()) out += drawn(chart.series[i], points[i], f);
    if (f.names) out += end_labels(chart, points, f);
    return out + "</svg>\n";
}

}  // namespace linnet
