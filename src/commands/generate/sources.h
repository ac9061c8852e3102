// The answers of an encoder–decoder, one for each source.
#pragma once
#include <memory>
#include <string>

#include "commands/generate/settings.h"
#include "generate/beam.h"

namespace linnet {

struct AnswerOptions {
    std::string text, name;  // sources, one per line; where they come from, for errors
    std::string format;      // text, ids or jsonl
    TextSettings settings;   // resolved
    std::int64_t seed = 0, samples = 1, parallel = 8;
    EngineOptions engine;
    BeamOptions beam;  // with one beam: sampling, or greedy
};

/// Prints one answer per line, in the order of the sources. Error(Exit::input) naming the line of a source
/// that is empty or longer than the context.
int answer_sources(const std::shared_ptr<const Model>& model, const AnswerOptions& options);

}  // namespace linnet
