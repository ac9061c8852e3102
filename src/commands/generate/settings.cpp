#include "commands/generate/settings.h"

namespace linnet {

std::vector<Field> text_fields(TextSettings& settings) {
    GenerateOptions& generate = settings.generate;
    SamplerOptions& sampler = generate.sampler;
    return {
        {"tokens", &generate.tokens, "tokens to write; -1: until something else ends it", -1},
        {"temp", &sampler.temperature, "temperature; 0: always the likeliest token", 0, 1e9},
        {"top-k", &sampler.top_k, "draw from the K likeliest; 0: all", 0},
        {"top-p", &sampler.top_p, "draw from the likeliest that together have probability P; 1: all", 0, 1},
        {"min-p", &sampler.min_p, "draw from those with at least P of the likeliest's probability", 0, 1},
        {"repeat-penalty", &sampler.repeat_penalty, "above 1: recent tokens become less likely", 1e-3, 1e3},
        {"repeat-window", &sampler.repeat_window, "how many recent tokens that means", 0},
        {"seed", &settings.seed, "same seed, same text", 0, 9.2e18},
        {"ignore-end", &generate.ignore_end, "go on after the model's end token"},
        {"special", &settings.special, "text in the prompt that spells a control token is one"},
    };
}

}  // namespace linnet
