#include "train/ladder.h"

#include <algorithm>
#include <cmath>

namespace linnet {
namespace {

using nlohmann::json;

/// A model's shape, and the arithmetic that it wants: with less, a smaller one gets further in the same time.
struct Rung {
    double flops;  // in all
    std::int64_t width, layers, heads, ffn, vocabulary, sequence, batch;
};

// All are LLaMA-shaped, which other runtimes load. Found by runs of equal arithmetic on 10 MB of text at 4e13
// (a table of them is in models/README.md); beyond, parameters grow with the root of the arithmetic (Hoffmann
// et al. 2022).
constexpr Rung rungs[] = {
    {0, 64, 2, 2, 192, 1024, 128, 8},          {3e12, 96, 3, 3, 256, 2048, 128, 16},
    {1e13, 96, 3, 3, 256, 4096, 128, 16},      {2.5e13, 128, 3, 4, 384, 4096, 128, 16},
    {3.5e13, 128, 4, 4, 384, 4096, 128, 16},   {1e14, 160, 4, 5, 448, 4096, 128, 16},
    {2e14, 192, 4, 6, 512, 4096, 128, 16},     {6e14, 256, 5, 8, 704, 4096, 256, 16},
    {2e15, 320, 6, 10, 896, 8192, 256, 16},    {7e15, 384, 8, 6, 1024, 8192, 256, 32},
    {3e16, 512, 10, 8, 1408, 16384, 512, 32},  {1.2e17, 640, 12, 10, 1728, 16384, 512, 32},
    {4e17, 768, 12, 12, 2048, 32768, 512, 64},
};

/// The largest model for a text of so many bytes, because a larger one would memorise it, and the largest
/// vocabulary, because more tokens would be too rare.
struct TextRow {
    std::uint64_t bytes;  // texts up to this size
    std::size_t rung;     // the largest
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
    {UINT64_MAX, std::size(rungs) - 1, 32768, 0.0, 8, 0.005},
};

// What a step reaches of the machine's peak, before it has been measured.
constexpr double usual_share = 0.6;

const TextRow& row_of(std::uint64_t bytes) {
    const TextRow* row = text_rows;
    while (bytes > row->bytes) row++;
    return *row;
}

/// The vocabulary may be larger than the rung's own (the data brings it) or smaller (the text is short): the
/// arithmetic grows with the square of the parameters, as a larger model also wants more tokens.
double wanted_flops(const Rung& rung, std::int64_t vocabulary) {
    auto width = static_cast<double>(rung.width);
    double blocks =
        static_cast<double>(rung.layers) * (4 * width * width + 3 * width * static_cast<double>(rung.ffn));
    double grown = (blocks + width * static_cast<double>(vocabulary)) /
                   (blocks + width * static_cast<double>(rung.vocabulary));
    return rung.flops * grown * grown;
}

/// Two significant digits: 0.0035, not 0.00353553.
double rounded(double x) {
    double unit = std::pow(10, std::floor(std::log10(x)) - 1);
    return std::stod(std::to_string(std::llround(x / unit))) * unit;
}

}  // namespace

json choose_config(const Prospect& prospect) {
    const TextRow& text = row_of(prospect.bytes);
    double flops = usual_share * prospect.flops * prospect.seconds;
    std::size_t at = 0;
    const auto vocabulary_at = [&](const Rung& rung) { return std::min(text.vocabulary, rung.vocabulary); };
    const auto wanted = [&](const Rung& rung) {
        return wanted_flops(rung, prospect.vocabulary > 0 ? prospect.vocabulary : vocabulary_at(rung));
    };
    while (at < text.rung && wanted(rungs[at + 1]) <= flops) at++;
    const Rung& rung = rungs[at];
    std::int64_t vocabulary = vocabulary_at(rung);
    json tokenizer = {{"kind", "bpe"}, {"vocab_size", vocabulary}};
    if (vocabulary == 256) tokenizer = {{"kind", "byte"}};
    auto width = static_cast<double>(rung.width);
    return {{"model",
             {{"context", rung.sequence},
              {"width", rung.width},
              {"layers", rung.layers},
              {"heads", rung.heads},
              {"norm", {{"kind", "rms"}}},
              {"position", {{"kind", "rope"}}},
              {"attention", {{"bias", false}}},
              {"ffn", {{"width", rung.ffn}, {"activation", "silu"}, {"gated", true}, {"bias", false}}},
              {"dropout", text.dropout},
              {"init_std", rounded(0.55 / std::sqrt(width))}}},
            {"tokenizer", tokenizer},
            {"train",
             {{"batch", rung.batch},
              {"optimizer",
               {{"kind", "muon"}, {"lr", rounded(6e-3 * std::min(1.0, 128 / width))}, {"beta2", 0.99}}},
              {"schedule", {{"kind", "wsd"}, {"min_lr", 0.0}, {"decay", 0.4}}},
              {"validation_fraction", text.held_out}}}};
}

json choose_tuning(const ModelConfig& model, std::uint64_t bytes, bool adapter) {
    const std::int64_t sequence = std::min<std::int64_t>(model.context, 512);
    const std::int64_t batch = std::max<std::int64_t>(1, 4096 / sequence);
    // An adapter wants about ten times the rate of the weights themselves (Schulman 2025, "LoRA without
    // regret"), and both less in proportion to the width.
    const double lr = (adapter ? 1.0 : 0.1) / static_cast<double>(model.width);
    return {
        {"train",
         {{"batch", batch},
          {"sequence", sequence},
          {"optimizer",
           {{"lr", rounded(std::min(lr, adapter ? 5e-3 : 5e-4))}, {"beta2", 0.99}, {"weight_decay", 0.0}}},
          {"schedule", {{"kind", "wsd"}, {"min_lr", 0.0}, {"decay", 0.4}}},
          {"validation_fraction", row_of(bytes).held_out}}}};
}

namespace {

double tokens_a_step(const TrainConfig& t) {
    return static_cast<double>(t.batch * t.sequence * t.accumulate);
}

/// As many steps as a text of this size may be read for.
std::int64_t most_steps(const TrainConfig& t, const TextSize& text) {
    const double epochs = text.epochs > 0 ? text.epochs : row_of(text.bytes).epochs;
    return std::max<std::int64_t>(
        1, std::llround(epochs * static_cast<double>(text.train_tokens) / tokens_a_step(t)));
}

/// `value` is set unless one of `given` ("key=value") sets `key`.
template <class T>
void set_unless(const std::vector<std::string>& given, const std::string& key, T& to, T value) {
    for (const std::string& setting : given)
        if (setting.starts_with(key + "=")) return;
    to = value;
}

constexpr double reserve = 0.05;           // of the time: evaluations, samples, the last model's writing
constexpr double evaluations = 12;         // about as many in a run,
constexpr double most_between = 300;       // but one every so many seconds at least
constexpr double evaluation_share = 0.02;  // of the time between two, at most

}  // namespace

void fit_schedule(RunConfig& config, const std::vector<std::string>& given, double step_seconds,
                  double seconds, const TextSize& text) {
    TrainConfig& t = config.train;
    auto fitting = static_cast<std::int64_t>(seconds * (1 - reserve) / step_seconds);
    set_unless(given, "train.steps", t.steps, std::clamp<std::int64_t>(fitting, 1, most_steps(t, text)));
    set_unless(given, "train.schedule.warmup", t.schedule.warmup,
               std::clamp<std::int64_t>(t.steps / 20, std::min<std::int64_t>(10, t.steps / 2), 300));
    double run_seconds = static_cast<double>(t.steps) * step_seconds;
    double between = std::min(run_seconds / evaluations, most_between);
    auto every = std::clamp<std::int64_t>(std::llround(between / step_seconds), 1, t.steps);
    set_unless(given, "train.eval_every", t.eval_every, every);
    set_unless(given, "train.checkpoint_every", t.checkpoint_every, every);
    // A batch without gradients takes about a third of a step.
    double batch_seconds = step_seconds / 3 / static_cast<double>(t.accumulate);
    set_unless(
        given, "train.eval_batches", t.eval_batches,
        std::max<std::int64_t>(4, static_cast<std::int64_t>(between * evaluation_share / batch_seconds)));
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
    auto fitting = done + static_cast<std::int64_t>((seconds * 0.99 - elapsed) * rate);
    fitting = std::min(fitting, most_steps(t, text));
    // What has been done stays as it would be under the new end: the decay may begin now, but not in the
    // past.
    auto least = static_cast<std::int64_t>(std::ceil(static_cast<double>(done) / (1 - t.schedule.decay)));
    fitting = std::max(fitting, least);
    bool decays = static_cast<double>(done) > decay_begin(t);
    bool differs = std::fabs(static_cast<double>(fitting - t.steps)) > 0.01 * static_cast<double>(t.steps);
    return decays || !differs ? t.steps : fitting;
}

}  // namespace linnet
