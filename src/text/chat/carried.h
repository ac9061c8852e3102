// Chat templates as models and adapters carry them: which of several counts.
#pragma once
#include <functional>
#include <span>
#include <string>

namespace linnet {

class Gguf;

/// A chat template as it was read.
struct ChosenTemplate {
    std::string source{};  // empty where nothing carries one
    // Where it stands, for errors: a file, and the key in it; no key where the file is the template.
    std::string file{}, place{};
};

/// The chat template that a model or an adapter may carry. It is read where it is asked for, so that a bad
/// one fails no command that needs none.
struct CarriedTemplate {
    std::function<ChosenTemplate()> read{};  // gives an empty source where it has none; may be null: likewise

    std::string source() const { return read ? read().source : ""; }
};

/// What a GGUF file has.
CarriedTemplate carried_by(const Gguf& file);

/// The first of `by_rank` that linnet knows, else the first that there is. A note says of each that is passed
/// over for a known one. An adapter stands before its model, as its conversations were the later ones in
/// training; but where linnet cannot render its template the model's serves, which it was tuned on top of:
/// an adapter must not take from a model that it can be talked with.
ChosenTemplate choose_template(std::span<const CarriedTemplate> by_rank);

}  // namespace linnet
