#include "commands/generate/settings.h"

#include "commands/options.h"

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

namespace {

/// An option of the name and the limits of a field.
CLI::Option* add_field(CLI::App& app, const std::string& names, const Field& field) {
    if (auto* const* whole = std::get_if<std::int64_t*>(&field.target))
        return add_integer(app, names, **whole, static_cast<std::int64_t>(field.low),
                           static_cast<std::int64_t>(field.high), field.help);
    if (auto* const* real = std::get_if<double*>(&field.target))
        return add_real(app, names, **real, field.low, field.high, field.help);
    return app.add_flag(names, *std::get<bool*>(field.target), field.help);
}

}  // namespace

void add_text_options(CLI::App& app, TextSettings& settings) {
    for (const Field& field : text_fields(settings)) {
        CLI::Option* option = add_field(app, (field.key == "tokens" ? "-n,--" : "--") + field.key, field);
        if (field.key == "top-k") option->type_name("K");
        if (field.key == "top-p" || field.key == "min-p") option->type_name("P");
        if (field.key == "repeat-penalty") option->type_name("R");
        if (field.key == "seed") {
            option->type_name("S")->default_str("random");
            add_hidden_names(app, "-s", option);
        }
        if (field.key == "ignore-end") add_hidden_names(app, "--ignore-eos", option);  // llama.cpp's name
    }
}

}  // namespace linnet
