// linnet tokenize: a text as token ids, pieces, counts or JSON.
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/system.h"
#include "base/team.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "data/utf8_check.h"
#include "text/inspect/show_pieces.h"
#include "text/naming.h"
#include "text/unicode/unicode.h"

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
class Printer {
  public:
    Printer(const Tokenizer& tokenizer, const std::string& name, const Options& options)
        : tokenizer_(tokenizer), options_(options), name_(name) {
        if (options.format != "jsonl") return;
        // Around the ids, which an empty list has the place of.
        const std::string around =
            json_line(nlohmann::ordered_json{{"file", name}, {"ids", nlohmann::ordered_json::array()}});
        const std::size_t ids = around.rfind("]}");
        write_stdout(around.substr(0, ids));
        end_ = around.substr(ids);
    }
    /// The next part of the text.
    void add(std::string_view text, const EncodeOptions& encode) {
        tokenizer_.encode_blocks(text, encode, [&](std::span<const TokenId> ids) {
            if (options_.format == "pieces")
                write_stdout(pieces_for_terminal(tokenizer_, ids, count_ == 0, colours_));
            else if (options_.format != "count")
                add_numbers(ids, options_.format == "jsonl" ? ',' : ' ');
            count_ += ids.size();
        });
    }
    void end() {
        if (options_.format == "count")
            write_stdout(std::to_string(count_) + (options_.files.size() > 1 ? " " + printable(name_) : ""));
        write_stdout(end_);
    }

  private:
    void add_numbers(std::span<const TokenId> ids, char between) {
        line_.clear();
        for (std::size_t i = 0; i < ids.size(); i++) {
            if (count_ + i > 0) line_ += between;
            append_number(line_, ids[i]);
        }
        write_stdout(line_);
    }

    const Tokenizer& tokenizer_;
    const Options& options_;
    const std::string name_;
    std::string end_ = "\n", line_;
    std::size_t count_ = 0;
    const bool colours_ = stdout_colours();
};

/// stdin in parts whose tokens are the whole text's, so that memory does not grow with it.
class StdinParts {
  public:
    explicit StdinParts(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
        ahead_.reserve(2 * piece + step);
    }
    /// False: nothing is left.
    bool next(std::string& part) {
        for (std::size_t wanted = 2 * piece;; wanted *= 2) {
            while (!ended_ && ahead_.size() < wanted) read();
            const bool small = ended_ && ahead_.size() < 2 * piece;
            const std::size_t place = small ? ahead_.size() : tokenizer_.cut(ahead_, piece);
            if (place == ahead_.size() && !ended_) continue;  // it cannot be parted there
            part.assign(ahead_, 0, place);
            ahead_.erase(0, place);
            return place > 0;
        }
    }

  private:
    static constexpr std::size_t piece = std::size_t{2} << 20, step = std::size_t{1} << 16;

    void read() {
        const std::size_t size = ahead_.size();
        ahead_.resize(size + step);
        wait_for_input(STDIN_FILENO);
        const ssize_t done =
            uninterrupted([&] { return ::read(STDIN_FILENO, ahead_.data() + size, ahead_.size() - size); });
        const int error = errno;
        ahead_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(done, 0)));
        if (done < 0 && error != EAGAIN && error != EWOULDBLOCK) fail_errno("stdin", "", error);
        ended_ = done == 0;
    }

    const Tokenizer& tokenizer_;
    std::string ahead_;
    bool ended_ = false;
};

/// What is printed of stdin where it may be read in parts.
void print_stdin(const Tokenizer& tokenizer, const Options& options, EncodeOptions encode) {
    Printer printer(tokenizer, "-", options);
    StdinParts parts(tokenizer);
    std::size_t before = 0;
    for (std::string part, repaired; parts.next(part); encode.continues = true) {
        if (!encode.continues) refuse_wide_encoding("stdin", part);
        if (options.invalid == "replace") {
            repaired.clear();
            append_repaired(part, repaired);
            part.swap(repaired);
        }
        behind(before, [&] { printer.add(part, encode); });
        before += part.size();
    }
    printer.end();
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
    install_stop_signals();  // the file is written whole
    write_file(options.html, pieces_page(tokenizer, part, tokenizer.encode(part, encode), title),
               existing(options.overwrite));
    note_written(options.html);
}

void print(const Tokenizer& tokenizer, const TextInput& input, const Options& options,
           const EncodeOptions& encode) {
    Printer printer(tokenizer, input.name() == "stdin" ? "-" : input.name(), options);
    printer.add(input.text(), encode);
    printer.end();
}

void tokenize(const Tokenizer& tokenizer, const TextInput& input, const Options& options,
              const EncodeOptions& encode) {
    naming(input.name(), [&] {
        if (options.html.empty())
            print(tokenizer, input, options, encode);
        else
            write_page(tokenizer, input, options, encode);
    });
}

int run(Options& options, const Globals& globals) {
    if (options.json) options.format = "jsonl";
    if (options.prompt && !options.files.empty())
        usage_error("--prompt", "not both --prompt and FILE", "both");
    if (!options.html.empty() && options.files.size() > 1)
        usage_error("--html", "one text", std::to_string(options.files.size()));
    const TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    EncodeOptions encode;
    encode.threads = threads_or_cores(globals.threads);
    encode.parse_special = options.special;
    encode.add_special = options.add_special;
    if (!options.html.empty()) prepare_output(options.html, existing(options.overwrite));
    if (options.prompt) {
        tokenize(*tokenizer, TextInput(TextInput::Given{*options.prompt}, options.invalid), options, encode);
    } else {
        if (options.files.empty()) options.files = {"-"};
        if (std::ranges::count(options.files, "-") > 1)
            fail(Exit::usage, "stdin", "", "one use of it", "two");
        // What spells a control token, what stands around a text and a fault's place are of the text as a
        // whole.
        const bool in_parts =
            options.html.empty() && !options.special && !options.add_special && options.invalid != "error";
        for (const std::string& path : options.files)
            if (path == "-" && in_parts)
                naming("stdin", [&] { print_stdin(*tokenizer, options, encode); });
            else
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
    add_overwrite(app, options->overwrite);
    add_files(app, "FILE", options->files, "texts; none or -: stdin");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
