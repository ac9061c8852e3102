// linnet detokenize: lines of token ids back as text.
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"

namespace linnet {
namespace {

struct Options {
    std::string tokenizer;
    std::vector<std::string> files;
};

/// Every line of ids is a text of its own; their texts follow each other as they were.
void print(const Tokenizer& tokenizer, const TextInput& input) {
    const std::string_view text = input.text();
    std::string out;
    std::size_t line = 1;
    bool first = true;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '\n') {
            line++;
            first = true;
        }
        if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
            i++;
            continue;
        }
        TokenId id = -1;
        const char *begin = text.data() + i, *end = text.data() + text.size();
        auto [stop, error] = std::from_chars(begin, end, id);
        const bool whole = stop == end || *stop == ' ' || *stop == '\n' || *stop == '\t' || *stop == '\r';
        if (error != std::errc() || !whole || id < 0 || id >= tokenizer.size()) {
            const std::size_t length = std::min(text.find_first_of(" \t\r\n", i), text.size()) - i;
            fail_input(input.name(), "line " + std::to_string(line),
                       "a token id from 0 to " + std::to_string(tokenizer.size() - 1),
                       "'" + std::string(text.substr(i, std::min<std::size_t>(length, 40))) + "'");
        }
        tokenizer.decode(id, first, out);
        first = false;
        i = static_cast<std::size_t>(stop - text.data());
        if (out.size() > (1u << 16)) {
            write_stdout(out);
            out.clear();
        }
    }
    write_stdout(out);
}

int run(const Options& options) {
    const TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    for (const std::string& path : options.files.empty() ? std::vector<std::string>{"-"} : options.files)
        print(*tokenizer, TextInput(path));
    flush_stdout();
    return 0;
}

}  // namespace

Action add_detokenize(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    add_text(app, "-m,--model", options->tokenizer, "the tokenizer; left out: the built-in model's");
    app.add_option("FILE", options->files, "lines of token ids; none or -: stdin");
    return [options] { return run(*options); };
}

}  // namespace linnet
