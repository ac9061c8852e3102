// linnet tokenize: a text as token ids, pieces, counts or JSON.
#include <nlohmann/json.hpp>

#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/output.h"
#include "base/team.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "text/inspect/show_pieces.h"

namespace linnet {
namespace {

struct Options {
    std::string tokenizer, format = "ids", html, invalid = "keep";
    std::vector<std::string> files;
    std::optional<std::string> prompt;
    bool special = false, add_special = false, json = false, overwrite = false;
};

void append_number(std::string& out, TokenId id) {
    char digits[12];
    int n = 0;
    std::uint32_t v = static_cast<std::uint32_t>(id);
    do digits[n++] = static_cast<char>('0' + v % 10);
    while (v /= 10);
    while (n) out += digits[--n];
}

/// One text as one line (pieces: as its own lines), in blocks, so that memory does not grow with it.
void print(const Tokenizer& tokenizer, const std::string& name, std::string_view text, const Options& options,
           const EncodeOptions& encode) {
    if (options.format == "jsonl") {
        nlohmann::ordered_json out{{"file", name}, {"ids", tokenizer.encode(text, encode)}};
        return write_stdout(json_line(out));
    }
    std::size_t count = 0;
    std::string line;
    const bool colours = stdout_colours();
    tokenizer.encode_blocks(text, encode, [&](std::span<const TokenId> ids) {
        if (options.format == "ids") {
            line.clear();
            for (std::size_t i = 0; i < ids.size(); i++) {
                if (count + i > 0) line += ' ';
                append_number(line, ids[i]);
            }
            write_stdout(line);
        } else if (options.format == "pieces") {
            write_stdout(pieces_for_terminal(tokenizer, ids, count == 0, colours));
        }
        count += ids.size();
    });
    if (options.format == "count")
        write_stdout(std::to_string(count) + (options.files.size() > 1 ? " " + printable(name) : "") + "\n");
    else
        write_stdout("\n");
}

/// A page of more would be one that no browser likes to show: every token takes some 80 bytes of it.
constexpr std::size_t most_shown = 1'000'000;

/// The beginning of `text` that a page shows: whole lines where there are any, whole characters always.
std::string_view shown_part(std::string_view text) {
    if (text.size() <= most_shown) return text;
    const std::size_t line = text.rfind('\n', most_shown - 1);
    const std::size_t end = line != text.npos && line >= most_shown / 2 ? line + 1 : most_shown;
    return text.substr(0, character_start(text, end));
}

void write_page(const Tokenizer& tokenizer, const TextInput& input, const Options& options,
                const EncodeOptions& encode) {
    const std::string_view part = shown_part(input.text());
    std::string title = input.name();
    if (part.size() < input.text().size()) {
        const std::string share = "the first " + human_bytes(static_cast<double>(part.size())) + " of " +
                                  human_bytes(static_cast<double>(input.text().size()));
        title += " (" + share + ")";
        note("linnet: the page shows " + share);
    }
    write_file(options.html, pieces_page(tokenizer, part, tokenizer.encode(part, encode), title),
               existing(options.overwrite));
    note_written(options.html);
}

void tokenize(const Tokenizer& tokenizer, const TextInput& input, const Options& options,
              const EncodeOptions& encode) {
    try {
        if (options.html.empty())
            print(tokenizer, input.name() == "stdin" ? "-" : input.name(), input.text(), options, encode);
        else
            write_page(tokenizer, input, options, encode);
    } catch (const Error& e) {
        // The tokenizer does not know whose text it has.
        const std::string line = e.what();
        if (line.starts_with("text: ")) throw Error(e.exit(), input.name() + line.substr(4));
        throw;
    }
}

int run(Options& options, const Globals& globals) {
    if (options.json) options.format = "jsonl";
    if (options.prompt && !options.files.empty())
        usage_error("--prompt", "not both --prompt and FILE", "both");
    if (!options.html.empty() && options.files.size() > 1)
        usage_error("--html", "one text", std::to_string(options.files.size()));
    const TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    EncodeOptions encode;
    encode.threads = globals.threads > 0 ? globals.threads : physical_cores();
    encode.parse_special = options.special;
    encode.add_special = options.add_special;
    if (!options.html.empty()) prepare_output(options.html, existing(options.overwrite));
    if (options.prompt) {
        tokenize(*tokenizer, TextInput(TextInput::Given{*options.prompt}, options.invalid), options, encode);
    } else {
        if (options.files.empty()) options.files = {"-"};
        for (const std::string& path : options.files)
            tokenize(*tokenizer, TextInput(path, options.invalid), options, encode);
    }
    flush_stdout();
    return 0;
}

}  // namespace

Action add_tokenize(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_tokenizer(app, options->tokenizer);
    app.add_option_function<std::string>(
           "-p,--prompt", [options](const std::string& text) { options->prompt = text; },
           "a text to tokenize instead of files")
        ->type_name("TEXT");
    auto* format =
        add_choice(app, "--format", options->format, {"ids", "pieces", "count", "jsonl"}, "what to print");
    app.add_flag("--json", options->json, "one JSON object per text: file, ids (--format jsonl)")
        ->excludes(format);
    add_choice(
        app, "--invalid", options->invalid, {"keep", "replace", "error"},
        "bytes that are no UTF-8: encode them as they are, as U+FFFD (as llama.cpp and tiktoken do), or "
        "stop");
    app.add_flag("--special", options->special, "read special tokens in the text");
    app.add_flag("--add-special", options->add_special,
                 "put the vocabulary's begin and end tokens around each text");
    add_output(app, "--html", options->html, "write a page to look at instead of printing")->type_name("OUT");
    add_overwrite(app, options->overwrite, "replace OUT where there is such a file");
    add_files(app, "FILE", options->files, "texts; none or -: stdin");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
