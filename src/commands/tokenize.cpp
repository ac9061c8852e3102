// linnet tokenize: a text as token ids, pieces, counts or JSON.
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/team.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "text/inspect/show_pieces.h"

namespace linnet {
namespace {

struct Options {
    std::string tokenizer, format = "ids", html, invalid = "keep";
    std::vector<std::string> files;
    bool special = false, add_special = false, overwrite = false;
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
        return write_stdout(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
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
        write_stdout(std::to_string(count) + (options.files.size() > 1 ? " " + name : std::string()) + "\n");
    else
        write_stdout("\n");
}

int run(const Options& options, const Globals& globals) {
    const TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    EncodeOptions encode;
    encode.threads = globals.threads > 0 ? globals.threads : physical_cores();
    encode.parse_special = options.special;
    encode.add_special = options.add_special;
    const std::vector<std::string> files =
        options.files.empty() ? std::vector<std::string>{"-"} : options.files;
    if (!options.html.empty() && files.size() != 1)
        usage_error("--html", "one text", std::to_string(files.size()));
    if (!options.html.empty()) prepare_output(options.html, existing(options.overwrite));
    for (const std::string& path : files) {
        TextInput input(path, options.invalid);
        try {
            if (options.html.empty()) {
                print(*tokenizer, path, input.text(), options, encode);
                continue;
            }
            const std::vector<TokenId> ids = tokenizer->encode(input.text(), encode);
            write_file(options.html, pieces_page(*tokenizer, input.text(), ids, path == "-" ? "stdin" : path),
                       existing(options.overwrite));
            note_written(options.html);
        } catch (const Error& e) {
            // The tokenizer does not know whose text it has.
            const std::string line = e.what();
            if (line.starts_with("text: ")) throw Error(e.exit(), input.name() + line.substr(4));
            throw;
        }
    }
    flush_stdout();
    return 0;
}

}  // namespace

Action add_tokenize(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_text(app, "-m,--model", options->tokenizer,
             "GGUF, tokenizer.json, .tiktoken or SentencePiece model; left out: the built-in model's");
    add_choice(app, "--format", options->format, {"ids", "pieces", "count", "jsonl"}, "what to print");
    add_choice(
        app, "--invalid", options->invalid, {"keep", "replace", "error"},
        "bytes that are no UTF-8: encode them as they are, as U+FFFD (as llama.cpp and tiktoken do), or "
        "stop");
    app.add_flag("--special", options->special, "read special tokens in the text");
    app.add_flag("--add-special", options->add_special,
                 "put the vocabulary's begin and end tokens around each text");
    add_text(app, "--html", options->html, "write a page to look at instead of printing")->type_name("OUT");
    add_overwrite(app, options->overwrite, "replace OUT where there is such a file");
    app.add_option("FILE", options->files, "texts; none or -: stdin");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
