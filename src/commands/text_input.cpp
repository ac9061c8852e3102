#include "commands/text_input.h"

#include <unistd.h>

#include <cstdint>

#include "base/error.h"
#include "base/processors.h"
#include "commands/options.h"
#include "data/utf8_check.h"
#include "model/convert/source.h"
#include "model/model.h"
#include "text/unicode/unicode.h"
#include "train/run_model.h"

namespace linnet {

TextInput::TextInput(const std::string& path, std::string_view invalid) : name_(input_name(path)) {
    if (path == "-") {
        buffer_ = read_stdin(SIZE_MAX);
        text_ = buffer_;
    } else {
        file_ = MappedFile(path);
        text_ = file_.text();
    }
    check(invalid);
}

TextInput::TextInput(Given given, std::string_view invalid)
    : buffer_(std::move(given.text)), name_("--prompt"), text_(buffer_) {
    check(invalid);
}

void TextInput::check(std::string_view invalid) {
    refuse_wide_encoding(name_, text_);
    if (invalid == "keep") return;
    const std::size_t fault = valid_utf8_prefix(text_);
    if (fault == text_.size()) return;
    if (invalid == "error")
        fail_input(name_, "byte " + std::to_string(fault), "UTF-8", utf8_fault_name(text_, fault),
                   "--invalid replace or keep reads it all the same");
    std::string repaired;
    append_repaired(text_, repaired);
    buffer_ = std::move(repaired);
    text_ = buffer_;
}

void add_prompt(CLI::App& app, const std::string& what, std::optional<std::string>& prompt, std::string& file,
                bool& keep_newline) {
    CLI::Option* given = app.add_option_function<std::string>(
                                "-p,--prompt", [&prompt](const std::string& text) { prompt = text; }, what)
                             ->type_name("TEXT")
                             ->default_str("stdin");
    add_text(app, "-f,--file", file, what + ", from a file; -: stdin")->type_name("FILE")->excludes(given);
    app.add_flag("--keep-newline", keep_newline, "keep the line end at the end of FILE or stdin");
}

std::string prompt_text(const std::optional<std::string>& prompt, const std::string& file,
                        bool keep_newline) {
    if (prompt) return *prompt;
    const bool from_file = !file.empty() && file != "-";
    if (!from_file && file.empty() && ::isatty(STDIN_FILENO)) return {};
    std::string text = read_input(from_file ? file : "-");
    refuse_wide_encoding(prompt_name(prompt, file), text);
    if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
    if (!keep_newline && text.ends_with('\n')) {
        text.pop_back();
        if (text.ends_with('\r')) text.pop_back();
    }
    return text;
}

std::string prompt_lines(const std::optional<std::string>& prompt, const std::string& file,
                         bool keep_newline) {
    if (!prompt && file.empty() && ::isatty(STDIN_FILENO))
        usage_error("--prompt", "a text, or -f - to type it", "none");
    std::string text = prompt_text(prompt, file, keep_newline);
    const std::size_t fault = valid_utf8_prefix(text);
    if (fault == text.size()) return text;
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(fault), '\n') + 1;
    fail_input(prompt_name(prompt, file), "line " + std::to_string(line), "UTF-8",
               utf8_fault_name(text, fault));
}

std::string prompt_name(const std::optional<std::string>& prompt, const std::string& file) {
    return prompt ? "--prompt" : input_name(file.empty() ? "-" : file);
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < text.size() || lines.empty();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        begin = end + 1;
    }
    return lines;
}

std::vector<TokenId> encode_for_windows(const Tokenizer& tokenizer, const TextInput& text, int threads) {
    EncodeOptions encode;
    encode.threads = threads_or_cores(threads);
    std::vector<TokenId> ids;
    tokenizer.encode(text.text(), ids, encode);
    return ids;
}

void require_window(const TextInput& text, std::size_t tokens, std::int64_t size) {
    if (tokens < static_cast<std::size_t>(size))
        fail_input(text.name(), "", "a text of at least one window, " + std::to_string(size) + " tokens",
                   std::to_string(tokens) + " tokens", "--ctx makes windows smaller");
}

TokenizerPtr open_tokenizer(const std::string& path) {
    if (path.empty()) {
        std::shared_ptr<const Model> model = Model::open("");
        return TokenizerPtr(model, &model->tokenizer());
    }
    return tokenizer_at(tokenizer_of_run(path));
}

}  // namespace linnet
