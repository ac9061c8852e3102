// The models in a run's folder.
#pragma once
#include <string>

namespace linnet {

inline constexpr const char* best_model = "model.gguf";      // by validation
inline constexpr const char* best_adapter = "adapter.gguf";  // in its place, where an adapter is trained
inline constexpr const char* last_model = "last.gguf";

/// A path that names a model: a run's folder stands for its best model, or where it has none yet for that of
/// its newest checkpoint, or of the run that it is to replace; Error(Exit::input) where it has none either.
/// Any other path is itself.
std::string model_of_run(const std::string& path);
/// The same of a path that names a tokenizer; a Hugging Face folder is itself (tokenizer_at).
std::string tokenizer_of_run(const std::string& path);
/// The same of a path that names an adapter.
std::string adapter_of_run(const std::string& path);

}  // namespace linnet
