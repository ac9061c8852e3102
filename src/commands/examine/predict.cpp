// linnet predict: what an encoder tells: masked tokens, classes of texts and pictures, tags of words.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_line.h"
#include "base/log_sum.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/terminal_text.h"
#include "commands/text_input.h"
#include "data/labelled/images.h"
#include "generate/continuation.h"
#include "model/encode/encoder_text.h"
#include "text/naming.h"

namespace linnet {
namespace {

using Record = nlohmann::ordered_json;

struct Options {
    std::string model, file;
    std::optional<std::string> prompt;
    std::int64_t top = 0;
    bool keep_newline = false, json = false, resize = false;
};

struct Guess {
    std::int64_t id;
    double probability;
};

std::vector<Guess> best(std::span<const float> logits, std::size_t count) {
    const double whole = log_sum(logits);
    std::vector<Guess> guesses;
    for (TokenId id : likeliest(logits, count))
        guesses.push_back({id, std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)]) - whole)});
    return guesses;
}

std::string shown(double probability) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", probability);
    return text;
}

class Predictor {
  public:
    Predictor(const Options& options, const Globals& globals)
        : options_(options),
          encoder_(Model::open(options.model), globals.threads),
          config_(encoder_.model().config()),
          labels_(labels_of(encoder_.model())),
          marks_(encoder_.model().tokenizer()) {
        if (config_.head.kind == "tokens" && !marks_.mask)
            fail_input(encoder_.model().path(), "vocabulary", "a mask token, [MASK] or <mask>", "none");
    }

    int run() {
        std::string text;
        std::vector<std::string> names;
        std::vector<EncoderInput> inputs;
        if (config_.reads_patches()) {
            read_pictures(names, inputs);
        } else {
            text = prompt_lines(options_.prompt, options_.file, options_.keep_newline);
            for (std::string_view line : lines_of(text)) {
                const std::string place = "line " + std::to_string(inputs.size() + 1);
                inputs.push_back(naming(source() + ": " + place, [&] { return input_of(line, place); }));
                names.emplace_back(line);
            }
        }
        std::span<const EncoderInput> rest(inputs);
        std::size_t done = 0;
        while (!rest.empty()) {
            if (int signal = stop_signal()) return 128 + signal;
            const std::size_t count = encoder_.fitting(rest),
                              classes = static_cast<std::size_t>(encoder_.classes());
            std::span<const float> logits = encoder_.logits(rest.first(count));
            for (std::size_t i = 0; i < count; i++, done++) {
                const std::size_t rows = config_.head.kind == "classes" ? 1 : inputs[done].wanted.size();
                std::vector<std::vector<Guess>> told;
                for (std::size_t r = 0; r < rows; r++, logits = logits.subspan(classes))
                    told.push_back(best(logits.first(classes), top()));
                put(names[done], inputs[done], told);
            }
            rest = rest.subspan(count);
        }
        return 0;
    }

  private:
    const Tokenizer& tokenizer() const { return encoder_.model().tokenizer(); }
    std::size_t top() const {
        if (options_.top > 0) return static_cast<std::size_t>(options_.top);
        return config_.head.kind == "tokens" ? 5 : 1;
    }
    std::string source() const { return prompt_name(options_.prompt, options_.file); }

    EncoderInput input_of(std::string_view line, const std::string& place) const {
        EncoderInput input;
        if (config_.head.kind == "tags") {
            input = words_input(tokenizer(), marks_, line);
        } else if (config_.head.kind == "classes") {
            const std::size_t tab = line.find('\t');
            if (tab != std::string_view::npos &&
                (single_ || line.find('\t', tab + 1) != std::string_view::npos))
                fail_input(source(), place,
                           single_ ? "one text, as the model learned from" : "at most two texts",
                           single_ ? "two, separated by a tab" : "more");
            input = tab == std::string_view::npos
                        ? pair_input(tokenizer(), marks_, line, std::nullopt)
                        : pair_input(tokenizer(), marks_, line.substr(0, tab), line.substr(tab + 1));
        } else {
            input = text_input(tokenizer(), line, true);
            const TokenId mask = *marks_.mask;
            for (std::size_t i = 0; i < input.tokens.size(); i++)
                if (input.tokens[i] == mask) input.wanted.push_back(static_cast<std::int32_t>(i));
            if (input.wanted.empty())
                fail_input(source(), place, "a text with " + std::string(tokenizer().piece(mask)), "none");
        }
        if (input.tokens.empty() || (config_.head.kind == "tags" && input.wanted.empty()))
            fail_input(source(), place, "a text of at least one token", "none");
        if (input.tokens.size() > static_cast<std::size_t>(config_.context))
            fail_input(source(), place,
                       "at most " + std::to_string(config_.context) + " tokens, the model's context",
                       std::to_string(input.tokens.size()));
        return input;
    }

    void read_pictures(std::vector<std::string>& names, std::vector<EncoderInput>& inputs) const {
        if (options_.file.empty() || options_.file == "-" || options_.prompt)
            usage_error("--file", "the path of a picture (PNG, PGM, PPM) or of an IDX file of pictures",
                        options_.prompt         ? "--prompt"
                        : options_.file.empty() ? "none"
                                                : "stdin");
        const PictureShape shape{config_.image.width, config_.image.height, config_.image.channels};
        const Pictures pictures = read_pictures_file(options_.file, shape, options_.resize);
        for (std::size_t i = 0; i < pictures.count(); i++) {
            names.push_back(pictures.count() == 1 ? options_.file : options_.file + ":" + std::to_string(i));
            inputs.emplace_back().patches =
                patches_of(pictures.shape, pictures[i], config_.image.patch, config_.pooling == "first");
        }
    }

    std::string name_of(std::int64_t id) const {
        if (config_.head.kind != "tokens") return labels_[static_cast<std::size_t>(id)];
        return token_text(tokenizer(), static_cast<TokenId>(id));
    }

    Record record_of(const std::vector<Guess>& guesses) const {
        Record list = Record::array();
        for (const Guess& g : guesses)
            list.push_back({{config_.head.kind == "tokens" ? "token" : "label", name_of(g.id)},
                            {"id", g.id},
                            {"probability", g.probability}});
        return list;
    }

    std::string line_of_guesses(const std::vector<Guess>& guesses) const {
        std::string line;
        for (const Guess& g : guesses)
            line += (line.empty() ? "" : "  ") + printable(name_of(g.id)) + " " + shown(g.probability);
        return line;
    }

    void put(const std::string& name, const EncoderInput& input,
             const std::vector<std::vector<Guess>>& told) const {
        options_.json ? put_json(name, input, told) : put_text(name, told);
    }

    void put_json(const std::string& name, const EncoderInput& input,
                  const std::vector<std::vector<Guess>>& told) const {
        Record record{{config_.reads_patches() ? "picture" : "text", name}};
        if (config_.head.kind == "classes") {
            record["top"] = record_of(told[0]);
        } else {
            const char* key = config_.head.kind == "tags" ? "words" : "masks";
            record[key] = Record::array();
            const std::vector<std::string_view> words = split(name, ' ');
            for (std::size_t i = 0; i < told.size(); i++) {
                Record one;
                if (config_.head.kind == "tags")
                    one["word"] = words[i];
                else
                    one["position"] = input.wanted[i];
                one["top"] = record_of(told[i]);
                record[key].push_back(one);
            }
        }
        write_stdout(json_line(record));
    }

    /// Classes: a line for each text. Masks: a line for each. Tags: word/TAG, or with --top more a line for
    /// each word.
    void put_text(const std::string& name, const std::vector<std::vector<Guess>>& told) const {
        std::string out;
        const std::vector<std::string_view> words = split(name, ' ');
        for (std::size_t i = 0; i < told.size(); i++) {
            if (config_.head.kind != "tags")
                out += line_of_guesses(told[i]) + "\n";
            else if (top() > 1)
                out += printable(words[i]) + "  " + line_of_guesses(told[i]) + "\n";
            else
                out += (i == 0 ? "" : " ") + printable(words[i]) + "/" + printable(name_of(told[i][0].id)) +
                       "/" + shown(told[i][0].probability) + (i + 1 == told.size() ? "\n" : "");
        }
        write_stdout(out);
    }

    const Options& options_;
    Encoder encoder_;
    const ModelConfig& config_;
    std::vector<std::string> labels_;
    bool single_ = reads_single_texts(encoder_.model());
    EncoderMarks marks_;
};

}  // namespace

Action add_predict(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model)->required();  // the built-in one is no encoder
    add_prompt(app,
               "texts, one per line (pairs: separated by a tab); --file also a picture (PNG, PGM, PPM, IDX)",
               options->prompt, options->file, options->keep_newline);
    add_integer(app, "--top", options->top, 1, 1 << 20, "how many guesses to print, the likeliest first")
        ->default_str("5 for masks, 1 for classes and tags");
    app.add_flag("--resize", options->resize, "scale pictures of another size to the model's");
    app.add_flag("--json", options->json, "JSON objects, one for each text or picture");
    return [options, &globals] {
        install_stop_signals();
        return Predictor(*options, globals).run();
    };
}

}  // namespace linnet
