#include "train/trainer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/rng.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "kernels/peaks.h"
#include "train/learner.h"
#include "train/live.h"
#include "train/log.h"
#include "train/report.h"
#include "train/setup.h"

namespace linnet {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The memory this process has needed so far, at its highest, in bytes.
std::size_t peak_memory() {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

double mib(std::size_t bytes) {
    return static_cast<double>(bytes >> 10) / 1024.0;
}

class Trainer {
  public:
    Trainer(const TrainingOptions& options, RunSetup setup)
        : options_(options),
          setup_(std::move(setup)),
          learner_(setup_.config.model, setup_.rows(), setup_.threads,
                   static_cast<std::uint64_t>(setup_.config.train.seed)),
          log_(options.out + "/log.jsonl", setup_.checkpoint.log_bytes, options.json),
          step_(setup_.checkpoint.step),
          flops_a_token_(
              3 * forward_flops(learner_.traced(), static_cast<double>(setup_.config.train.sequence))) {}

    int run() {
        start();
        const TrainConfig& t = setup_.config.train;
        int signal = 0;
        while (step_ < t.steps && !(signal = stop_signal()) && !out_of_time()) {
            train_step();
            bool last = step_ == t.steps;
            if (last || (t.eval_every > 0 && step_ % t.eval_every == 0)) evaluate();
            if (!last && t.checkpoint_every > 0 && step_ % t.checkpoint_every == 0) save();
        }
        finish(signal);
        return signal ? 128 + signal : 0;
    }

  private:
    bool out_of_time() const { return options_.time_limit_s > 0 && since(started_) >= options_.time_limit_s; }
    double seconds() const { return setup_.checkpoint.seconds + since(started_); }

    void start() {
        if (setup_.resumed) load_checkpoint(*setup_.resumed, learner_);
        peak_ = measured_peak_flops(setup_.threads);
        started_ = Clock::now();
        const TokenSource& source = setup_.windows->source();
        if (setup_.resumed) {
            log_.write({{"event", "resume"}, {"step", step_}});
            note("resuming at step " + std::to_string(step_));
        } else {
            log_.write({{"event", "start"},
                        {"config", setup_.config_json},
                        {"parameters", learner_.parameter_count()},
                        {"train_tokens", source.size(DataSplit::train)},
                        {"validation_tokens", source.size(DataSplit::validation)},
                        {"vocabulary", setup_.config.model.vocabulary},
                        {"threads", setup_.threads},
                        {"isa", kernels().name},
                        {"peak_flops", peak_}});
        }
        note(human_count(static_cast<double>(learner_.parameter_count())) + " parameters, " +
             human_count(static_cast<double>(source.size(DataSplit::train))) +
             " training tokens, vocabulary of " + std::to_string(setup_.config.model.vocabulary) + ", " +
             std::to_string(setup_.threads) + " threads, " + kernels().name);
    }

    void train_step() {
        const TrainConfig& t = setup_.config.train;
        Clock::time_point begin = Clock::now();
        double loss = 0;
        for (std::int64_t micro = 0; micro < t.accumulate; micro++) {
            fill_batch(setup_, step_, micro, work_);
            loss += learner_.learn(work_) * work_.loss_scale;
        }
        double lr = learning_rate(t, step_);
        double norm = learner_.update(t, lr, step_ + 1);
        if (!std::isfinite(loss) || !std::isfinite(norm)) diverged(loss, norm);
        step_++;
        double elapsed = since(begin), speed = static_cast<double>(setup_.rows() * t.accumulate) / elapsed;
        double share = peak_ > 0 ? speed * flops_a_token_ / peak_ : 0;
        log_.write({{"event", "step"},
                    {"step", step_},
                    {"loss", loss},
                    {"lr", lr},
                    {"grad_norm", norm},
                    {"tokens_per_s", speed},
                    {"mfu", share},
                    {"seconds", seconds()}});
        live_.step(step_, t.steps, loss, lr, speed, share);
    }

    [[noreturn]] void diverged(double loss, double norm) {
        live_.clear();
        char got[96];
        std::snprintf(got, sizeof got, "loss %g, gradient norm %g", loss, norm);
        log_.write({{"event", "diverged"}, {"step", step_ + 1}, {"loss", std::to_string(loss)}});
        auto kept = newest_checkpoint(options_.out + "/checkpoints");
        fail(Exit::diverged, options_.out, "step " + std::to_string(step_ + 1), "finite numbers", got,
             kept ? "the checkpoint " + *kept + " is kept; a lower train.optimizer.lr may help"
                  : "a lower train.optimizer.lr may help");
    }

    void evaluate() {
        double nats = 0;
        std::int64_t tokens = 0;
        for (std::int64_t i = 0; fill_validation(setup_, i, setup_.config.train.eval_batches, work_); i++) {
            nats += learner_.evaluate(work_);
            tokens += work_.rows.count;
        }
        if (tokens > 0) {
            const TokenSource& source = setup_.windows->source();
            double loss = nats / static_cast<double>(tokens);
            double bpb = loss / std::log(2.0) * static_cast<double>(source.size(DataSplit::validation)) /
                         static_cast<double>(source.bytes(DataSplit::validation));
            log_.write({{"event", "eval"},
                        {"step", step_},
                        {"loss", loss},
                        {"bpb", bpb},
                        {"tokens", tokens},
                        {"seconds", seconds()}});
            live_.evaluated(step_, loss, bpb);
        }
        sample();
    }

    void sample() {
        std::int64_t tokens = setup_.config.train.sample_tokens;
        if (!options_.sample || tokens == 0) return;
        ModelConfig config = setup_.config.model;
        std::string text =
            options_.sample(Model::view(config, setup_.tokenizer, learner_.parameters()), tokens);
        log_.write({{"event", "sample"}, {"step", step_}, {"text", text}});
    }

    Provenance provenance() const {
        return {{"train.config", setup_.config_json.dump()},
                {"train.data.sha256", setup_.data_hash},
                {"train.step", std::to_string(step_)},
                {"train.isa", kernels().name}};
    }

    void save() {
        Checkpoint state = setup_.checkpoint;
        state.step = step_;
        state.config = setup_.config_json;
        state.data = setup_.data_hash;
        state.log_bytes = log_.bytes();
        state.seconds = seconds();
        state.isa = kernels().name;
        save_checkpoint(options_.out + "/checkpoints", state, learner_, setup_.config.model,
                        *setup_.tokenizer, provenance());
        setup_.folder->settle();
    }

    void finish(int signal) {
        save();
        live_.clear();
        std::string path = options_.out + "/model.gguf";
        std::string name = options_.config_path.empty() ? "linnet" : stem(options_.config_path);
        save_model(path, setup_.config.model, learner_.traced().graph, learner_.parameters(),
                   *setup_.tokenizer, *dtype_from_name(setup_.config.train.weights), name, provenance());
        log_.write({{"event", "end"},
                    {"step", step_},
                    {"seconds", seconds()},
                    {"peak_memory_mib", mib(peak_memory())},
                    {"reason", signal                               ? "signal"
                               : step_ == setup_.config.train.steps ? "steps"
                                                                    : "time"}});
        write_report(options_.out + "/report.html", options_.out + "/log.jsonl");
        for (const std::string& written : {path, options_.out + "/report.html"}) note_written(written);
        note("step " + std::to_string(step_) + " of " + std::to_string(setup_.config.train.steps) + " in " +
             human_seconds(seconds()) + ": " + path +
             (step_ < setup_.config.train.steps ? " (--resume goes on)" : ""));
    }

    static std::string stem(const std::string& path) {
        std::string name = path.substr(path.rfind('/') + 1);
        return name.substr(0, name.rfind('.'));
    }

    const TrainingOptions& options_;
    RunSetup setup_;
    Learner learner_;
    RunLog log_;
    LiveLine live_;
    Batch work_;
    std::int64_t step_;
    double flops_a_token_, peak_ = 0;
    Clock::time_point started_;
};

/// The memory this process holds now, in bytes: what preparing the data took and gave back is not in it.
std::size_t current_memory() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0, resident = 0;
    if (!(statm >> pages >> resident)) return peak_memory();  // not Linux
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

int dry_run(const RunSetup& setup) {
    const ModelConfig& model = setup.config.model;
    TracedModel traced = trace(model, true);
    std::size_t peak =
        std::max(peak_memory(), current_memory() + Learner::bytes(model, setup.rows(), setup.threads));
    const TokenSource& source = setup.windows->source();
    ordered_json out = {{"parameters", traced.graph.parameter_count()},
                        {"train_tokens", source.size(DataSplit::train)},
                        {"validation_tokens", source.size(DataSplit::validation)},
                        {"tokens_per_step", setup.rows() * setup.config.train.accumulate},
                        {"steps", setup.config.train.steps},
                        {"peak_memory_mib", mib(peak)}};
    for (const auto& [key, value] : out.items()) write_stdout(key + " " + value.dump() + "\n");
    flush_stdout();
    return 0;
}

}  // namespace

int train(const TrainingOptions& options) {
    RunSetup setup = set_up(options);
    if (options.dry_run) return dry_run(setup);
    install_stop_signals();  // until here nothing is lost by ending at once, and making a vocabulary may take
                             // minutes
    setup.folder->begin();
    return Trainer(options, std::move(setup)).run();
}

StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps) {
    RunConfig run = config;
    run.model.vocabulary = vocabulary;
    std::int64_t rows = run.train.batch * run.train.sequence;
    Learner learner(run.model, rows, threads, static_cast<std::uint64_t>(run.train.seed));
    Rng rng(static_cast<std::uint64_t>(run.train.seed), 1);
    Batch batch;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(run.train.sequence) + 1);
    std::uint64_t draw = 0;
    for (std::int64_t b = 0; b < run.train.batch; b++) {
        for (auto& id : tokens)
            id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocabulary), draw++));
        batch.add(tokens.data(), run.train.sequence, 0, b);
        batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    }
    batch.training = true;
    batch.loss_scale = 1.0 / static_cast<double>(rows * run.train.accumulate);
    std::vector<double> times;
    StepTiming timing;
    for (int step = -1; step < steps; step++) {  // the first warms up
        Clock::time_point begin = Clock::now();
        timing.loss = 0;
        for (std::int64_t micro = 0; micro < run.train.accumulate; micro++)
            timing.loss += learner.learn(batch) * batch.loss_scale;
        learner.update(run.train, learning_rate(run.train, step + 1), step + 2);
        if (step >= 0) times.push_back(since(begin));
    }
    std::sort(times.begin(), times.end());
    double median = times[times.size() / 2];
    timing.step_ms = median * 1e3;
    timing.tokens_per_s = static_cast<double>(rows * run.train.accumulate) / median;
    timing.flops_per_s =
        timing.tokens_per_s * 3 * forward_flops(learner.traced(), static_cast<double>(run.train.sequence));
    return timing;
}

}  // namespace linnet
