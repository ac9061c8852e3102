#include "commands/text_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/system.h"
#include "commands/options.h"
#include "data/document_reader.h"
#include "data/utf8_check.h"
#include "model/convert/source.h"
#include "model/model.h"
#include "text/unicode/unicode.h"
#include "train/run_model.h"

namespace linnet {

std::string read_pipe(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::is_fifo(path, ignored)) return {};
    const Descriptor pipe(open_file(path, O_RDONLY | O_NONBLOCK));
    if (pipe.fd < 0) fail_errno(path, "", errno);
    constexpr std::size_t step = std::size_t{1} << 16;
    for (std::string text;;) {
        const std::size_t size = text.size();
        text.resize(size + step);
        const ssize_t done = uninterrupted([&] { return ::read(pipe.fd, text.data() + size, step); });
        const int error = errno;
        text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(done, 0)));
        if (done > 0) continue;
        if (done == 0 && text.empty())
            fail_input(path, "", "a text", "a FIFO without one", "pipe into stdin and name it -");
        if (done == 0) return text;
        if (error != EAGAIN && error != EWOULDBLOCK) fail_errno(path, "", error);
        wait_for_input(pipe.fd);
    }
}

TextInput::TextInput(const std::string& path, std::string_view invalid) : name_(input_name(path)) {
    if (named_as_packed(path))
        fail_input(path, "", "a text", "a compressed file by its name",
                   "pipe what zcat or zstdcat makes of it into stdin, -; `linnet corpus` reads it as it is");
    if (path == "-")
        buffer_ = read_stdin(SIZE_MAX);
    else
        buffer_ = read_pipe(path);
    text_ = buffer_;
    if (path != "-" && buffer_.empty()) {
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
                             ->default_str("stdin, where it is no terminal");
    add_text(app, "-f,--file", file, what + ", from a file; -: stdin")->type_name("FILE")->excludes(given);
    app.add_flag("--keep-newline", keep_newline, "keep the line end at the end of FILE or stdin");
}

bool prompt_is_missing(const std::optional<std::string>& prompt, const std::string& file) {
    return !prompt && file.empty() && ::isatty(STDIN_FILENO);
}

std::string prompt_text(const std::optional<std::string>& prompt, const std::string& file,
                        bool keep_newline) {
    if (prompt) return *prompt;
    const bool from_file = !file.empty() && file != "-";
    if (prompt_is_missing(prompt, file)) return {};
    std::string text = from_file ? read_pipe(file) : std::string();
    if (text.empty()) text = read_input(from_file ? file : "-");
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
    if (prompt_is_missing(prompt, file)) usage_error("--prompt", "a text, or -f - to type it", "none");
    std::string text = prompt_text(prompt, file, keep_newline);
    if (text.empty()) fail_input(prompt_name(prompt, file), "", "a text", "none");
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

TokenizerPtr open_tokenizer(const std::string& path) {
    if (path.empty()) {
        std::shared_ptr<const Model> model = Model::open("");
        return TokenizerPtr(model, &model->tokenizer());
    }
    return tokenizer_at(tokenizer_of_run(path));
}

}  // namespace linnet
