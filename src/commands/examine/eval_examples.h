// What eval measures of encoders and encoder–decoders.
#pragma once
#include <memory>
#include <string>

#include "commands/commands.h"
#include "data/document_reader.h"
#include "generate/beam.h"

namespace linnet {

struct ExampleEval {
    std::string file, fields;
    ReadOptions read;                    // of texts
    std::int64_t context = 0, most = 0;  // most: examples or windows at most, 0: all
    BeamOptions beam{.beams = 1};
    DType state = EngineOptions().state;
    bool json = false, resize = false;
};

/// Masks: loss and share of masked tokens that are found, over windows of a text. Classes and tags: accuracy
/// over examples; of pictures, over IDX files or folders as in training. Pairs: exact answers, errors by
/// words and characters, chrF, BLEU; several lines with one source are answers that are all accepted.
int eval_examples(const std::shared_ptr<const Model>& model, const ExampleEval& options,
                  const Globals& globals);

}  // namespace linnet
