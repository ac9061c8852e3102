#include "train/start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "kernels/kernels.h"
#include "model/adapter.h"
#include "model/convert/open.h"
#include "model/fingerprint.h"
#include "model/rewrite.h"
#include "model/trace/trace.h"
#include "text/chat/template.h"
#include "train/task/objectives.h"

namespace linnet {
namespace {

using nlohmann::json;

/// The source of the chat template in a file; empty: it has none.
std::string_view template_source(const Gguf& file) {
    return file.string(chat_template_key).value_or("");
}

/// What --set or else the config's JSON says of a setting, as text; empty: nothing.
std::string setting_text(const json& config, const std::vector<std::string>& settings,
                         const std::string& section, const std::string& key) {
    std::string text;
    if (config.is_object() && config.contains(section) && config[section].is_object())
        if (const json& value = config[section].value(key, json()); value.is_string()) text = value;
    return last_setting(settings, section + "." + key).value_or(text);
}

/// Whether an encoder that told something else is to tell classes or tags: then its head begins anew.
bool asks_new_head(const ModelConfig& base, const std::string& objective) {
    const Objective* asked = find_objective(objective);
    return base.is_encoder() && asked && asked->kind == base.kind && asked->examples &&
           asked->head != base.head.kind;
}

/// Error where the config asks for another form of model than the base's.
void check_form(const Model& base, const RunConfig& config, bool new_head, const std::string& name) {
    ModelConfig theirs = base.config(), ours = config.model;
    const std::vector<Field> there = model_fields(theirs), here = model_fields(ours);
    for (std::size_t i = 0; i < here.size(); i++) {
        const std::string& key = here[i].key;
        if (of_training(key) || (new_head && (key.starts_with("model.head.") || key == "model.pooling")))
            continue;
        if (value_of(here[i]) != value_of(there[i]))
            fail_input(name, key, value_of(there[i]).dump() + ", as " + base.path() + " has it",
                       value_of(here[i]).dump(), "a run from a model keeps its form");
    }
}

/// Lower layers learn more slowly: those behind the blocks at the full rate, the last block at `decay` of it,
/// the one before at decay² and so on (Clark et al. 2020, ELECTRA, appendix A; Howard & Ruder 2018).
double rate_of(std::int64_t depth, double decay) {
    // 0 would say that the parameter is not trained.
    return std::max(std::pow(decay, static_cast<double>(depth)), std::numeric_limits<double>::min());
}

void check(const RunConfig& config, const std::string& name) {
    const FinetuneConfig& f = config.finetune;
    const std::int64_t layers = config.model.deepest();  // each side's are counted from its own end
    for (const auto& [key, value] :
         {std::pair("finetune.layers", f.layers), std::pair("finetune.reset_layers", f.reset_layers)}) {
        if (value > layers)
            fail_input(name, key, "at most the model's " + std::to_string(layers), std::to_string(value));
        if (value > 0 && f.head) fail_input(name, key, "0, as finetune.head is true", std::to_string(value));
        if (value > 0 && config.model.tie_layers > 0)
            fail_input(name, key, "0, as the layers of this model share their weights",
                       std::to_string(value));
    }
    if (f.layers > 0 && f.reset_layers > f.layers)
        fail_input(name, "finetune.reset_layers", "at most finetune.layers, as others are not trained",
                   std::to_string(f.reset_layers));
    if (f.lora.rank > 0 && f.head)
        fail_input(name, "finetune.head", "false with an adapter, which stands beside layers", "true");
    if (f.lora.rank > 0 && f.reset_layers > 0)
        fail_input(name, "finetune.reset_layers", "0 with an adapter, which cannot hold whole layers",
                   std::to_string(f.reset_layers));
    if (f.lora.rank == 0 && (f.lora.alpha > 0 || !f.lora.targets.empty() || f.lora.dropout > 0))
        fail_input(name, "finetune.lora.rank", "a rank, as other settings of an adapter are given", "0",
                   "--lora R");
}

/// The parameters of a run's graph, in its order: their names tell which of the base's each begins as.
LearnerStart learner_start(const Model& base, const RunConfig& config, bool new_head,
                           const std::string& name) {
    const FinetuneConfig& f = config.finetune;
    const std::int64_t deepest = f.head ? 0 : f.layers > 0 ? f.layers : INT64_MAX;
    LearnerStart start;
    const std::vector<Parameter>& theirs = base.traced().graph.parameters();
    auto add = [&](const Parameter& parameter, const Tensor& stored) {
        const std::int64_t depth = depth_of(parameter.name, config.model);
        ParameterStart& s = start.own.emplace_back();
        s.stored = stored;
        // Factors of rotary positions are constants.
        s.trained = f.lora.rank == 0 && depth <= deepest && !parameter.name.starts_with("rope_f");
        s.rate = rate_of(depth, f.layer_decay);
        if (s.trained && depth > 0 && depth <= f.reset_layers) s.stored.data = nullptr;
    };
    if (new_head) {
        std::map<std::string, std::size_t> at;
        for (std::size_t i = 0; i < theirs.size(); i++) at[theirs[i].name] = i;
        ModelConfig model = config.model;
        model.head.classes = std::max<std::int64_t>(model.head.classes, 1);  // the data may say them later
        const TracedModel run = trace(model, true);
        for (const Parameter& parameter : run.graph.parameters()) {
            auto found = at.find(parameter.name);
            const bool kept = found != at.end() && !parameter.name.starts_with("cls.output");
            add(parameter, kept ? base.parameters()[found->second] : Tensor());
        }
        return start;
    }
    for (std::size_t i = 0; i < theirs.size(); i++) add(theirs[i], base.parameters()[i]);
    if (f.lora.rank == 0) {
        const auto trained = [](const ParameterStart& one) { return one.trained; };
        if (std::none_of(start.own.begin(), start.own.end(), trained))
            fail_input(name, f.head ? "finetune.head" : "finetune.layers", "a part of the model to train",
                       "none of its parameters");
        return start;
    }
    AdapterShape& adapter = start.adapters.emplace_back();
    adapter.targets = choose_targets(base, f.lora.targets, deepest,
                                     (name.empty() ? "" : name + ": ") + "finetune.lora.targets");
    adapter.dropout = f.lora.dropout;
    for (AdapterTarget& target : adapter.targets) {
        target.rank = f.lora.rank;
        target.scale = f.lora.alpha / static_cast<double>(f.lora.rank);
        start.adapter_rates.push_back(rate_of(depth_of(target.tensor, config.model), f.layer_decay));
    }
    return start;
}

/// A file is written again with its own tensors, so a bias that it lacks could not be kept.
void require_tensors(const Model& base) {
    for (const StoredTensor& t : stored_tensors(base.traced().graph, base.architecture(), base.file()))
        if (!base.file()->tensor(t.name))
            fail_input(base.path(), t.name, "a tensor, as all of the model is trained", "none",
                       "finetune --lora trains beside it");
}

}  // namespace

std::string start_model(const json& config, const std::vector<std::string>& settings) {
    return setting_text(config, settings, "finetune", "model");
}

void open_base(const std::string& model, TrainingStart& start) {
    start.base = Model::open(model == built_in ? "" : model);
    start.fingerprint = fingerprint(*start.base);
}

json config_of_run(const Gguf& file) {
    const auto config = file.string("linnet.train.config");
    return config ? parse_or_discard(*config) : json();
}

void settle_template(const FinetuneConfig& config, const std::string& checkpoint, TrainingStart& start) {
    const std::string& named = config.form;
    if (named.empty()) return;
    if (!checkpoint.empty()) {
        const Gguf file(checkpoint);
        const std::string_view kept = template_source(file);
        if (template_in(kept, checkpoint)) {
            start.chat_template = kept;
            return;
        }
    }
    const ChatTemplate form = open_chat_template(named, "finetune.template");
    const std::string_view own = template_source(*start.base->file());
    const auto meant = [&](const ChatTemplate& known) { return has_marks(own, known); };
    const auto means_it = [&](const ChatTemplate& known) { return known.name == named && meant(known); };
    // Another's program that means the same, and nothing else, stays: it may do more, such as calls of tools.
    if (!is_linnets_jinja(own) && std::ranges::any_of(chat_templates(), means_it) &&
        std::ranges::count_if(chat_templates(), meant) == 1)
        return;
    start.chat_template = jinja_of(form, start.base->tokenizer().add_bos());
}

ChatTemplate template_of(const TrainingStart& start, const std::string& first_chat) {
    std::string_view source = start.chat_template;
    if (source.empty()) source = template_source(*start.base->file());
    if (source.empty())
        fail_input(first_chat, "messages", "a model with a chat template",
                   start.base->path() + ", which has none", "--template names one");
    return recognise_chat_template(source, chat_templates(), start.base->path());
}

RunConfig begin_from(const std::string& model, json config, const std::string& name,
                     const std::vector<std::string>& settings, TrainingStart& start) {
    if (!config.is_object() || !config.value("finetune", json::object()).is_object())
        read_run_config(config, name, settings);  // says what is wrong
    for (const std::string& setting : settings)
        if (setting.starts_with("tokenizer."))
            fail(Exit::usage, "--set", setting.substr(0, setting.find('=')), "no setting of the tokenizer",
                 "one", "a run from a model keeps its vocabulary");
    ModelConfig own = start.base->config();
    const bool new_head = asks_new_head(own, setting_text(config, settings, "train", "objective"));
    if (new_head) own.head = {};
    json section = to_json(model_fields(own));
    section.merge_patch({{"model", config.value("model", json::object())}});
    config["model"] = section["model"];
    config["finetune"]["model"] = model;
    config["tokenizer"] = {{"kind", "file"}, {"file", model}};
    RunConfig read = read_run_config(config, name, settings);
    check_form(*start.base, read, new_head, name);
    read.finetune.model = model == built_in ? model : kept_path(model);
    read.tokenizer.file = read.finetune.model;
    read.model.vocabulary = own.vocabulary;
    if (read.finetune.lora.alpha == 0)
        read.finetune.lora.alpha = 2.0 * static_cast<double>(read.finetune.lora.rank);
    check(read, name);
    if (new_head && read.finetune.lora.rank > 0)
        fail_input(name, "finetune.lora.rank", "0, as an adapter cannot hold the new head",
                   std::to_string(read.finetune.lora.rank));
    start.new_head = new_head;
    start.learner = learner_start(*start.base, read, new_head, name);
    if (!start.adapts()) {
        require_tensors(*start.base);
        require_gguf_tokenizer(start.base->path(), start.base->tokenizer_beside());
    }
    return read;
}

void require_vocabulary(const TrainingStart& start, const Tokenizer& tokens, const std::string& name) {
    const Tokenizer& own = start.base->tokenizer();
    bool same = own.size() == tokens.size();
    for (TokenId id = 0; same && id < own.size(); id++) same = own.piece(id) == tokens.piece(id);
    if (!same)
        fail_input(name, "tokenizer", "the vocabulary of " + start.base->path(), "another",
                   "linnet corpus -t MODEL makes a corpus for it");
}

std::string save_trained(const std::string& path, const TrainedModel& model, DType type,
                         const std::string& title, const Provenance& provenance) {
    const Graph& graph = model.learner.traced().graph;
    const std::vector<Tensor> parameters = model.learner.parameters();
    const TrainingStart& start = model.start;
    Provenance all = provenance;
    if (start.base) all["train.base"] = start.fingerprint;
    if (!start.base || start.new_head)
        return save_model(path, model.config.model, graph, parameters, model.tokenizer, type, title, all);
    if (start.adapts()) {
        const AdapterShape& shape = start.learner.adapters[0];
        std::vector<std::vector<float>> joined;
        const std::vector<AdapterPair> pairs = pairs_of(graph, shape, 0, parameters, joined);
        return save_adapter(path, start.base->architecture().name, shape.targets, pairs,
                            model.config.finetune.lora.alpha, title, all, Existing::replace_name,
                            start.chat_template);
    }
    // The model's parameters stand in the learner's graph in the base's order, helpers among them.
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < graph.parameters().size(); i++)
        if (graph.parameters()[i].adapter == none) own.push_back(i);
    std::vector<StoredTensor> stored =
        stored_tensors(start.base->traced().graph, start.base->architecture(), start.base->file());
    for (StoredTensor& tensor : stored)
        for (std::size_t& part : tensor.parts) part = own[part];
    std::sort(stored.begin(), stored.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return rewrite_model(
        *start.base->file(), path, all,
        [&](const GgufTensor& t) -> std::optional<NewTensor> {
            auto at =
                std::lower_bound(stored.begin(), stored.end(), t.name,
                                 [](const StoredTensor& s, std::string_view name) { return s.name < name; });
            if (at == stored.end() || at->name != t.name) return std::nullopt;
            if (std::none_of(at->parts.begin(), at->parts.end(),
                             [&](std::size_t p) { return model.learner.trains(p); }))
                return std::nullopt;
            const DType to = always_f32(graph.parameters()[at->parts[0]]) ? DType::f32 : type;
            return NewTensor{to, [&, to, parts = at->parts](const GgufWriter::Sink& sink) {
                                 for (std::size_t part : parts)
                                     emit_tensor(parameters[part], to, sink, path,
                                                 graph.parameters()[part].name);
                             }};
        },
        true, Existing::replace_name, start.chat_template);
}

void load_trained(const std::string& path, Learner& learner, const TrainingStart& start) {
    const Gguf file(path);
    const Graph& graph = learner.traced().graph;
    std::vector<std::vector<float>> converted;
    std::vector<Tensor> from(graph.parameters().size());
    std::vector<Adapter> adapters;
    if (start.adapts()) {
        adapters.push_back(adapter_of_gguf(file, *start.base, 1));
        const auto& ours = start.learner.adapters[0].targets;
        const auto& theirs = adapters[0].shape.targets;
        bool same = ours.size() == theirs.size();
        for (std::size_t i = 0; same && i < ours.size(); i++)
            same = ours[i].tensor == theirs[i].tensor && ours[i].rank == theirs[i].rank;
        if (!same) fail_input(path, "", "the adapter that the run's config says", "another");
        bind_adapters(graph, adapters, from);
    } else {
        const Architecture* architecture = nullptr;
        read_config(file, architecture);
        from = bind_parameters(graph, file, *architecture, converted);
    }
    const std::vector<Tensor> to = learner.parameters();
    for (std::size_t i = 0; i < to.size(); i++)
        if (learner.trains(i) && graph.parameters()[i].adapter != helper)
            kernels().load(to[i].shape.count(), from[i].type, from[i].data, to[i].as<float>());
}

}  // namespace linnet
