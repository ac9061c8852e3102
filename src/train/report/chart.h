// A line chart as inline SVG, for the training report.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

struct Series {
    std::string name;
    std::string style;  // CSS class: "a", "b", …
    std::vector<double> x, y;
    bool markers = false;  // a dot per point (few points), else a line thinned to what a screen can show
};

struct Chart {
    std::string x_label, y_label;
    std::vector<Series> series;
    int height = 300;
    bool y_from_zero = false;
    int width = wide;

    static constexpr int wide = 860, narrow = 400;  // of a desktop's page, of a telephone's
};

/// The <svg> element, in units that are pixels at the width asked for (letters of 12 of them can be read on a
/// page that is as wide); colours come from the page's CSS variables. Values that are not finite are left
/// out. Hovering shows numbers (<title>), without a script.
std::string svg(const Chart& chart);

/// At most `count` + 1 round numbers (1, 2, 2.5 or 5 times a power of ten apart) covering [low, high].
std::vector<double> ticks(double low, double high, int count);

/// A number for people: 0.00123, 1.91, 12 300.
std::string short_number(double value);

}  // namespace linnet
