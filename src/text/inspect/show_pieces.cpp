#include "text/inspect/show_pieces.h"

#include <cstdio>

#include "base/html.h"
#include "base/terminal.h"

namespace linnet {
namespace {

/// For a page: line ends and tabs seen.
std::string visible(const std::string& text) {
    std::string out;
    for (char c : escape_html(text)) {
        if (c == '\n')
            out += "<i>↵</i><br>";
        else if (c == '\t')
            out += "<i>⇥</i>";
        else
            out += c;
    }
    return out;
}

constexpr std::string_view style = R"(<style>
body{font:16px/1.9 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.2em}h2{font-size:1em;margin-top:2em}p.n{color:#666}
.t span{padding:.15em 0;border-radius:.2em;white-space:pre-wrap;overflow-wrap:anywhere}
.t span:nth-child(5n+1){background:#cfe8ff}.t span:nth-child(5n+2){background:#d6f5d6}.t span:nth-child(5n+3){background:#ffe9c7}
.t span:nth-child(5n+4){background:#f3d9fa}.t span:nth-child(5n+5){background:#ffd9d9}
.t span:hover{outline:2px solid #333}i{color:#999;font-style:normal}
@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}.t span{color:#111}}
</style>)";

}  // namespace

std::string shown_token(const Tokenizer& tokenizer, TokenId id, bool first) {
    std::string text;
    tokenizer.decode(id, first, text);
    return printable(text.empty() ? tokenizer.piece(id) : text, true);
}

std::string pieces_for_terminal(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool first,
                                bool colours) {
    constexpr const char* backgrounds[] = {"\x1b[48;5;153;30m", "\x1b[48;5;194;30m", "\x1b[48;5;223;30m",
                                           "\x1b[48;5;225;30m"};
    std::string out;
    for (std::size_t i = 0; i < ids.size(); i++) {
        const std::string text = shown_token(tokenizer, ids[i], first && i == 0);
        if (!colours) {
            out += text + "|";
            continue;
        }
        // The background ends before a line end, or the terminal paints the rest of the line.
        const char* background = backgrounds[i % 4];
        std::size_t at = 0;
        while (at <= text.size()) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            out += background + text.substr(at, end - at) + "\x1b[0m";
            if (end == text.size()) break;
            out += '\n';
            at = end + 1;
        }
    }
    return out;
}

std::string pieces_page(const Tokenizer& tokenizer, std::string_view text, std::span<const TokenId> ids,
                        std::string_view title) {
    const std::string name = escape_html(printable(title));
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>" +
        name + "</title>\n" + std::string(style) + "</head><body>\n<h1>" + name + "</h1>\n";
    char line[200];
    const double per = ids.empty() ? 0 : static_cast<double>(text.size()) / static_cast<double>(ids.size());
    std::snprintf(line, sizeof line,
                  "<p class=\"n\">%zu bytes, %zu tokens, %.2f bytes per token; vocabulary of %d (%s)</p>\n",
                  text.size(), ids.size(), per, tokenizer.size(), std::string(tokenizer.kind()).c_str());
    out += line;
    out += "<h2>Tokens</h2>\n<div class=\"t\">";
    std::string bytes;
    for (std::size_t i = 0; i < ids.size(); i++) {
        bytes.clear();
        tokenizer.decode(ids[i], i == 0, bytes);
        out += "<span title=\"" + std::to_string(ids[i]) + " · " +
               escape_html(printable(tokenizer.piece(ids[i]))) + " · " + std::to_string(bytes.size()) +
               (bytes.size() == 1 ? " byte" : " bytes") + "\">" +
               visible(shown_token(tokenizer, ids[i], i == 0)) + "</span>";
    }
    const std::vector<std::string> words = tokenizer.words(text);
    std::snprintf(line, sizeof line, "</div>\n<h2>Words of the pre-tokenizer (%zu)</h2>\n<div class=\"t\">",
                  words.size());
    out += line;
    for (const std::string& word : words)
        out += "<span title=\"" + std::to_string(word.size()) + " bytes\">" + visible(printable(word, true)) +
               "</span>";
    return out + "</div>\n</body></html>\n";
}

}  // namespace linnet
