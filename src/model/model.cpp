// Model: a file, its config, its vocabulary and its parameters, brought together.
#include <optional>
#include <vector>

#include "base/error.h"
#include "model/architectures.h"
#include "model/model.h"
#include "model/trace.h"
#include "model/weights.h"

namespace linnet {

struct Model::Impl {
    std::optional<Gguf> file;
    std::string path;
    const Architecture* architecture = nullptr;
    ModelConfig config;
    TokenizerPtr tokenizer;
    TracedModel traced;
    std::vector<std::vector<float>> converted;
    std::vector<Tensor> parameters;

    Impl(Gguf gguf, TokenizerPtr t) : file(std::move(gguf)), path(file->path()), tokenizer(std::move(t)) {
        config = read_config(*file, architecture);
        if (!tokenizer) tokenizer = tokenizer_from_gguf(*file);
        if (tokenizer->size() != config.vocabulary && !config.reads_patches())
            fail_input(path, "token_embd.weight",
                       std::to_string(tokenizer->size()) + " rows, as many as the vocabulary has tokens",
                       std::to_string(config.vocabulary));
        traced = trace(config, false);
        parameters = bind_parameters(traced.graph, *file, *architecture, converted);
    }

    Impl(const ModelConfig& c, TokenizerPtr t, std::vector<Tensor> p)
        : path("model in memory"),
          config(c),
          tokenizer(std::move(t)),
          traced(trace(config, false)),
          parameters(std::move(p)) {}
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::open(Gguf file, TokenizerPtr tokenizer) {
    return std::shared_ptr<const Model>(
        new Model(std::make_unique<Impl>(std::move(file), std::move(tokenizer))));
}

std::shared_ptr<const Model> Model::view(const ModelConfig& config, TokenizerPtr tokenizer,
                                         std::vector<Tensor> parameters) {
    return std::shared_ptr<const Model>(
        new Model(std::make_unique<Impl>(config, std::move(tokenizer), std::move(parameters))));
}

const std::string& Model::path() const {
    return impl_->path;
}
const Gguf* Model::file() const {
    return impl_->file ? &*impl_->file : nullptr;
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
const TracedModel& Model::traced() const {
    return impl_->traced;
}
const std::vector<Tensor>& Model::parameters() const {
    return impl_->parameters;
}
std::int64_t Model::parameter_count() const {
    return impl_->traced.graph.parameter_count();
}

}  // namespace linnet
