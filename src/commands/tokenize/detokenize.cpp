// linnet detokenize: lines of token ids back as text.
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/terminal_text.h"
#include "commands/text_input.h"
#include "text/files/json.h"

namespace linnet {
namespace {

struct Options {
    std::string tokenizer;
    std::vector<std::string> files;
    bool json = false;
};

[[noreturn]] void refuse_word(const Tokenizer& tokenizer, const TextInput& input, std::size_t line,
                              std::string_view word) {
    fail_input(input.name(), "line " + std::to_string(line),
               "a token id from 0 to " + std::to_string(tokenizer.size() - 1), quoted(word, 40));
}

/// Appends the text of a line of ids.
void append_text(const Tokenizer& tokenizer, const TextInput& input, std::size_t line, std::string_view ids,
                 std::string& out) {
    bool first = true;
    for (std::size_t i = 0; (i = ids.find_first_not_of(" \t\r", i)) != ids.npos;) {
        const std::string_view word = ids.substr(i, ids.find_first_of(" \t\r", i) - i);
        TokenId id = -1;
        auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= tokenizer.size())
            refuse_word(tokenizer, input, line, word);
        tokenizer.decode(id, first, out);
        first = false;
        i += word.size();
    }
}

/// Every line of ids is a text of its own. They follow each other as they were, or are an object each.
void print(const Tokenizer& tokenizer, const TextInput& input, bool json) {
    std::string_view rest = input.text();
    std::string out;
    TerminalText terminal;
    for (std::size_t line = 1; !rest.empty(); line++) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        append_text(tokenizer, input, line, rest.substr(0, end), out);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (json) {
            write_stdout(printable_json("{\"text\":" + json_quoted(out) + "}\n"));
            out.clear();
        } else if (out.size() > (1u << 16)) {
            write_stdout(terminal.push(std::exchange(out, {})));
        }
    }
    write_stdout(terminal.push(out));
}

int run(const Options& options) {
    const TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    for (const std::string& path : options.files.empty() ? std::vector<std::string>{"-"} : options.files)
        print(*tokenizer, TextInput(path), options.json);
    flush_stdout();
    return 0;
}

}  // namespace

Action add_detokenize(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    add_tokenizer(app, options->tokenizer);
    add_files(app, "FILE", options->files, "lines of token ids; none or -: stdin");
    app.add_flag("--json", options->json, "one JSON object per line of ids: text");
    return [options] { return run(*options); };
}

}  // namespace linnet
