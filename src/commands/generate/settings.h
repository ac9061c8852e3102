// How one text is written: the settings that have an option of the command and a key of a batch file's lines.
#pragma once
#include <cstdint>
#include <vector>

#include "base/fields.h"
#include "generate/generator.h"

namespace CLI {
class App;
}

namespace linnet {

struct TextSettings {
    GenerateOptions generate;
    std::int64_t seed = -1;  // -1: chosen by chance
    bool special = false;    // text in the prompt that spells a control token is one
};

/// Named as the options are, without the dashes before them. (`stop` is not among them: it is a list.)
std::vector<Field> text_fields(TextSettings& settings);

/// An option for each of them.
void add_text_options(CLI::App& app, TextSettings& settings);

}  // namespace linnet
