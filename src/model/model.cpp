// Model: a file, its config, its vocabulary and its parameters, brought together.
#include <optional>
#include <vector>

#include "base/error.h"
#include "model/adapter.h"
#include "model/architectures.h"
#include "model/model.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "text/chat/carried.h"

namespace linnet {
namespace {

/// What a file says of its model, but for the weights.
struct Described {
    const Architecture* architecture = nullptr;
    ModelConfig config;
    TokenizerPtr tokenizer;
    TracedModel traced;

    Described(const Gguf& file, TokenizerPtr beside) : tokenizer(std::move(beside)) {
        if (is_adapter(file))
            fail_input(file.path(), "general.type", "a model", "an adapter",
                       "-m names its model, --lora this file");
        config = read_config(file, architecture);
        if (!tokenizer) tokenizer = tokenizer_from_gguf(file);
        require_vocabulary(file.path(), config, *tokenizer);
        traced = trace(config, false);
    }
};

}  // namespace

struct Model::Impl {
    std::optional<Gguf> file;
    std::string path;
    const Architecture* architecture = nullptr;
    ModelConfig config;
    TokenizerPtr tokenizer, beside;  // beside: where the file does not hold it
    std::vector<AdapterShape> adapters;
    TracedModel traced;
    std::vector<std::vector<float>> converted;
    std::vector<Tensor> parameters;
    std::shared_ptr<const Model> base;                // of a model with adapters
    std::vector<std::shared_ptr<const void>> values;  // … and what their values lie in
    std::vector<std::string> adapter_paths;           // … and what was opened for them
    std::vector<CarriedTemplate> templates;           // … and what they and the base may carry

    Impl(Gguf gguf, const TokenizerPtr& t) : file(std::move(gguf)), path(file->path()), beside(t) {
        Described described(*file, t);
        architecture = described.architecture;
        config = std::move(described.config);
        tokenizer = std::move(described.tokenizer);
        traced = std::move(described.traced);
        parameters = bind_parameters(traced.graph, *file, *architecture, converted);
    }

    Impl(const ModelConfig& c, TokenizerPtr t, std::vector<Tensor> p, std::vector<AdapterShape> a)
        : path("model in memory"),
          config(c),
          tokenizer(std::move(t)),
          adapters(std::move(a)),
          traced(trace(config, false, adapters)),
          parameters(std::move(p)) {}

    Impl(std::shared_ptr<const Model> model, const std::vector<Adapter>& all)
        : path(model->path()),
          architecture(&model->architecture()),
          config(model->config()),
          tokenizer(model->shared_tokenizer()),
          beside(model->tokenizer_beside()),
          base(std::move(model)),
          templates(linnet::carried_templates(*base, all)) {
        for (const Adapter& adapter : all) {
            adapters.push_back(adapter.shape);
            values.push_back(adapter.keep);
            adapter_paths.push_back(adapter.path);
        }
        traced = trace(config, false, adapters);
        const std::vector<Parameter>& mine = traced.graph.parameters();
        parameters.resize(mine.size());
        std::size_t next = 0;  // the base's parameters come in the same order
        for (std::size_t i = 0; i < mine.size(); i++)
            if (mine[i].adapter == none) parameters[i] = base->parameters()[next++];
        bind_adapters(traced.graph, all, parameters);
    }
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::open(Gguf file, const TokenizerPtr& tokenizer) {
    return std::shared_ptr<const Model>(new Model(std::make_unique<Impl>(std::move(file), tokenizer)));
}

std::shared_ptr<const Model> Model::view(const ModelConfig& config, TokenizerPtr tokenizer,
                                         std::vector<Tensor> parameters, std::vector<AdapterShape> adapters) {
    return std::shared_ptr<const Model>(new Model(
        std::make_unique<Impl>(config, std::move(tokenizer), std::move(parameters), std::move(adapters))));
}

std::shared_ptr<const Model> with_adapters(std::shared_ptr<const Model> base,
                                           const std::vector<Adapter>& adapters) {
    return std::shared_ptr<const Model>(new Model(std::make_unique<Model::Impl>(std::move(base), adapters)));
}

const std::string& Model::path() const {
    return impl_->path;
}
const Gguf* Model::file() const {
    return impl_->file ? &*impl_->file : impl_->base ? impl_->base->file() : nullptr;
}
const Architecture& Model::architecture() const {
    return impl_->architecture ? *impl_->architecture : architecture_of(impl_->config);
}
const std::vector<AdapterShape>& Model::adapters() const {
    return impl_->adapters;
}
const std::vector<std::string>& Model::adapter_paths() const {
    return impl_->adapter_paths;
}
std::vector<CarriedTemplate> Model::carried_templates() const {
    if (impl_->file) return {carried_by(*impl_->file)};
    return impl_->templates;
}
const ModelConfig& Model::config() const {
    return impl_->config;
}
const Tokenizer& Model::tokenizer() const {
    return *impl_->tokenizer;
}
TokenizerPtr Model::shared_tokenizer() const {
    return impl_->tokenizer;
}
TokenizerPtr Model::tokenizer_beside() const {
    return impl_->beside;
}
const TracedModel& Model::traced() const {
    return impl_->traced;
}
const std::vector<Tensor>& Model::parameters() const {
    return impl_->parameters;
}
std::int64_t Model::parameter_count() const {
    return impl_->traced.graph.parameter_count();
}

void require_vocabulary(const std::string& path, const ModelConfig& config, const Tokenizer& tokenizer) {
    if (tokenizer.size() != config.vocabulary && !config.reads_patches())
        fail_input(path, "token_embd.weight",
                   std::to_string(tokenizer.size()) + " rows, as many as the vocabulary has tokens",
                   std::to_string(config.vocabulary));
}

void require_ids(const ModelConfig& config, std::span<const TokenId> tokens) {
    for (TokenId id : tokens)
        if (id < 0 || id >= config.vocabulary)
            fail_input("", "token id", "0 to " + std::to_string(config.vocabulary - 1), std::to_string(id));
}

void require_model(const Gguf& file, const TokenizerPtr& tokenizer) {
    const Described described(file, tokenizer);
    find_parameters(described.traced.graph, file, *described.architecture);
}

void fail_not_finite(const Model& model) {
    std::string beside;
    for (const std::string& adapter : model.adapter_paths())
        if (!adapter.empty()) beside += (beside.empty() ? " with " : " and ") + adapter;
    fail_input(
        model.path() + beside, "", "finite predictions", "some that are not",
        beside.empty()
            ? "its weights are damaged; `linnet inspect --check` looks for those that are not finite"
            : "an adapter's scale is too large, or weights are damaged; `linnet inspect --check` looks "
              "for those that are not finite");
}

}  // namespace linnet
