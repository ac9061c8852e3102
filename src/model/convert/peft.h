// Adapters as Hugging Face's PEFT writes them: a folder with adapter_config.json and
// adapter_model.safetensors, "base_model.model.MODULE.lora_A.weight" [rank, C] and "….lora_B.weight"
// [rows, rank]; a chat template of its own is chat_template.jinja. The base's family says which rows of which
// tensor a module's are, and in which order.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "model/adapter.h"

namespace linnet {

/// Whether a path is such a folder.
bool is_peft_folder(const std::string& path);

/// The folder's adapter for this model. Error(Exit::input) for what is no plain LoRA (DoRA, trained biases,
/// modules saved whole, patterns of alpha), and for tensors that the model does not have or that have other
/// shapes.
Adapter adapter_of_folder(const std::string& path, const Model& base, double scale);

/// Writes an adapter as such a folder, and returns the bytes written. Error(Exit::input) where no family has
/// the model, or the adapter changes experts.
std::uint64_t write_peft_folder(const Adapter& adapter, const Model& base, const std::string& path,
                                Existing existing);

/// The tensors that an adapter changes, and the modules of such a folder that they are of.
std::vector<std::pair<std::string, std::string>> peft_modules(const Adapter& adapter, const Model& base);

}  // namespace linnet
