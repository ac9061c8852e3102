// linnet embed: a vector for every line of a text.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_line.h"
#include "base/output.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "model/encode/encoder_text.h"
#include "text/naming.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file, pool, out;
    std::optional<std::string> prompt;
    bool keep_newline = false, json = false, raw = false, truncate = false, overwrite = false;
};

/// To length 1; a vector of zeros stays.
void normalize(std::span<float> vector) {
    double square = 0;
    for (float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
    if (square == 0) return;
    const double scale = 1 / std::sqrt(square);
    for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
}

/// NumPy's format, version 1.0: [rows, columns] of little-endian floats.
std::string npy(std::span<const float> values, std::size_t columns) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(values.size() / columns) + ", " + std::to_string(columns) + "), }";
    constexpr std::size_t before = 10, unit = 64;
    header.resize((before + header.size() + 1 + unit - 1) / unit * unit - before - 1, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size() & 0xff), file += static_cast<char>(header.size() >> 8);
    file += header;
    file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return file;
}

class Embedding {
  public:
    Embedding(const Options& options, const Globals& globals)
        : options_(options), encoder_(Model::open(options.model), globals.threads) {
        const ModelConfig& config = encoder_.model().config();
        if (config.reads_patches())
            fail_input(encoder_.model().path(), "model.image.patch", "0, a model of texts",
                       std::to_string(config.image.patch), "linnet predict serves pictures");
        pooling_ = pooling_from_name(options.pool.empty() ? config.pooling : options.pool);
    }

    int run() {
        const std::string text = prompt_lines(options_.prompt, options_.file, options_.keep_newline);
        std::vector<std::string_view> lines = lines_of(text);
        std::vector<EncoderInput> inputs;
        for (std::size_t i = 0; i < lines.size(); i++) {
            const std::string place = "line " + std::to_string(i + 1);
            inputs.push_back(naming(source() + ": " + place, [&] { return input_of(lines[i], place); }));
        }
        std::span<const EncoderInput> rest(inputs);
        std::size_t line = 0;
        while (!rest.empty()) {
            if (int signal = stop_signal()) return 128 + signal;
            const std::size_t count = encoder_.fitting(rest), width = columns();
            std::span<const float> made = encoder_.vectors(rest.first(count), pooling_);
            for (std::size_t i = 0; i < count; i++, line++) {
                std::vector<float> vector(made.begin() + static_cast<std::ptrdiff_t>(i * width),
                                          made.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
                if (!options_.raw) normalize(vector);
                put(lines[line], vector);
            }
            rest = rest.subspan(count);
        }
        if (options_.out.empty()) return 0;
        write_file(options_.out, npy(all_, columns()), existing(options_.overwrite));
        note_written(options_.out);
        return 0;
    }

  private:
    std::size_t columns() const { return static_cast<std::size_t>(encoder_.model().config().last_width()); }

    EncoderInput input_of(std::string_view text, const std::string& place) const {
        const ModelConfig& config = encoder_.model().config();
        EncoderInput input = text_input(encoder_.model().tokenizer(), text, false);
        const auto room = static_cast<std::size_t>(config.context);
        if (input.tokens.empty()) fail_input(source(), place, "a text of at least one token", "none");
        if (input.tokens.size() > room && !options_.truncate)
            fail_input(source(), place, "at most " + std::to_string(room) + " tokens, the model's context",
                       std::to_string(input.tokens.size()), "--truncate drops the rest");
        if (input.tokens.size() > room) {  // what ends a text stays
            const TokenId end = input.tokens.back();
            input.tokens.resize(room);
            if (EncoderMarks(encoder_.model().tokenizer()).separator == end) input.tokens.back() = end;
        }
        return input;
    }

    std::string source() const { return prompt_name(options_.prompt, options_.file); }

    void put(std::string_view text, std::span<const float> vector) {
        if (!options_.out.empty()) {
            all_.insert(all_.end(), vector.begin(), vector.end());
            return;
        }
        std::string line;
        if (options_.json) {
            nlohmann::ordered_json record{{"text", text}, {"embedding", nlohmann::json::array()}};
            for (float x : vector) record["embedding"].push_back(x);
            line = json_line(record);
        } else {
            char number[32];
            for (float x : vector) {
                std::snprintf(number, sizeof number, "%s%.6f", line.empty() ? "" : " ",
                              static_cast<double>(x));
                line += number;
            }
            line += "\n";
        }
        write_stdout(line);
    }

    const Options& options_;
    Encoder encoder_;
    Pooling pooling_ = Pooling::mean;
    std::vector<float> all_;
};

}  // namespace

Action add_embed(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model)->required();  // the built-in one is no encoder
    add_prompt(app, "texts, one per line", options->prompt, options->file, options->keep_newline);
    add_choice(app, "--pool", options->pool, {pooling_names.begin(), pooling_names.end()},
               "how the rows of a text become one vector")
        ->default_str("the model's own");
    app.add_flag("--raw", options->raw, "leave vectors as they are instead of scaling them to length 1");
    app.add_flag("--truncate", options->truncate, "drop the end of a text that is longer than the context");
    auto* json = app.add_flag("--json", options->json, "JSON objects, one per line: text, embedding");
    add_output(app, "-o,--out", options->out, "write a NumPy array instead, .npy")->excludes(json);
    add_overwrite(app, options->overwrite);
    return [options, &globals] {
        install_stop_signals();
        if (!options->out.empty()) {
            if (!options->out.ends_with(".npy"))
                usage_error("--out", "a name that ends in .npy", "'" + options->out + "'");
            prepare_output(options->out, existing(options->overwrite));
        }
        return Embedding(*options, globals).run();
    };
}

}  // namespace linnet
