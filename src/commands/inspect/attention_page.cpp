#include "commands/inspect/attention_page.h"

#include <cmath>

#include "base/base64.h"
#include "base/html.h"
#include "commands/inspect/png.h"
#include "train/report/parts.h"

namespace linnet {
namespace {

constexpr const char* style = R"(
.heads { display:flex; flex-wrap:wrap; gap:10px; margin:10px 0 }
.heads a { text-decoration:none; color:var(--soft); font-size:12.5px; text-align:center; width:104px }
.heads svg, .large image { background:#fff } .heads svg { border:1px solid var(--rule); border-radius:4px }
.heads a:hover svg, .heads a:focus svg { border-color:var(--a) }
image { image-rendering:pixelated }
.large { display:none; margin:14px 0 6px } .large:target { display:block }
.tokens text { font:11px ui-monospace,monospace; fill:var(--ink) }
.large .wide-page { overflow-x:auto }
)";

/// From white to dark blue; small weights are still seen.
Palette blues() {
    Palette palette{};
    for (std::size_t i = 0; i < palette.size(); i++) {
        const double depth = std::sqrt(static_cast<double>(i) / 255);
        const double dark[3] = {8, 48, 107};
        for (std::size_t c = 0; c < 3; c++)
            palette[i][c] = static_cast<std::uint8_t>(std::lround(255 + depth * (dark[c] - 255)));
    }
    return palette;
}

std::string picture(const AttentionMap& map, std::int64_t head) {
    static const Palette palette = blues();
    std::vector<std::uint8_t> pixels;
    for (float weight : map.head(head))
        pixels.push_back(
            static_cast<std::uint8_t>(std::lround(255 * std::min(1.0f, std::max(0.0f, weight)))));
    return "data:image/png;base64," + base64(png(map.keys, map.queries, pixels, palette));
}

std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", x);
    return text;
}

/// Tokens beside rows, and above columns.
class Axes {
  public:
    static constexpr double cell = 14, letter = 6.7, gap = 6;

    Axes(const std::vector<std::string>& rows, const std::vector<std::string>& columns)
        : left_(room(rows)), top_(room(columns)), rows_(rows), columns_(columns) {}

    std::string symbol(const std::string& id) const {
        std::string out = "<symbol class=\"tokens\" id=\"" + id + "\" overflow=\"visible\">";
        for (std::size_t i = 0; i < rows_.size(); i++)
            out += "<text x=\"" + number(left_ - gap) + "\" y=\"" +
                   number(top_ + cell * (static_cast<double>(i) + 0.75)) + "\" text-anchor=\"end\">" +
                   escape_html(rows_[i]) + "</text>";
        for (std::size_t i = 0; i < columns_.size(); i++) {
            const std::string x = number(left_ + cell * (static_cast<double>(i) + 0.75)),
                              y = number(top_ - gap);
            out += "<text x=\"" + x + "\" y=\"" + y + "\" transform=\"rotate(-90 " + x + " " + y + ")\">" +
                   escape_html(columns_[i]) + "</text>";
        }
        return out + "</symbol>\n";
    }

    /// A large picture of a head between the axes.
    std::string svg(const std::string& axes, const std::string& head) const {
        const double width = cell * static_cast<double>(columns_.size()),
                     height = cell * static_cast<double>(rows_.size());
        return "<svg viewBox=\"0 0 " + number(left_ + width + gap) + " " + number(top_ + height + gap) +
               "\" style=\"width:" + number(left_ + width + gap) + "px\"><use href=\"#" + axes +
               "\"/><use href=\"#" + head + "\" x=\"" + number(left_) + "\" y=\"" + number(top_) +
               "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\"/></svg>\n";
    }

  private:
    static double room(const std::vector<std::string>& tokens) {
        std::size_t longest = 0;
        for (const std::string& token : tokens) longest = std::max(longest, token.size());
        return letter * static_cast<double>(longest) + 2 * gap;
    }
    double left_, top_;
    const std::vector<std::string>& rows_;
    const std::vector<std::string>& columns_;
};

/// "blk.0.attn" -> "Layer 0", "dec.blk.2.cross" -> "Decoder, layer 2, looking at the source".
std::string heading(const AttentionMap& map) {
    const std::size_t blk = map.path.find("blk.");
    std::string name = map.path;
    if (blk != std::string::npos) {
        const std::size_t begin = blk + 4;
        name = (blk == 0                       ? "Layer "
                : map.path.starts_with("enc.") ? "Encoder, layer "
                                               : "Decoder, layer ") +
               map.path.substr(begin, map.path.find('.', begin) - begin);
    }
    return name + (map.cross ? ", looking at the source" : "");
}

}  // namespace

std::string attention_page(const AttentionPage& page) {
    std::string out = page_begin(page.title, style) + "<h1>" + escape_html(page.title) +
                      "</h1>\n<p>A row for each token that looks, a column for each that is looked at: the "
                      "darker, the larger the weight. Click on a head to see its tokens.</p>\n"
                      "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs>\n";
    // A map's queries are the source's own tokens where it is the encoder's.
    auto rows_of = [&](const AttentionMap& map) -> const std::vector<std::string>& {
        return !map.cross && map.in_source ? page.sources : page.queries;
    };
    auto columns_of = [&](const AttentionMap& map) -> const std::vector<std::string>& {
        return map.cross ? page.sources : rows_of(map);
    };
    std::string sections;
    for (std::size_t l = 0; l < page.maps.size(); l++) {
        const AttentionMap& map = page.maps[l];
        const Axes axes(rows_of(map), columns_of(map));
        const std::string layer = "l" + std::to_string(l), names = layer + "-tokens";
        out += axes.symbol(names);
        std::string small, large;
        for (std::int64_t h = 0; h < map.heads; h++) {
            const std::string head = layer + "h" + std::to_string(h), label = "head " + std::to_string(h);
            const std::string box = "0 0 " + std::to_string(map.keys) + " " + std::to_string(map.queries);
            out += "<symbol id=\"" + head + "\" viewBox=\"" + box +
                   "\" preserveAspectRatio=\"none\"><image width=\"" + std::to_string(map.keys) +
                   "\" height=\"" + std::to_string(map.queries) + "\" preserveAspectRatio=\"none\" href=\"" +
                   picture(map, h) + "\"/></symbol>\n";
            small += "<a href=\"#" + head + "-large\"><svg viewBox=\"" + box + "\"><use href=\"#" + head +
                     "\"/></svg>" + label + "</a>\n";
            large += "<div class=\"large\" id=\"" + head + "-large\"><p>" + heading(map) + ", " + label +
                     "</p><div class=\"wide-page\">" + axes.svg(names, head) + "</div></div>\n";
        }
        sections += "<section><h2>" + heading(map) + "</h2>\n<div class=\"heads\">\n" + small + "</div>\n" +
                    large + "</section>\n";
    }
    return out + "</defs></svg>\n" + sections + page_end();
}

}  // namespace linnet
