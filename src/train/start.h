// What a run begins from where that is a model: `linnet finetune`, `linnet train --from`.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/weights.h"
#include "text/chat/template.h"
#include "train/run_model.h"
#include "train/step/learner.h"
#include "train/task/config.h"

namespace linnet {

struct TrainingStart {
    std::shared_ptr<const Model> base;  // null: the run begins from nothing
    std::string fingerprint;            // of it
    LearnerStart learner;
    bool new_head = false;      // an encoder that told something else is to tell classes or tags
    std::string chat_template;  // for what is written, in the place of the base's; empty: that stays

    bool adapts() const { return !learner.adapters.empty(); }
    /// What a run from here calls the file of what it trains.
    const char* model_name() const { return adapts() ? best_adapter : best_model; }
};

/// finetune.model for the model inside the executable.
inline constexpr const char* built_in = "built-in";

/// What `settings` ("key=value") or the config's JSON name as finetune.model; empty: nothing.
std::string start_model(const nlohmann::json& config, const std::vector<std::string>& settings);

/// Opens the model that a run begins from: start.base and its fingerprint. Errors as Model::open.
void open_base(const std::string& model, TrainingStart& start);

/// The config of the run that made a file; where that says none, a value that has no members.
nlohmann::json config_of_run(const Gguf& file);

/// Of a base that is open: start.chat_template, where finetune.template names another template than the
/// base's own. `checkpoint`: the model or adapter of the checkpoint that the run goes on from, whose template
/// stays whatever became of a file that was named; empty: none. Errors as open_chat_template's.
void settle_template(const FinetuneConfig& config, const std::string& checkpoint, TrainingStart& start);
/// What the base's or the run's template means. Error(Exit::input) naming `first_chat` where there is none.
ChatTemplate template_of(const TrainingStart& start, const std::string& first_chat);

/// Of a base that is open: reads the config with the model's own settings under "model", and decides what is
/// trained: also a new head, where an encoder is to tell classes or tags. Error(Exit::input) where the config
/// asks for another model, vocabulary or layers that it does not have.
RunConfig begin_from(const std::string& model, nlohmann::json config, const std::string& name,
                     const std::vector<std::string>& settings, TrainingStart& start);

/// Error(Exit::input) where `tokens`, of the data called `name`, has another vocabulary than the model.
void require_vocabulary(const TrainingStart& start, const Tokenizer& tokens, const std::string& name);

/// What a run writes: its weights, and what stands around them.
struct TrainedModel {
    const TrainingStart& start;
    const RunConfig& config;
    const Tokenizer& tokenizer;
    const Learner& learner;
};
/// An adapter; or the base's file with what was trained in `type`; or (a new head) a file of its own. Returns
/// the sha256.
std::string save_trained(const std::string& path, const TrainedModel& model, DType type,
                         const std::string& title, const Provenance& provenance);

/// Puts back what was trained, from a file that save_trained() wrote in f32.
void load_trained(const std::string& path, Learner& learner, const TrainingStart& start);

}  // namespace linnet
