// What commands read: texts and prompts from files, options or stdin; vocabularies from files or the built-in
// model.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"

namespace CLI {
class App;
}

namespace linnet {

/// All that comes out of a FIFO, such as <(…) of a shell; one that nobody writes to is refused, not waited
/// for. Nothing where `path` is something else.
std::string read_pipe(const std::string& path);

/// A regular file, mapped, or stdin ("-") or a pipe, read whole. UTF-16 and names of compressed files are
/// refused (Exit::input). Bytes that are no UTF-8: `invalid` "keep" leaves them, "replace" puts U+FFFD for
/// each, "error" refuses the first.
class TextInput {
  public:
    explicit TextInput(const std::string& path, std::string_view invalid = "keep");
    /// The text of --prompt.
    struct Given {
        std::string text;
    };
    explicit TextInput(Given given, std::string_view invalid = "keep");
    TextInput(const TextInput&) = delete;  // text() may lie inside
    std::string_view text() const { return text_; }
    const std::string& name() const { return name_; }

  private:
    void check(std::string_view invalid);
    MappedFile file_;
    std::string buffer_, name_;
    std::string_view text_;
};

/// -p TEXT, -f FILE (- is stdin) and --keep-newline, as every command that takes one text declares them.
/// `what` begins the help: "text to continue".
void add_prompt(CLI::App& app, const std::string& what, std::optional<std::string>& prompt, std::string& file,
                bool& keep_newline);

/// Whether none of them is given and nothing is piped in: stdin is a terminal.
bool prompt_is_missing(const std::optional<std::string>& prompt, const std::string& file);

/// The text that they mean: `prompt`, else the file's, else stdin's (nothing where stdin is a terminal:
/// nobody is kept waiting). Of a file and of stdin a byte order mark is dropped, and unless `keep_newline`
/// one line end at the end, which is the editor's or echo's. Error(Exit::input) for UTF-16 and UTF-32.
std::string prompt_text(const std::optional<std::string>& prompt, const std::string& file, bool keep_newline);
/// The same where there must be one: Exit::usage where stdin is a terminal, Exit::input where it
/// is empty or no UTF-8.
std::string prompt_lines(const std::optional<std::string>& prompt, const std::string& file,
                         bool keep_newline);

/// What that text is called in errors: "--prompt", "stdin" or the file's name.
std::string prompt_name(const std::optional<std::string>& prompt, const std::string& file);

/// The lines of a text, without their ends; what stands behind the last line end is one where it is not
/// empty, or where there is no other.
std::vector<std::string_view> lines_of(std::string_view text);

/// load_tokenizer of what `path` stands for (tokenizer_of_run), or the built-in model's where it is empty.
TokenizerPtr open_tokenizer(const std::string& path);

}  // namespace linnet
