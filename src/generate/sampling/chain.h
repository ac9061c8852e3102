// The samplers as a table, and the order in which a list names them.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "generate/sampling/draw.h"

namespace linnet {

/// What a sampler does to candidates.
enum class Effect {
    reweighs,   // changes logits
    cuts,       // removes some, never all, never the likeliest
    cuts_best,  // removes some, never all
    scales,     // sets the temperature
};
struct SamplerRow {
    std::string_view name;
    std::string_view other_names;  // llama.cpp's, separated by spaces
    Effect effect;
    bool (*active)(const SamplerOptions&);
    void (*change)(Draw&);
    bool (*leaves_one)(const SamplerOptions&);  // the likeliest alone; none: never
};
std::span<const SamplerRow> samplers();

using SamplerChain = std::vector<const SamplerRow*>;
/// The samplers that a list names, separated by ';' or ','; "-" is read as "_". An Error with this code for a
/// name that is unknown or comes twice, beginning with `file` and `where`.
SamplerChain sampler_chain(std::string_view list, Exit exit = Exit::input, std::string_view file = {},
                           std::string_view where = "samplers");

/// Mirostat 2 (Basu et al. 2021, "Mirostat: a neural text decoding algorithm that directly controls
/// perplexity", algorithm 2; llama.cpp's form): keeps what surprises by at most `mu` bits, takes one of
/// them, and moves mu by how much it surprised.
TokenId take_mirostat(Draw& draw, double& mu);

/// Don't repeat yourself (p-e-w 2024, github.com/oobabooga/text-generation-webui/pull/5677): a token that
/// would lengthen a repetition of n tokens loses multiplier · base^(n - allowed length).
void apply_dry(Draw& draw);

}  // namespace linnet
