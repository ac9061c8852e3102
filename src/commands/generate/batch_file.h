// The lines of --batch-file: prompts, each with settings of its own.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "commands/generate/settings.h"

namespace linnet {

struct BatchLine {
    std::size_t line = 0;  // in the file, from 1
    std::string prompt;
    TextSettings settings;
};

/// One JSON object per line ("-": stdin): `prompt`, and what else differs from `defaults`: the keys are those
/// of text_fields() and text_lists() (with "_" for "-", if one likes; "n" for "tokens"). Empty lines are
/// passed over. Error(Exit::input) naming the file, the line and the key; also where there is no line at all.
std::vector<BatchLine> read_batch_file(const std::string& path, const TextSettings& defaults);

}  // namespace linnet
