#include "train/candidates.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "train/law.h"

namespace linnet {
namespace {

using nlohmann::json;

/// A model's shape.
struct ModelShape {
    std::int64_t width, layers, heads, ffn, vocabulary, sequence, batch;
};

// All are Qwen3-shaped, which other runtimes load: LLaMA's blocks with norms of q and k, of the newer recipe
// (models/shakespeare-today.json) what helps at this size. Found by runs of 150 s on 10 MB of text (tables of
// them are in models/RESULTS.md); beyond, wider and deeper alike.
constexpr ModelShape model_shapes[] = {
    {64, 2, 2, 192, 1024, 128, 8},       {96, 3, 3, 256, 2048, 128, 16},
    {96, 3, 3, 256, 4096, 128, 16},      {128, 3, 4, 384, 4096, 128, 16},
    {128, 4, 4, 384, 4096, 128, 16},     {160, 4, 5, 448, 4096, 128, 16},
    {192, 4, 6, 512, 4096, 128, 16},     {256, 5, 8, 704, 4096, 256, 16},
    {320, 6, 10, 896, 8192, 256, 16},    {384, 8, 6, 1024, 8192, 256, 32},
    {512, 10, 8, 1408, 16384, 512, 32},  {640, 12, 10, 1728, 16384, 512, 32},
    {768, 12, 12, 2048, 32768, 512, 64},
};

/// The largest model for a text of so many bytes, because a larger one would memorise it, and the largest
/// vocabulary, because more tokens would be too rare.
struct TextRow {
    std::uint64_t bytes;  // texts up to this size
    std::size_t shape;    // the largest
    std::int64_t vocabulary;
    double dropout, epochs;  // epochs: the most that a text is read
    double held_out;
};

constexpr TextRow text_rows[] = {
    {300'000, 2, 256, 0.1, 24, 0.1},
    {700'000, 3, 512, 0.1, 24, 0.1},
    {1'500'000, 3, 1024, 0.15, 12, 0.1},
    {3'000'000, 5, 1024, 0.1, 20, 0.1},
    {8'000'000, 6, 2048, 0.05, 16, 0.1},
    {40'000'000, 8, 4096, 0.0, 10, 0.05},
    {200'000'000, 9, 8192, 0.0, 8, 0.02},
    {2'000'000'000, 11, 16384, 0.0, 8, 0.01},
    {UINT64_MAX, std::size(model_shapes) - 1, 32768, 0.0, 8, 0.005},
};

const TextRow& row_of(std::uint64_t bytes) {
    const TextRow* row = text_rows;
    while (bytes > row->bytes) row++;
    return *row;
}

/// Two significant digits: 0.0035, not 0.00353553.
double rounded(double x) {
    double unit = std::pow(10, std::floor(std::log10(x)) - 1);
    return static_cast<double>(std::llround(x / unit)) * unit;
}

json config_of(const ModelShape& shape, const TextRow& text, std::int64_t vocabulary) {
    json tokenizer = {{"kind", "bpe"}, {"vocab_size", vocabulary}};
    if (vocabulary == 256) tokenizer = {{"kind", "byte"}};
    auto width = static_cast<double>(shape.width);
    return {{"model",
             {{"context", shape.sequence},
              {"width", shape.width},
              {"layers", shape.layers},
              {"heads", shape.heads},
              {"norm", {{"kind", "rms"}}},
              {"position", {{"kind", "rope"}, {"halves", true}}},
              {"attention", {{"bias", false}, {"qk_norm", "head"}}},
              {"ffn", {{"width", shape.ffn}, {"activation", "silu"}, {"gated", true}, {"bias", false}}},
              {"dropout", text.dropout},
              {"init_std", rounded(0.55 / std::sqrt(width))}}},
            {"tokenizer", tokenizer},
            {"train",
             {{"batch", shape.batch},
              {"optimizer",
               {{"kind", "muon"}, {"lr", rounded(6e-3 * std::min(1.0, 128 / width))}, {"beta2", 0.99}}},
              {"schedule", {{"kind", "wsd"}, {"min_lr", 0.0}, {"decay", 0.4}}},
              {"validation_fraction", text.held_out}}}};
}

/// Of matrices; `ffn`: the widths of a feed-forward layer's.
double parameters_of(std::int64_t width, std::int64_t layers, std::int64_t ffn, std::int64_t vocabulary) {
    return static_cast<double>(width) * static_cast<double>(layers * (4 * width + ffn) + vocabulary);
}

ModelCandidate candidate_of(const ModelShape& shape, const TextRow& text, const Budget& budget) {
    ModelCandidate c;
    c.config = config_of(shape, text, std::min(text.vocabulary, shape.vocabulary));
    const RunConfig run = read_run_config(c.config, "", budget.settings);
    const ModelConfig& m = run.model;
    c.vocabulary = budget.vocabulary > 0          ? budget.vocabulary
                   : run.tokenizer.kind == "byte" ? 256
                                                  : run.tokenizer.vocab_size;
    c.parameters = parameters_of(m.width, m.layers, m.ffn.width.at(0) * (m.ffn.gated ? 3 : 2), c.vocabulary);
    c.step_tokens = static_cast<double>(run.train.step_tokens());
    // Attention sees half of the sequence: two products of it.
    const double attention = 2.0 * static_cast<double>(m.layers * m.width * run.train.sequence);
    c.step_flops = 3 * (2 * c.parameters + attention) * c.step_tokens;
    return c;
}

std::vector<ModelCandidate> candidates_of(const TextRow& text, const Budget& budget) {
    std::vector<ModelCandidate> all;
    std::vector<double> off;  // by how much each one's shape is larger or smaller than what is set made it
    std::optional<Error> refused;
    for (std::size_t i = 0; i <= text.shape; i++) {
        const ModelShape& shape = model_shapes[i];
        ModelCandidate c;
        try {
            c = candidate_of(shape, text, budget);
        } catch (const Error& error) {  // what is set contradicts the rest of this shape
            refused = error;
            continue;
        }
        const double own = parameters_of(shape.width, shape.layers, 3 * shape.ffn, c.vocabulary);
        const double distance = std::fabs(own - c.parameters);
        // Shapes that differ in their vocabulary alone; or in nothing but the batch, as the shape is set.
        if (!all.empty() && c.parameters == all.back().parameters) {
            if (distance < off.back()) all.back() = std::move(c), off.back() = distance;
            continue;
        }
        all.push_back(std::move(c)), off.push_back(distance);
    }
    if (all.empty()) throw Error(*refused);
    return all;
}

double speed_of(const ModelCandidate& c) {
    return c.step_flops / c.step_seconds;
}

}  // namespace

double usual_token_bytes(std::int64_t vocabulary) {
    // Of BPE on English prose and documentation: 3.1 at 4096, 1.9 at 512.
    return std::max(1.0, 0.4 * std::log2(static_cast<double>(vocabulary)) - 1.7);
}

Choice choose(const Budget& budget, const MeasureStep& measure) {
    const TextRow& text = row_of(budget.bytes);
    Choice choice;
    choice.candidates = candidates_of(text, budget);
    std::vector<ModelCandidate>& all = choice.candidates;
    const auto nearest_speed = [&](std::size_t i) {
        for (std::size_t far = 0; far < all.size(); far++) {
            if (i >= far && all[i - far].measured) return speed_of(all[i - far]);
            if (i + far < all.size() && all[i + far].measured) return speed_of(all[i + far]);
        }
        return budget.flops;
    };
    for (;;) {
        for (std::size_t i = 0; i < all.size(); i++) {
            all[i].step_seconds = all[i].step_flops / nearest_speed(i);
            const double token_bytes = usual_token_bytes(all[i].vocabulary);
            const double train_bytes = static_cast<double>(budget.bytes) * (1 - text.held_out);
            expect(all[i], budget.seconds,
                   {budget.bytes, static_cast<std::uint64_t>(train_bytes / token_bytes), 0}, token_bytes);
        }
        const auto lowest = std::ranges::min_element(all, {}, &ModelCandidate::bits_per_byte);
        choice.best = static_cast<std::size_t>(lowest - all.begin());
        ModelCandidate& best = *lowest;
        if (!measure || best.measured) return choice;
        const double seconds = measure(best);
        if (seconds <= 0) return choice;
        best.step_seconds = seconds, best.measured = true;
    }
}

json choose_config(const Budget& budget) {
    Choice choice = choose(budget);
    return std::move(choice.candidates[choice.best].config);
}

double usual_held_out(std::uint64_t bytes) {
    return row_of(bytes).held_out;
}

json choose_tuning(const ModelConfig& model, bool adapter) {
    const std::int64_t sequence = std::min<std::int64_t>(model.context, 512);
    const std::int64_t batch = std::max<std::int64_t>(1, 4096 / sequence);
    // An adapter wants about ten times the rate of the weights themselves (Schulman 2025, "LoRA without
    // regret"), and both less in proportion to the width.
    const double lr = (adapter ? 1.0 : 0.1) / static_cast<double>(model.width);
    json train = {
        {"batch", batch},
        {"optimizer",
         {{"lr", rounded(std::min(lr, adapter ? 5e-3 : 5e-4))}, {"beta2", 0.99}, {"weight_decay", 0.0}}},
        {"schedule", {{"kind", "wsd"}, {"min_lr", 0.0}, {"decay", 0.4}}}};
    if (!model.reads_patches()) train["sequence"] = sequence;  // a picture is read whole
    return {{"train", train}};
}

namespace {

/// As many tokens as a text of this size may be read for.
double most_tokens(const TextSize& text) {
    const double epochs = text.epochs > 0 ? text.epochs : row_of(text.bytes).epochs;
    return epochs * static_cast<double>(text.train_tokens);
}
std::int64_t most_steps(const TrainConfig& t, const TextSize& text) {
    return std::max<std::int64_t>(1, std::llround(most_tokens(text) / static_cast<double>(t.step_tokens())));
}

template <class T>
void set_unless(const std::vector<std::string>& given, const std::string& key, T& to, T value) {
    if (!last_setting(given, key)) to = value;
}

constexpr double reserve = 0.05;           // of the time: evaluations, samples, the last model's writing
constexpr double evaluations = 12;         // about as many in a run,
constexpr double most_between = 300;       // but one every so many seconds at least
constexpr double evaluation_share = 0.02;  // of the time between two, at most,
constexpr std::int64_t least_batches = 4;  // but so many batches,
constexpr double forward_share = 1.0 / 3;  // each of which takes that of a step's time
constexpr double most_evaluated = 0.1;     // of the time, where a step takes long: then there are fewer

/// Rounded down, in [least, most]; `steps` may be of any size.
std::int64_t whole_steps(double steps, std::int64_t least, std::int64_t most) {
    const double within = std::clamp(steps, static_cast<double>(least), static_cast<double>(most));
    return std::clamp(static_cast<std::int64_t>(within), least, most);
}

}  // namespace

void fit_schedule(RunConfig& config, const std::vector<std::string>& given, double step_seconds,
                  double seconds, const TextSize& text) {
    TrainConfig& t = config.train;
    const double batch_seconds = step_seconds * forward_share / static_cast<double>(t.accumulate);
    const double evaluation = batch_seconds * static_cast<double>(least_batches);
    auto between_of = [&](double run) {
        return std::max(std::min(run / evaluations, most_between), evaluation / most_evaluated);
    };
    // What evaluations take beyond what is reserved for them.
    const double beside = std::max(0.0, evaluation / between_of(seconds) - evaluation_share);
    const double fitting = seconds * (1 - reserve) / (step_seconds * (1 + beside));
    set_unless(given, "train.steps", t.steps, whole_steps(fitting, 1, most_steps(t, text)));
    set_unless(given, "train.schedule.warmup", t.schedule.warmup,
               std::clamp<std::int64_t>(t.steps / 20, std::min<std::int64_t>(10, t.steps / 2), 300));
    const double between = between_of(static_cast<double>(t.steps) * step_seconds);
    auto every = std::clamp<std::int64_t>(std::llround(between / step_seconds), 1, t.steps);
    set_unless(given, "train.eval_every", t.eval_every, every);
    set_unless(given, "train.checkpoint_every", t.checkpoint_every, every);
    set_unless(given, "train.eval_batches", t.eval_batches,
               std::max<std::int64_t>(least_batches,
                                      static_cast<std::int64_t>(between * evaluation_share / batch_seconds)));
}

double seconds_of_steps(std::int64_t steps, double step_seconds) {
    return static_cast<double>(steps) * step_seconds / (1 - reserve);
}

double seconds_to_first_loss(double step_seconds) {
    return step_seconds * (1 + static_cast<double>(least_batches) * forward_share);
}

void expect(ModelCandidate& c, double seconds, const TextSize& text, double token_bytes) {
    const double fitting = seconds * (1 - reserve) / c.step_seconds * c.step_tokens;  // of a step, too
    c.tokens = std::min(fitting, most_tokens(text));
    c.bits_per_byte = expected_bits(
        {c.parameters, c.tokens * token_bytes, static_cast<double>(text.train_tokens) * token_bytes});
}

void fit_cadence(RunConfig& config, const std::vector<std::string>& given) {
    TrainConfig& t = config.train;
    auto every = std::max<std::int64_t>(1, t.steps / static_cast<std::int64_t>(evaluations));
    set_unless(given, "train.schedule.warmup", t.schedule.warmup, std::min<std::int64_t>(t.steps / 10, 100));
    set_unless(given, "train.eval_every", t.eval_every, every);
    set_unless(given, "train.checkpoint_every", t.checkpoint_every, every);
}

std::int64_t fitting_steps(const TrainConfig& t, std::int64_t done, double elapsed, double seconds,
                           const TextSize& text) {
    double rate = static_cast<double>(done) / elapsed;  // evaluations and all
    const double more = (seconds * 0.99 - elapsed) * rate;
    std::int64_t fitting = whole_steps(static_cast<double>(done) + more, 0, most_steps(t, text));
    // What has been done stays as it would be under the new end: the decay may begin now, but not in the
    // past.
    auto least = static_cast<std::int64_t>(std::ceil(static_cast<double>(done) / (1 - t.schedule.decay)));
    fitting = std::max(fitting, least);
    bool decays = static_cast<double>(done) > decay_begin(t);
    bool differs = std::fabs(static_cast<double>(fitting - t.steps)) > 0.01 * static_cast<double>(t.steps);
    return decays || !differs ? t.steps : fitting;
}

}  // namespace linnet
