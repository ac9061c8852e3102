#include "commands/read_options.h"

#include <cstring>

#include "commands/options.h"

namespace linnet {
namespace {

std::string unescaped(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); i++) {
        char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
        const char* found = next ? std::strchr("ntr\\", next) : nullptr;
        if (!found) {
            out += text[i];
            continue;
        }
        out += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : '\\';
        i++;
    }
    return out;
}

}  // namespace

CLI::Option* add_read_options(CLI::App& app, ReadOptions& read) {
    CLI::Option* format = add_choice(app, "--input-format", read.format, {"auto", "text", "jsonl"},
                                     "what the files hold; auto: by the name");
    add_text(app, "--field", read.field, "of a JSON line that holds the document")->type_name("NAME");
    add_text(app, "--separator", read.separator, "between the documents of a text file, such as '\\n\\n'")
        ->type_name("TEXT")
        ->default_str("none: a file is a document");
    app.add_flag("--skip-bad", read.skip_bad, "count bad documents instead of stopping at the first");
    return format;
}

void finish_read_options(ReadOptions& read) {
    read.separator = unescaped(read.separator);
}

void add_fields(CLI::App& app, std::string& fields) {
    add_text(app, "--fields", fields,
             "of JSON lines that hold pairs, classes, tags or prompts with answers, "
             "separated by commas")
        ->type_name("NAME")
        ->default_str("source,target; text,label; words,tags; prompt,completion");
}

}  // namespace linnet
