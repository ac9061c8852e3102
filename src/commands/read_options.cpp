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
    add_text(app, "--field", read.field, "JSON key of the document, in JSON Lines")->type_name("NAME");
    add_text(app, "--separator", read.separator, "text between the documents of a file, such as '\\n\\n'")
        ->type_name("TEXT")
        ->default_str("none: a file is a document");
    app.add_flag("--skip-bad", read.skip_bad,
                 "skip and count bad documents instead of stopping at the first");
    return format;
}

std::string given_read_option(const CLI::App& app) {
    for (const char* name : {"--input-format", "--field", "--separator", "--skip-bad"})
        if (app.get_option(name)->count() > 0) return name;
    return {};
}

void finish_read_options(ReadOptions& read) {
    read.separator = unescaped(read.separator);
}

void add_fields(CLI::App& app, std::string& fields, const FieldKinds& of) {
    add_text(app, "--fields", fields,
             "JSON keys of " + std::string(of.kinds) + ", in JSON Lines, separated by commas")
        ->type_name("LIST")
        ->default_str(of.keys);
}

}  // namespace linnet
