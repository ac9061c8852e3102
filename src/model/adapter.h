// Adapters: changes of low rank to a model's matrices, and the GGUF files that hold them.
//
//   general.type "adapter"   adapter.type "lora"   adapter.lora.alpha   general.architecture
//   tokenizer.chat_template, where conversations were marked by another than the model's own
//   NAME.lora_a [rank, C]    NAME.lora_b [rows, rank]   for a tensor NAME [rows, C] of the model's file
//
// as llama.cpp has them: the change is alpha / rank · B A, and without alpha (0) B A.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "tensor/tensor.h"
#include "text/chat/carried.h"

namespace linnet {

/// An adapter's two matrices for one tensor, f32. Of experts: one after another, as their rows are.
struct AdapterPair {
    Tensor a, b;
};

/// An adapter for a model: what it changes (scales with the user's factor), and its values.
struct Adapter {
    AdapterShape shape;
    std::vector<AdapterPair> pairs;    // of shape.targets
    std::shared_ptr<const void> keep;  // what the values lie in
    double alpha = 0;                  // as its file says; 0: it does not
    CarriedTemplate chat_template{};
    std::string path{};  // what was opened
};

/// A file, or what else names one, and the factor of its change ("FILE" or "FILE=0.5").
struct AdapterChoice {
    std::string path;
    double scale = 1;
};

/// The tensors of a model's file that adapters can change: those of its blocks' linear layers, of rank and
/// scale 0 yet.
std::vector<AdapterTarget> adaptable_tensors(const Model& model);

/// Those of them that `patterns` name, separated by commas: a tensor's name or its middle ("attn_q"), with *
/// for any text; empty: all but routers. Of blocks, the `deepest` last (depth_of). Error(Exit::input) naming
/// `where` for a pattern that fits none.
std::vector<AdapterTarget> choose_targets(const Model& model, const std::string& patterns,
                                          std::int64_t deepest, const std::string& where);

/// Whether this GGUF file holds an adapter.
bool is_adapter(const Gguf& file);

/// Whether an adapter's file can say this alpha, which stands there as f32: neither infinite nor, where it is
/// not 0, rounded to that.
bool is_alpha(double alpha);
constexpr const char* expected_alpha = "a finite number of 32 bits";  // for the refusal of another

/// A GGUF adapter, held against the model: its architecture, its tensors' names and shapes.
/// Error(Exit::input).
Adapter adapter_of_gguf(const Gguf& file, const Model& base, double scale);
/// A GGUF adapter, or a PEFT folder (convert/peft.h).
Adapter open_adapter(const AdapterChoice& choice, const Model& base);

/// The chat templates of a model with adapters, by rank (choose_template): the last adapter's first.
std::vector<CarriedTemplate> carried_templates(const Model& base, const std::vector<Adapter>& adapters);

/// The parameters of adapters in a graph that was traced with their shapes: values in `parameters` where
/// Parameter::adapter is not `none`.
void bind_adapters(const Graph& graph, const std::vector<Adapter>& adapters, std::vector<Tensor>& parameters);

/// The model `base` with adapters beside its weights.
std::shared_ptr<const Model> with_adapters(std::shared_ptr<const Model> base,
                                           const std::vector<Adapter>& adapters);
/// Model::open, and with_adapters where there are some.
std::shared_ptr<const Model> open_with_adapters(const std::string& path,
                                                const std::vector<AdapterChoice>& adapters);

/// Pairs as they stand in a graph's parameters (all f32), of the adapter with this number.
std::vector<AdapterPair> pairs_of(const Graph& graph, const AdapterShape& shape, std::int32_t number,
                                  const std::vector<Tensor>& parameters,
                                  std::vector<std::vector<float>>& joined);

/// Writes an adapter: B times so much that alpha / rank gives its targets' scales (alpha 0: that 1 does).
/// Returns the file's sha256.
std::string save_adapter(const std::string& path, const std::string& architecture,
                         const std::vector<AdapterTarget>& targets, const std::vector<AdapterPair>& pairs,
                         double alpha, const std::string& name, const Provenance& provenance,
                         Existing existing = Existing::replace, std::string_view chat_template = {});

/// Writes the model with the adapters' changes added to its weights, and the chat template that counts
/// (carried_templates). Tensors with a change are written in `type`, or in their own where it is none
/// (Error(Exit::input) where that is quantized); vectors and tensors without a change as they are.
/// Error(Exit::input) for a sum that is not finite, or too large for the type. `threads` 0: physical cores.
void merge_adapters(const Model& base, const std::vector<Adapter>& adapters, std::optional<DType> type,
                    const std::string& path, Existing existing = Existing::replace, int threads = 0);

}  // namespace linnet
