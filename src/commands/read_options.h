// The options by which commands say how documents are read from files.
#pragma once
#include <string>

#include "data/document_reader.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace linnet {

/// --input-format --field --separator --skip-bad; returns the first.
CLI::Option* add_read_options(CLI::App& app, ReadOptions& read);

/// Which of these options was given, the first of them; empty where none was.
std::string given_read_option(const CLI::App& app);

/// Call after parsing: "\n", "\t" and "\\" in --separator become what they mean.
void finish_read_options(ReadOptions& read);

/// Kinds of examples, and the keys that each has where --fields is left out.
struct FieldKinds {
    const char *kinds, *keys;
};
inline constexpr FieldKinds line_fields{"pairs, classes or tags", "source,target; text,label; words,tags"};
inline constexpr FieldKinds all_fields{"pairs, classes, tags or prompts with answers",
                                       "source,target; text,label; words,tags; prompt,completion"};
/// --fields, of what examples are read from.
void add_fields(CLI::App& app, std::string& fields, const FieldKinds& of);

}  // namespace linnet
