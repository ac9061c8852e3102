#include "commands/generate/sources.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/signals.h"
#include "commands/terminal_text.h"
#include "commands/text_input.h"
#include "generate/stream.h"
#include "model/encode/encoder_text.h"
#include "text/naming.h"

namespace linnet {
namespace {

class Answering {
  public:
    Answering(const std::shared_ptr<const Model>& model, const AnswerOptions& options)
        : model_(model),
          options_(options),
          start_(answer_marks(model->tokenizer(), model->config(), model->path()).start),
          lines_(lines_of(options.text)) {
        const std::int64_t context =
            options.engine.context > 0 ? options.engine.context : model->config().context;
        for (std::size_t i = 0; i < lines_.size(); i++) {
            const std::string place = "line " + std::to_string(i + 1);
            naming(options.name + ": " + place, [&] {
                sources_.push_back(
                    text_input(model->tokenizer(), lines_[i], options.settings.special).tokens);
            });
            if (sources_[i].empty() || sources_[i].size() > static_cast<std::size_t>(context))
                fail_input(options.name, place,
                           "1 to " + std::to_string(context) + " tokens, the model's context",
                           std::to_string(sources_[i].size()));
        }
    }

    int run() {
        options_.beam.beams > 1 ? search() : generate();
        const int signal = stop_signal();
        return signal ? 128 + signal : 0;
    }

  private:
    void search() {
        BeamSearch search(model_, options_.engine, options_.beam);
        for (std::size_t i = 0; i < sources_.size() && !stop_signal(); i++) {
            const BeamAnswer answer = search.run(sources_[i], {&start_, 1});
            nlohmann::ordered_json record{{"index", i}, {"source", lines_[i]}};
            record["score"] = answer.score;
            record["end"] = name(answer.ended    ? GenerateEnd::end_token
                                 : stop_signal() ? GenerateEnd::interrupted
                                                 : GenerateEnd::length);
            put(text_of(answer.ids), answer.ids, std::move(record));
        }
    }

    /// Many together; printed in their order.
    void generate() {
        EngineOptions engine = options_.engine;
        const std::size_t count = sources_.size() * static_cast<std::size_t>(options_.samples);
        engine.sequences = std::min<std::int64_t>(options_.parallel, static_cast<std::int64_t>(count));
        EngineSource source(model_, engine);
        Generator generator(source, model_->tokenizer());
        std::vector<Request> requests(count);
        std::vector<std::string> texts(count);
        std::vector<std::optional<Generated>> results(count);
        std::size_t printed = 0;
        for (std::size_t i = 0; i < count; i++) {
            Request& request = requests[i];
            const std::size_t line = i / static_cast<std::size_t>(options_.samples);
            request.prompt = {start_};
            request.source = sources_[line];
            request.options = options_.settings.generate;
            request.options.sampler.seed = static_cast<std::uint64_t>(options_.seed) + line;
            request.options.sampler.sample = i % static_cast<std::size_t>(options_.samples);
            request.emit = [&, i](std::optional<TokenId>, std::string_view text) { texts[i] += text; };
            request.done = [&, i](const Generated& result) {
                results[i] = result;
                for (; printed < count && results[printed]; printed++)
                    print(printed, texts, *results[printed]);
            };
        }
        generator.run(requests);
    }

    void print(std::size_t i, const std::vector<std::string>& texts, const Generated& result) {
        const std::size_t line = i / static_cast<std::size_t>(options_.samples);
        nlohmann::ordered_json record{{"index", line}, {"source", lines_[line]}};
        if (options_.samples > 1) record["sample"] = i % static_cast<std::size_t>(options_.samples);
        record["end"] = name(result.end);
        record["seed"] = options_.seed + static_cast<std::int64_t>(line);
        put(texts[i], result.ids, std::move(record));
    }

    std::string text_of(const std::vector<TokenId>& ids) const {
        std::string text;
        for (std::size_t i = 0; i < ids.size(); i++)
            if (!model_->tokenizer().is_end(ids[i])) model_->tokenizer().decode(ids[i], i == 0, text);
        Utf8Stream whole;
        const std::string begun = whole.push(text);
        return begun + whole.finish();
    }

    void put(std::string text, const std::vector<TokenId>& ids, nlohmann::ordered_json record) const {
        std::string line;
        if (options_.format == "jsonl") {
            record["text"] = text;
            record["ids"] = ids;
            line = json_line(record);
        } else if (options_.format == "ids") {
            for (TokenId id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
        } else {  // one line for each source, whatever the answer holds
            std::replace(text.begin(), text.end(), '\n', ' ');
            line = TerminalText().push(text);
        }
        write_stdout(options_.format == "jsonl" ? line : line + "\n");
        flush_stdout();
    }

    const std::shared_ptr<const Model>& model_;
    const AnswerOptions& options_;
    TokenId start_;
    std::vector<std::string_view> lines_;
    std::vector<std::vector<TokenId>> sources_;
};

}  // namespace

int answer_sources(const std::shared_ptr<const Model>& model, const AnswerOptions& options) {
    return Answering(model, options).run();
}

}  // namespace linnet
