#include "commands/examine/eval_examples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log_sum.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/team.h"
#include "base/terminal.h"
#include "commands/measured_text.h"
#include "commands/options.h"
#include "data/labelled/images.h"
#include "data/labelled/lines.h"
#include "data/labelled/picture_folders.h"
#include "data/labelled/scores.h"
#include "generate/generator.h"
#include "model/encode/encoder_text.h"
#include "model/trace/trace.h"
#include "text/naming.h"
#include "train/start.h"
#include "train/task/objectives.h"
#include "train/task/task.h"

namespace linnet {
namespace {

using Record = nlohmann::ordered_json;

/// Nothing where it was interrupted: what was not looked at would count as wrong.
int put(const Record& record, bool json) {
    if (const int signal = stop_signal()) return 128 + signal;
    std::string line;
    if (json) {
        line = record.dump();
    } else {
        for (const auto& [key, value] : record.items()) {
            char number[64];
            if (value.is_number_float())
                std::snprintf(number, sizeof number, "%.4f", value.get<double>());
            else
                std::snprintf(number, sizeof number, "%lld", value.get<long long>());
            line += (line.empty() ? "" : "  ") + key + " " + number;
        }
    }
    write_stdout(line + "\n");
    return 0;
}

/// Rows of logits held against their targets.
struct Hits {
    std::int64_t rows = 0, right = 0, unknown = 0;  // unknown: with a target that the model has no row for
    double nats = 0;

    void add(std::span<const float> logits, std::int32_t target) {
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        rows++;
        right += best == target;
        nats += log_sum(logits) - static_cast<double>(logits[static_cast<std::size_t>(target)]);
    }
    Record record(const char* what) const {
        const auto n = static_cast<double>(std::max<std::int64_t>(1, rows + unknown));
        const auto known = static_cast<double>(std::max<std::int64_t>(1, rows));
        Record record{
            {"accuracy", static_cast<double>(right) / n}, {"nll", nats / known}, {what, rows + unknown}};
        if (unknown > 0) record["unknown"] = unknown;
        return record;
    }
};

/// Runs inputs through an encoder, as many at a time as fit, and hands each row to `see(row, logits)`.
template <class See>
void each_row(Encoder& encoder, std::span<const EncoderInput> inputs, const See& see) {
    const auto width = static_cast<std::size_t>(encoder.classes());
    std::size_t row = 0;
    StatusLine status;
    const std::size_t all = inputs.size();
    while (!inputs.empty() && !stop_signal()) {
        const std::size_t count = encoder.fitting(inputs);
        std::span<const float> logits = encoder.logits(inputs.first(count));
        for (; !logits.empty(); logits = logits.subspan(width)) see(row++, logits.first(width));
        inputs = inputs.subspan(count);
        status.show(std::to_string(all - inputs.size()) + " of " + std::to_string(all));
    }
}

/// What the model's own run masked, where its file says that.
void take_masking(const Model& model, TrainConfig& train) {
    const nlohmann::json config = model.file() ? config_of_run(*model.file()) : nlohmann::json();
    const nlohmann::json::json_pointer share("/train/masked/share"), words("/train/masked/words");
    if (config.contains(share) && config.at(share).is_number())
        train.masked.share = std::clamp(config.at(share).get<double>(), 0.001, 1.0);
    if (config.contains(words) && config.at(words).is_boolean())
        train.masked.words = config.at(words).get<bool>();
}

/// The windows of a text, masked as held-out ones are in training.
int eval_masks(const std::shared_ptr<const Model>& model, const ExampleEval& options,
               const Globals& globals) {
    RunConfig config;
    config.model = model->config();
    config.train.objective = "masked";
    take_masking(*model, config.train);
    config.train.sequence = options.context > 0 ? options.context : config.model.context;
    config.train.batch = 1;
    const std::int64_t shortest = objective_of(config.train.objective).shortest;
    if (config.train.sequence < shortest || config.train.sequence > config.model.context)
        usage_error("--ctx",
                    std::to_string(shortest) + " to " + std::to_string(config.model.context) +
                        ", the model's context",
                    std::to_string(config.train.sequence));
    if (config.model.head.next && config.train.sequence < shortest_pair)
        usage_error("--ctx", "at least " + std::to_string(shortest_pair) + ", as the model reads two texts",
                    std::to_string(config.train.sequence));
    const MeasuredText text(options.file, options.read);
    TextSplit split;
    split.train = split.validation = text.documents();
    TokenSource source = TokenSource::from_documents(split, text.documents().size() > 1, model->tokenizer(),
                                                     threads_or_cores(globals.threads), text.name());
    auto task = window_task(config, WindowSampler(std::move(source), 0, config.train.sequence),
                            model->shared_tokenizer(), model->path());
    std::vector<EncoderInput> inputs;
    std::vector<std::int32_t> targets, follows;
    const auto held = static_cast<std::int64_t>(task->held_out());
    const std::int64_t windows = options.most == 0 ? held : std::min(options.most, held);
    for (std::int64_t i = 0; i < windows; i++) {  // evenly over the text
        Batch batch;
        task->add(DataSplit::validation, static_cast<std::uint64_t>(i * held / windows), batch);
        EncoderInput& input = inputs.emplace_back();
        input.tokens = batch.tokens;
        input.wanted = batch.outputs;
        if (const auto* segments = batch.find_stream("segments")) input.segments = *segments;
        if (const auto* next = batch.find_stream("next")) follows.push_back(next->front());
        targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
    Encoder encoder(model, globals.threads);
    Hits hits;
    each_row(encoder, inputs,
             [&](std::size_t row, std::span<const float> logits) { hits.add(logits, targets[row]); });
    Record record = hits.record("masks");
    if (!follows.empty()) {
        Hits pairs;
        std::span<const EncoderInput> rest(inputs);
        while (!rest.empty() && !stop_signal()) {
            const std::size_t count = encoder.fitting(rest);
            const std::span<const float> logits = encoder.follows(rest.first(count));
            for (std::size_t i = 0; i < count; i++)
                pairs.add(logits.subspan(i * next_classes, next_classes),
                          follows[static_cast<std::size_t>(pairs.rows)]);
            rest = rest.subspan(count);
        }
        record["next_accuracy"] = pairs.record("pairs")["accuracy"];
    }
    return put(record, options.json);
}

LabelledOptions reading(const ExampleEval& options) {
    LabelledOptions read;
    read.inputs = {options.file};
    read.fields = field_names(options.fields);
    return read;
}

int eval_labels(const std::shared_ptr<const Model>& model, const ExampleEval& options,
                const Globals& globals) {
    const bool tags = model->config().head.kind == "tags";
    const LabelledData examples =
        read_labelled(tags ? LabelledKind::tags : LabelledKind::classes, reading(options));
    std::map<std::string, std::int32_t, std::less<>> numbers;
    for (const std::string& label : labels_of(*model))
        numbers.emplace(label, static_cast<std::int32_t>(numbers.size()));
    const Tokenizer& tokenizer = model->tokenizer();
    const EncoderMarks marks(tokenizer);
    std::vector<EncoderInput> inputs;
    std::vector<std::int32_t> targets;
    for (const LabelledExample& e : examples.all) {
        if (options.most > 0 && inputs.size() == static_cast<std::size_t>(options.most)) break;
        inputs.push_back(naming(examples.place(e), [&] {
            return tags ? words_input(tokenizer, marks, e.first)
                        : pair_input(tokenizer, marks, e.first, e.other());
        }));
        if (inputs.back().tokens.size() > static_cast<std::size_t>(model->config().context))
            fail_input(examples.place(e), "",
                       "at most " + std::to_string(model->config().context) + " tokens",
                       std::to_string(inputs.back().tokens.size()));
        for (std::string_view label :
             tags ? split(e.label, ' ') : std::vector<std::string_view>{std::string_view(e.label)}) {
            auto found = numbers.find(label);
            // A tag that training never saw is a miss; the model has no row for it.
            if (found == numbers.end() && !tags)
                fail_input(examples.place(e), "label", "one of the model's classes", "'" + e.label + "'");
            targets.push_back(found == numbers.end() ? -1 : found->second);
        }
    }
    Encoder encoder(model, globals.threads);
    Hits hits;
    each_row(encoder, inputs, [&](std::size_t row, std::span<const float> logits) {
        targets[row] >= 0 ? hits.add(logits, targets[row]) : void(hits.unknown++);
    });
    return put(hits.record(tags ? "words" : "examples"), options.json);
}

/// Of an IDX file, or of folders: their names are the model's classes, or some of them.
LabelledPictures labelled_pictures(const Model& model, const ExampleEval& options) {
    const ModelConfig& config = model.config();
    const PictureShape shape{config.image.width, config.image.height, config.image.channels};
    if (is_folder(options.file)) {
        LabelledPictures all = read_picture_folders({options.file}, shape, options.resize, false);
        const std::vector<std::int32_t> numbers = label_numbers(all.classes, model, options.file);
        for (std::int32_t& label : all.labels) label = numbers[static_cast<std::size_t>(label)];
        return all;
    }
    LabelledPictures all;
    const std::string beside = labels_beside(options.file);
    all.pictures = read_pictures_file(options.file, shape, options.resize);
    const std::vector<std::uint8_t> labels = read_idx_labels(beside, all.pictures.count());
    all.labels.assign(labels.begin(), labels.end());
    for (std::size_t i = 0; i < labels.size(); i++)
        if (labels[i] >= config.head.classes)
            fail_input(beside, "label " + std::to_string(i),
                       "below " + std::to_string(config.head.classes) + ", the model's classes",
                       std::to_string(labels[i]));
    return all;
}

int eval_pictures(const std::shared_ptr<const Model>& model, const ExampleEval& options,
                  const Globals& globals) {
    const ModelConfig& config = model->config();
    const LabelledPictures all = labelled_pictures(*model, options);
    std::vector<EncoderInput> inputs;
    for (std::size_t i = 0; i < all.pictures.count(); i++) {
        if (options.most > 0 && i == static_cast<std::size_t>(options.most)) break;
        inputs.emplace_back().patches =
            patches_of(all.pictures.shape, all.pictures[i], config.image.patch, config.pooling == "first");
    }
    Encoder encoder(model, globals.threads);
    Hits hits;
    each_row(encoder, inputs,
             [&](std::size_t row, std::span<const float> logits) { hits.add(logits, all.labels[row]); });
    return put(hits.record("pictures"), options.json);
}

/// Answers, greedy or by beam search, one for each distinct source.
std::vector<std::string> answers_to(const std::shared_ptr<const Model>& model,
                                    const std::vector<std::vector<TokenId>>& sources,
                                    const ExampleEval& options, const Globals& globals) {
    const Tokenizer& tokenizer = model->tokenizer();
    const TokenId start = answer_marks(tokenizer, model->config(), model->path()).start;
    std::vector<std::string> answers(sources.size());
    EngineOptions engine;
    engine.threads = globals.threads;
    engine.context = options.context, engine.state = options.state;
    if (options.beam.beams > 1) {
        BeamSearch search(model, engine, options.beam);
        for (std::size_t i = 0; i < sources.size() && !stop_signal(); i++) {
            std::vector<TokenId> ids = search.run(sources[i], {&start, 1}).ids;
            if (!ids.empty() && tokenizer.is_end(ids.back())) ids.pop_back();
            answers[i] = tokenizer.decode(ids);
        }
        return answers;
    }
    engine.sequences = std::min<std::int64_t>(16, static_cast<std::int64_t>(sources.size()));
    EngineSource source(model, engine);
    std::vector<Request> requests(sources.size());
    for (std::size_t i = 0; i < sources.size(); i++) {
        requests[i].prompt = {start}, requests[i].source = sources[i];
        requests[i].options.sampler.temperature = 0;
        requests[i].options.tokens = -1;
        requests[i].emit = [&answers, i](std::optional<TokenId>, std::string_view text) {
            answers[i] += text;
        };
        requests[i].done = [](const Generated&) {};
    }
    Generator(source, tokenizer).run(requests);
    return answers;
}

int eval_pairs(const std::shared_ptr<const Model>& model, const ExampleEval& options,
               const Globals& globals) {
    const LabelledData examples = read_labelled(LabelledKind::pairs, reading(options));
    std::map<std::string, std::size_t> places;
    std::vector<std::vector<TokenId>> sources;
    std::vector<std::vector<std::string>> references;
    const std::int64_t context = options.context > 0 ? options.context : model->config().context;
    for (const LabelledExample& e : examples.all) {
        if (options.most > 0 && sources.size() == static_cast<std::size_t>(options.most) &&
            !places.contains(e.first))
            continue;
        auto [place, first] = places.emplace(e.first, sources.size());
        if (first) {
            sources.push_back(naming(examples.place(e),
                                     [&] { return text_input(model->tokenizer(), e.first, false).tokens; }));
            references.emplace_back();
            if (sources.back().size() > static_cast<std::size_t>(context))
                fail_input(examples.place(e), "",
                           "at most " + std::to_string(context) + " tokens, the context",
                           std::to_string(sources.back().size()));
        }
        references[place->second].push_back(e.second);
    }
    const std::vector<std::string> answers = answers_to(model, sources, options, globals);
    AnswerScores scores;
    for (std::size_t i = 0; i < answers.size(); i++) scores.add(answers[i], references[i]);
    return put({{"exact", scores.exact()},
                {"word_error", scores.word_error()},
                {"char_error", scores.char_error()},
                {"chrf", scores.chrf()},
                {"bleu", scores.bleu()},
                {"sources", scores.count()}},
               options.json);
}

}  // namespace

int eval_examples(const std::shared_ptr<const Model>& model, const ExampleEval& options,
                  const Globals& globals) {
    const ModelConfig& config = model->config();
    if (config.kind == "encoder-decoder") return eval_pairs(model, options, globals);
    if (config.reads_patches()) return eval_pictures(model, options, globals);
    return config.head.kind == "tokens" ? eval_masks(model, options, globals)
                                        : eval_labels(model, options, globals);
}

}  // namespace linnet
