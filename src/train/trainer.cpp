#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <optional>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory_use.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "model/convert/peft.h"
#include "model/convert/sinks.h"
#include "train/confusion.h"
#include "train/edited_config.h"
#include "train/live.h"
#include "train/log.h"
#include "train/needs.h"
#include "train/report/report.h"
#include "train/run_model.h"
#include "train/run_notes.h"
#include "train/setup.h"
#include "train/step/learner.h"
#include "train/step/timing.h"

namespace linnet {
namespace {

using nlohmann::ordered_json;

double mib(std::size_t bytes) {
    return static_cast<double>(bytes >> 10) / 1024.0;
}

constexpr double first_look_s = 30;     // the first evaluation comes after the step that ends later
constexpr double most_unsaved_s = 600;  // of work that a power failure may take
constexpr int plans = 6;                // how often the clock is asked before the learning rate decays

Learner learner_of(const RunSetup& setup) {
    try {
        return Learner(setup.config.model, setup.rows(), setup.threads,
                       static_cast<std::uint64_t>(setup.config.train.seed), groups_of(setup.config.train),
                       setup.start.learner, numbers_of(setup.config));
    } catch (const MemoryRefused& refused) {
        throw MemoryRefused(refused.bytes(), refused.use(), memory_with_learner(setup, setup.config));
    }
}

class Trainer {
  public:
    Trainer(const TrainingOptions& options, RunSetup setup)
        : options_(options),
          setup_(std::move(setup)),
          learner_(learner_of(setup_)),
          batches_(batches_of(setup_)),
          log_(options.out + "/log.jsonl", setup_.checkpoint.log_bytes, options.json),
          best_loss_(setup_.checkpoint.best_loss),
          outliers_(setup_.checkpoint.outliers),
          step_(setup_.checkpoint.step),
          flops_a_token_(
              3 * forward_flops(learner_.traced(), static_cast<double>(setup_.config.train.sequence))) {}

    int run() {
        start();
        const TrainConfig& t = setup_.config.train;
        int signal = 0;
        while (!ended() && !overfitted_ && !(signal = stop_signal()) &&
               (step_ == first_step_ || !out_of_time())) {
            train_step();
            if (t.eval_every > 0 && step_ % t.eval_every == 0) evaluate(true);
            if (!ended() && t.checkpoint_every > 0 &&
                (step_ % t.checkpoint_every == 0 || seconds_since(saved_) >= most_unsaved_s))
                save();
            if (!best_loss_.any() && evaluated_ < 0 && seconds_since(begun_) >= first_look_s) evaluate(false);
            if (setup_.by_time) follow_clock();
        }
        if (step_ == 0 && setup_.folder->replaces()) {  // nothing is learned that could replace a run
            live_.clear();
            note("no step was done: the run that " + options_.out + " held stays");
        } else {
            finish(signal);
        }
        return signal ? 128 + signal : 0;
    }

  private:
    double elapsed() const { return seconds_since(setup_.started); }
    double seconds() const { return setup_.checkpoint.seconds + seconds_since(begun_); }
    bool ended() const { return step_ >= setup_.config.train.steps; }
    bool out_of_time() const { return setup_.time_limit_s > 0 && elapsed() >= setup_.time_limit_s; }
    std::string file(const char* name) const { return options_.out + "/" + name; }
    const char* best_name() const { return setup_.start.model_name(); }
    /// Another name of the best model, which checkpoints link: model.gguf may be moved or replaced while the
    /// run goes on.
    std::string kept_best() const { return options_.out + "/checkpoints/.best.gguf"; }
    TrainedModel trained() const { return {setup_.start, setup_.config, *setup_.tokenizer, learner_}; }

    void start() {
        if (setup_.resumed) {
            load_checkpoint(*setup_.resumed, learner_, setup_.start);
            overfitted_ = setup_.checkpoint.overfitted && stops_early();
            if (overfitted_)
                note("the run has ended early, as the model was overfitting; --no-early-stop goes on");
            // The best model may be of a step that is still to come.
            best_sha256_ = setup_.checkpoint.best_sha256;
            if (!setup_.checkpoint.best.empty()) {
                link_or_copy(setup_.checkpoint.best, file(best_name()));
                keep_best();
            }
        }
        peak_ = products_peak(setup_.config.train.precision, setup_.threads, setup_.peak_flops).flops;
        begun_ = saved_ = Clock::now();
        first_step_ = step_;
        if (setup_.resumed) {
            log_.write({{"event", "resume"},
                        {"step", step_},
                        {"steps", setup_.config.train.steps},
                        {"config", setup_.config_json}});
            const std::string step = grouped(static_cast<std::uint64_t>(step_));
            note(ended() ? "the run has ended at step " + step + "; --steps or --epochs goes on"
                         : "resuming at step " + step);
        } else {
            log_.write({{"event", "start"},
                        {"config", setup_.config_json},
                        {"parameters", learner_.parameter_count()},
                        {"trained", learner_.trained_count()},
                        {"train_tokens", setup_.tokens(DataSplit::train)},
                        {"validation_tokens", setup_.tokens(DataSplit::validation)},
                        {"vocabulary", setup_.config.model.vocabulary},
                        {"threads", setup_.threads},
                        {"isa", kernels().name},
                        {"peak_flops", with_digits(peak_, 4)},
                        {"flops_per_token", with_digits(flops_a_token_, 6)}});
        }
        write_config();
        const bool all = learner_.trained_count() == learner_.parameter_count();
        note(human_count(static_cast<double>(learner_.parameter_count())) + " parameters, " +
             (all ? "" : human_count(static_cast<double>(learner_.trained_count())) + " of them trained, ") +
             "vocabulary " + grouped(static_cast<std::uint64_t>(setup_.config.model.vocabulary)) + ", " +
             human_count(static_cast<double>(setup_.tokens(DataSplit::train))) +
             (counts_tokens() ? " training tokens, " : " training examples, ") +
             std::to_string(setup_.threads) + (setup_.threads == 1 ? " thread, " : " threads, ") +
             kernels().name + ", " + setup_.config.train.precision);
        note_whether_held_out(setup_);
    }

    /// After the log has its steps: else one that a kill left would be taken for edited.
    void write_config() const {
        write_file(file("config.json"), config_text(2) + "\n", Existing::replace_name);
    }

    void train_step() {
        const TrainConfig& t = setup_.config.train;
        Clock::time_point begin = Clock::now();
        const auto [loss, rows] = learn_step(setup_, step_, learner_, batches_);
        // Before anything is learned, weights that came from a model are to blame and not the learning rate.
        if (step_ == 0 && setup_.start.base && !std::isfinite(loss)) fail_not_finite(*setup_.start.base);
        double lr = learning_rate(t, step_);
        StepOptions how;
        how.skip_above = outliers_.limit(t.skip_outliers);
        how.watch = watched(step_ + 1);
        const StepResult done = learner_.update(t, step_ + 1, how);
        if (!std::isfinite(loss) || !std::isfinite(done.norm)) {
            char got[96];
            std::snprintf(got, sizeof got, "loss %g, gradient norm %g", std::fabs(loss),
                          std::fabs(done.norm));
            diverged(step_ + 1, loss, got);
        }
        if (t.skip_outliers > 0) outliers_.observe(done.norm);
        if (!done.applied) outliers_.count_skipped();
        step_++;
        double took = seconds_since(begin), speed = static_cast<double>(rows) / took;
        double router = learner_.take_router_loss(), next = learner_.take_next_loss();
        expert_use_ = learner_.take_expert_use();
        double share = peak_ > 0 ? speed * flops_a_token_ / peak_ : 0;
        ordered_json record = {{"event", "step"},
                               {"step", step_},
                               {"loss", with_digits(loss, 7)},
                               {"lr", with_digits(lr, 6)},
                               {"grad_norm", with_digits(done.norm, 5)},
                               {"tokens_per_s", with_digits(speed, 5)},
                               {"mfu", with_digits(share, 3)},
                               {"seconds", with_digits(seconds(), 7)}};
        if (learner_.traced().next_loss != none) record["next_loss"] = with_digits(next, 6);
        if (!learner_.traced().router_losses.empty()) record["router_loss"] = with_digits(router, 6);
        if (learner_.has_generator())
            record["generator_loss"] = with_digits(learner_.take_generator_loss(), 7);
        if (!done.applied) record["skipped"] = true;
        if (!t.groups.empty()) record["group_lr"] = group_rates();
        log_.write(record);
        if (done.applied) log_blocks(done.blocks);
        double left = setup_.time_limit_s > 0 ? std::max(0.0, setup_.time_limit_s - elapsed()) : INFINITY;
        live_.step(step_, t.steps, loss, lr, speed, share, left);
    }

    /// Steps whose updates are measured block by block: about a hundred in a run.
    bool watched(std::int64_t step) const {
        return step == 1 || step % std::max<std::int64_t>(1, setup_.config.train.steps / 100) == 0;
    }

    ordered_json group_rates() const {
        const std::vector<ParameterGroup>& groups = learner_.groups();
        ordered_json rates = ordered_json::array();
        for (std::size_t g = 1; g < groups.size(); g++)  // 0: the run's own
            rates.push_back(with_digits(group_rate(groups[g], rate_span(setup_.config.train), step_ - 1), 6));
        return rates;
    }

    /// Gradient norms and how much of its own size each block was changed by.
    void log_blocks(const std::vector<BlockStep>& blocks) {
        if (blocks.empty()) return;
        ordered_json names = ordered_json::array(), gradients = names, updates = names;
        for (const BlockStep& block : blocks) {
            names.push_back(block.name);
            gradients.push_back(with_digits(block.gradient, 4));
            updates.push_back(with_digits(block.weight > 0 ? block.update / block.weight : 0, 4));
        }
        log_.write({{"event", "blocks"},
                    {"step", step_},
                    {"names", names},
                    {"grad_norm", gradients},
                    {"update", updates}});
    }

    /// Steps of a run by time are held against the clock while its learning rate is still constant: they end
    /// on time also where other work slows the machine down. What has been done is the same under the new
    /// end, and config.json tells it, so the run can be had again.
    void follow_clock() {
        TrainConfig& t = setup_.config.train;
        double due = setup_.time_limit_s * (1 - t.schedule.decay) / plans * (planned_ + 1);
        if (elapsed() < due || step_ - first_step_ < 5) return;
        planned_++;
        double before =
            setup_.time_limit_s - elapsed() + seconds_since(begun_);  // of the time, this is for steps
        std::int64_t steps = fitting_steps(t, step_, seconds_since(begun_), before, setup_.text_size);
        if (steps == t.steps) return;
        t.steps = steps;
        setup_.config_json = whole_config(setup_.config);
        log_.write({{"event", "plan"}, {"step", step_}, {"steps", steps}});
        write_config();
    }

    /// Says numbers without the sign that a nan may have.
    [[noreturn]] void diverged(std::int64_t step, double loss, const std::string& got) {
        live_.clear();
        log_.write({{"event", "diverged"}, {"step", step}, {"loss", std::to_string(std::fabs(loss))}});
        write_report(file("report.html"), log_.run());
        auto kept = newest_checkpoint(options_.out + "/checkpoints");
        fail(Exit::diverged, options_.out, "step " + std::to_string(step), "finite numbers", got,
             kept ? "the checkpoint " + *kept + " is kept; a lower train.optimizer.lr may help"
                  : "a lower train.optimizer.lr may help");
    }

    struct Measured {
        double loss = 0, bpb = 0;  // nats per token, bits per byte
        std::int64_t tokens = 0;
    };
    /// Of the held-out part of one text.
    Measured validation_of(std::size_t part) {
        double nats = 0;
        Measured m;
        Batch batch;
        const std::int64_t batches = setup_.config.train.eval_batches;
        for (std::int64_t i = 0; fill_validation(setup_, part, i, batches, batch); i++) {
            nats += learner_.evaluate(batch);
            confusion_.add(learner_.class_logits(), learner_.class_targets(batch));
            if (const auto* next = batch.find_stream("next")) next_.add(learner_.next_logits(), *next);
            m.tokens += target_count(batch);
        }
        if (m.tokens == 0) return m;
        m.loss = nats / static_cast<double>(m.tokens);
        m.bpb = setup_.task ? NAN : bits_per_byte(setup_, part, m.loss);  // not every token is a target
        return m;
    }

    /// The mean loss of the held-out text in nats per token, of several texts by their weights; nothing where
    /// there is none, or where it says nothing of how good the model is.
    std::optional<double> validation_loss() {
        Measured all;
        ordered_json texts = ordered_json::array();
        double weights = 0;
        const bool several = setup_.texts() > 1;
        confusion_ = Confusion(setup_.labels.size());
        next_ = Confusion(next_classes);
        for (std::size_t part = 0; part < setup_.texts(); part++) {
            const Measured m = validation_of(part);
            if (m.tokens == 0) continue;
            const double weight = several ? setup_.windows->weight(part) : 1;
            all.loss += weight * m.loss, all.bpb += weight * m.bpb, all.tokens += m.tokens;
            weights += weight;
            if (several)
                texts.push_back({{"name", setup_.text_name(part)},
                                 {"loss", with_digits(m.loss, 7)},
                                 {"bpb", with_digits(m.bpb, 6)},
                                 {"tokens", m.tokens}});
        }
        if (all.tokens == 0) return std::nullopt;
        const double loss = all.loss / weights, bpb = all.bpb / weights;
        if (!std::isfinite(loss)) diverged(step_, loss, "validation loss " + std::to_string(std::fabs(loss)));
        ordered_json record = {{"event", "eval"}, {"step", step_}, {"loss", with_digits(loss, 7)}};
        if (learner_.has_generator())
            record["generator_loss"] = with_digits(learner_.take_generator_loss(), 7);
        if (!setup_.task) record["bpb"] = with_digits(bpb, 6);
        record["tokens"] = all.tokens;
        record["seconds"] = with_digits(seconds(), 7);
        if (several) record["texts"] = texts;
        const double accuracy = confusion_.any() ? confusion_.accuracy() : NAN;
        if (confusion_.any()) record["accuracy"] = with_digits(accuracy, 6);
        if (next_.any()) record["next_accuracy"] = with_digits(next_.accuracy(), 6);
        log_.write(record);
        log_confusion();
        live_.evaluated(step_, loss, bpb, accuracy);
        // The better a generator guesses the harder it is to tell: no two steps' losses can be compared.
        if (learner_.has_generator()) return std::nullopt;
        return loss;
    }

    /// Measures, writes a sample, renews model.gguf (where this is the best model so far) and report.html.
    /// `regular`: at a step that the config says; only such ones decide what the best is and whether the
    /// model is overfitting, as a resumed run must decide alike. Others, at a moment of the clock, are for
    /// people to look at.
    void evaluate(bool regular) {
        std::optional<double> loss = validation_loss();
        bool best = !loss || (regular ? best_loss_.observe(step_, *loss) : best_loss_.beats_best(*loss));
        if (best) {
            best_sha256_ = write_model(file(best_name()));
            keep_best();
        }
        best_is_last_ = best;
        evaluated_ = step_;
        log_expert_use();
        sample();
        write_report(file("report.html"), log_.run());
        const bool overfitting = regular && best_loss_.overfitting() && read_once();
        if (overfitting && stops_early()) overfitted_ = true;
        if (overfitting && !said_overfitting_) {
            said_overfitting_ = true;
            note("validation has not fallen since step " +
                 grouped(static_cast<std::uint64_t>(best_loss_.best_step())) + ": the model is overfitting" +
                 (overfitted_ ? "; ending (--no-early-stop goes on)" : ""));
        }
    }

    bool stops_early() const { return options_.early_stop && setup_.checkpoint.early_stop; }
    /// Whether the whole text has been read: a model does not overfit before, however the losses of a few
    /// batches rise and fall.
    bool read_once() const {
        const std::int64_t read = step_ * setup_.config.train.step_tokens();
        return static_cast<std::uint64_t>(read) >= setup_.text_size.train_tokens;
    }
    /// Else the training data are counted in examples.
    bool counts_tokens() const { return setup_.windows.has_value(); }

    /// What the held-out examples of each class were taken for.
    void log_confusion() {
        if (!confusion_.has_table()) return;
        ordered_json record = {{"event", "confusion"}, {"step", step_}};
        record.update(confusion_.to_json(setup_.labels));
        log_.write(record);
    }

    /// How the last step's tokens were spread over the experts of each layer.
    void log_expert_use() {
        ordered_json layers = ordered_json::array();
        for (const ExpertUse& use : expert_use_) {
            std::int64_t total = std::accumulate(use.choices.begin(), use.choices.end(), std::int64_t{0});
            ordered_json shares = ordered_json::array();
            for (std::int64_t n : use.choices)
                shares.push_back(with_digits(static_cast<double>(n) / static_cast<double>(total), 4));
            layers.push_back({{"layer", use.layer}, {"shares", shares}});
        }
        if (!layers.empty()) log_.write({{"event", "experts"}, {"step", step_}, {"layers", layers}});
    }

    void sample() {
        std::int64_t tokens = setup_.config.train.sample_tokens;
        if (!options_.sample || tokens == 0 || !setup_.config.model.has_decoder()) return;
        ModelConfig config = setup_.config.model;
        std::string prompt = held_out_line(setup_);
        if (prompt.empty() && config.has_encoder()) return;  // nothing to answer
        const SignalsUnheeded whole;
        std::string text;
        try {
            text = options_.sample(
                Model::view(config, setup_.tokenizer, learner_.parameters(), setup_.start.learner.adapters),
                prompt, tokens);
        } catch (const Error& error) {
            // Numbers too large to write with, say: whether they end the run is for its losses to tell.
            if (error.exit() != Exit::input) throw;
            note("no sample of step " + grouped(static_cast<std::uint64_t>(step_)) + ": " + error.what());
            return;
        }
        log_.write({{"event", "sample"}, {"step", step_}, {"prompt", prompt}, {"text", text}});
        live_.sample(prompt, text);
    }

    /// The config, whatever bytes a path in it has.
    std::string config_text(int indent) const {
        return setup_.config_json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
    }

    Provenance provenance() const {
        Provenance all = {{"train.config", config_text(-1)},
                          {"train.data.sha256", setup_.data_hash},
                          {"train.step", std::to_string(step_)},
                          {"train.isa", kernels().name}};
        if (!setup_.labels.empty()) all.emplace("labels", nlohmann::json(setup_.labels).dump());
        if (setup_.two_texts) all.emplace("texts", *setup_.two_texts ? "2" : "1");
        return all;
    }

    /// The last update may have spoiled the weights, and only the next step's loss would tell. Asked before a
    /// file is replaced.
    void require_finite() {
        if (!learner_.finite()) diverged(step_, NAN, "weights that are not");
    }

    void keep_best() const {
        make_folders(options_.out + "/checkpoints");
        link_or_copy(file(best_name()), kept_best());
    }

    void save() {
        require_finite();
        Checkpoint state = setup_.checkpoint;
        state.step = step_;
        state.name = title();
        state.config = setup_.config_json;
        state.data = setup_.data_hash;
        state.log_bytes = log_.bytes();
        state.seconds = seconds();
        state.isa = kernels().name;
        state.inputs = setup_.data;
        state.best_loss = best_loss_;
        state.outliers = outliers_;
        state.texts = text_positions(setup_, step_);
        state.best = best_loss_.any() ? kept_best() : "";
        state.best_sha256 = best_sha256_;
        state.base = setup_.start.fingerprint;
        state.early_stop = stops_early();
        state.overfitted = overfitted_;
        save_checkpoint(options_.out + "/checkpoints", state, learner_, trained(), provenance());
        setup_.folder->settle();
        saved_ = Clock::now();
    }

    /// The name of the run's models: of the config that it began with, however it is resumed. A run's own
    /// config.json names nothing.
    std::string title() const {
        if (!setup_.checkpoint.name.empty()) return setup_.checkpoint.name;
        const std::string name = stem(options_.config_path);
        const bool own = name == "config" || name.starts_with("config.edited");  // what a run itself writes
        return name.empty() || name == "-" || own ? "linnet" : name;
    }

    /// Its SHA-256.
    std::string write_model(const std::string& path) {
        require_finite();
        return save_trained(path, trained(), *dtype_from_name(setup_.config.train.weights), title(),
                            provenance());
    }

    void finish(int signal) {
        save();  // first: an evaluation may take long, and a second signal ends it
        if (evaluated_ != step_) evaluate(false);
        live_.clear();
        if (best_is_last_)
            link_or_copy(kept_best(), file(last_model));
        else
            write_model(file(last_model));
        if (name_taken(kept_best())) link_or_copy(kept_best(), file(best_name()));
        remove_all(kept_best());
        ordered_json end = {{"event", "end"},
                            {"step", step_},
                            {"seconds", with_digits(seconds(), 7)},
                            {"peak_memory_mib", with_digits(mib(peak_memory()), 5)},
                            {"reason", signal        ? "signal"
                                       : overfitted_ ? "overfitting"
                                       : ended()     ? "steps"
                                                     : "time"}};
        if (setup_.config.train.skip_outliers > 0) end["skipped"] = outliers_.skipped();
        log_.write(end);
        if (outliers_.skipped() > 0)
            note(grouped(static_cast<std::uint64_t>(outliers_.skipped())) +
                 " steps were skipped, as their gradient norms were outliers");
        write_report(file("report.html"), log_.run());
        if (setup_.config.train.save == "hf") write_hub_folder();
        if (planned_ > 0) note_rate_never_peaks(setup_);
        if (end["reason"] == "time") note_rate_cut_off(setup_, step_);
        for (const char* name : {best_name(), last_model, "report.html"}) note_written(file(name));
        auto shown = [](std::int64_t n) { return grouped(static_cast<std::uint64_t>(n)); };
        note("step " + shown(step_) + " of " + shown(setup_.config.train.steps) + " in " +
             human_seconds(seconds()) +
             (best_is_last_ || !best_loss_.any()
                  ? ""
                  : "; " + std::string(best_name()) + " is of step " + shown(best_loss_.best_step())) +
             (ended()       ? ""
              : overfitted_ ? " (--resume --no-early-stop goes on)"
                            : " (--resume goes on)"));
    }

    /// The best model as a Hugging Face folder, whole though a signal ended the run.
    void write_hub_folder() const {
        const SignalsUnheeded whole;
        const Gguf best(file(best_name()));
        const bool adapts = setup_.start.adapts();
        if (!folder_class(adapts ? *setup_.start.base->file() : best))
            return note("Hugging Face has no family for this model: no folder is written");
        if (adapts) {
            const Model& base = *setup_.start.base;
            write_peft_folder(adapter_of_gguf(best, base, 1), base, file("hf"), Existing::replace);
            return note_written(file("hf"));
        }
        SinkOptions sink;
        sink.existing = Existing::replace;
        write_folder(best, setup_.tokenizer, file("hf"), sink);
        note_written(file("hf"));
    }

    static std::string stem(const std::string& path) {
        std::string name = path.substr(path.rfind('/') + 1);
        return name.substr(0, name.rfind('.'));
    }

    const TrainingOptions& options_;
    RunSetup setup_;
    Learner learner_;
    BatchesAhead batches_;
    RunLog log_;
    LiveLine live_;
    Confusion confusion_{0};  // of the last evaluation
    Confusion next_{0};       // … of which texts follow which
    BestLoss best_loss_;
    std::string best_sha256_;  // of the best model's file
    OutlierGate outliers_;
    std::int64_t step_, first_step_ = 0,
                        evaluated_ = -1;  // evaluated_: the last step that was, in this process
    bool best_is_last_ = false, overfitted_ = false, said_overfitting_ = false;
    std::vector<ExpertUse> expert_use_;  // of the last step
    int planned_ = 0;
    double flops_a_token_, peak_ = 0;
    Clock::time_point begun_, saved_;
};

int dry_run(const RunSetup& setup, bool as_json) {
    const TracedModel traced = training_graph(setup.config.model, setup.start.learner);
    const std::size_t peak = peak_memory_of_run(setup, setup.config);
    ordered_json out = {{"parameters", traced.graph.parameter_count()},
                        {"train_tokens", setup.tokens(DataSplit::train)},
                        {"validation_tokens", setup.tokens(DataSplit::validation)},
                        {"tokens_per_step", setup.config.train.step_tokens()},
                        {"steps", setup.config.train.steps},
                        {"peak_memory_mib", mib(peak)}};
    if (as_json)
        write_stdout(out.dump() + "\n");
    else
        for (const auto& [key, value] : out.items()) write_stdout(key + " " + value.dump() + "\n");
    flush_stdout();
    return 0;
}

}  // namespace

int train(const TrainingOptions& options) {
    RunSetup setup = set_up(options);
    if (options.dry_run) return dry_run(setup, options.json);
    // Until here nothing is lost by ending at once, and making a vocabulary may take minutes.
    install_stop_signals(quiet() ? nullptr
                                 : "\nstopping after this step, with everything saved; a second Ctrl-C stops "
                                   "at once and loses what came after the last checkpoint\n");
    setup.folder->begin();
    if (setup.resumed) keep_edited_config(options, setup);
    return Trainer(options, std::move(setup)).run();
}

}  // namespace linnet
