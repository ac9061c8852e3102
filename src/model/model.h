// A model file opened for use: mapped weights, config, vocabulary, graph.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "model/config/config.h"
#include "model/trace/trace.h"
#include "text/tokenizer.h"

namespace linnet {

struct Adapter;
struct Architecture;
struct CarriedTemplate;
struct Tensor;

/// Immutable; may serve many engines.
class Model {
  public:
    /// Opens a GGUF file or a model of another format (convert/open.h); an empty path is the model built into
    /// the program. Errors: Error(Exit::input / Exit::io) naming file, place, expected, found.
    static std::shared_ptr<const Model> open(const std::string& path);
    /// `tokenizer`: one that the file does not hold; null for that of the file.
    static std::shared_ptr<const Model> open(Gguf file, const TokenizerPtr& tokenizer = nullptr);
    /// A model whose parameters stand in memory and outlive it (one in training), with those of adapters as
    /// trace() has them.
    static std::shared_ptr<const Model> view(const ModelConfig& config, TokenizerPtr tokenizer,
                                             std::vector<Tensor> parameters,
                                             std::vector<AdapterShape> adapters = {});
    ~Model();

    /// "built-in model" for the one in the executable, "model in memory" for a view.
    const std::string& path() const;
    const Gguf* file() const;  // null for a view
    const ModelConfig& config() const;
    const Architecture& architecture() const;           // of the file; of a view: that it would be written as
    const std::vector<AdapterShape>& adapters() const;  // beside the weights (adapter.h)
    const std::vector<std::string>& adapter_paths() const;  // … and what they were opened from
    /// Chat templates that its adapters and its file may carry, for choose_template; of a view none.
    std::vector<CarriedTemplate> carried_templates() const;
    const Tokenizer& tokenizer() const;
    TokenizerPtr shared_tokenizer() const;
    /// The tokenizer where the file does not hold it, as GGUF has no name for it; else null.
    TokenizerPtr tokenizer_beside() const;
    const TracedModel& traced() const;
    const std::vector<Tensor>& parameters() const;  // in the order of traced().graph.parameters()
    std::int64_t parameter_count() const;

  private:
    friend std::shared_ptr<const Model> with_adapters(std::shared_ptr<const Model> base,
                                                      const std::vector<Adapter>& adapters);
    struct Impl;
    explicit Model(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Error(Exit::input) naming `path` where the vocabulary has other tokens than the embedding has rows.
void require_vocabulary(const std::string& path, const ModelConfig& config, const Tokenizer& tokenizer);

/// Error(Exit::input) for an id outside [0, V).
void require_ids(const ModelConfig& config, std::span<const TokenId> tokens);

/// All that Model::open would say against a file that is open already. Errors as its own.
void require_model(const Gguf& file, const TokenizerPtr& tokenizer);

/// Error(Exit::input): what the model predicts is no number.
[[noreturn]] void fail_not_finite(const Model& model);

}  // namespace linnet
