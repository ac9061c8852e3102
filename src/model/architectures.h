// How the standard GGUF architectures spell what a config says: metadata keys, tensor names. All of it is
// data.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "model/config.h"

namespace linnet {

/// A metadata key "<architecture>.<suffix>" and the config key it holds.
struct ArchitectureKey {
    std::string_view suffix, field;
    bool required = false;
};

/// Several parameters stored as one tensor, their rows one after another ("attn_qkv" of GPT-2).
struct FusedTensor {
    std::string_view name;
    std::vector<std::string_view> parts;
};

struct Architecture {
    std::string_view name;
    std::string_view fixed;  // JSON: what the architecture means without saying
    std::vector<ArchitectureKey> keys;
    std::vector<FusedTensor> fused;
};

/// Every architecture that other runtimes know by a name, then our own ("linnet": the config itself as JSON).
const std::vector<Architecture>& architectures();

/// The row whose meaning is exactly `config` (ours where no other is).
const Architecture& architecture_of(const ModelConfig& config);

/// GGUF has a name for `config`, so that other runtimes can load it.
bool has_standard_architecture(const ModelConfig& config);

/// The config of a GGUF file, resolved; sets `architecture` to its row. Metadata of the architecture that is
/// not understood is an error.
ModelConfig read_config(const Gguf& file, const Architecture*& architecture);

/// Writes general.architecture and the architecture's keys.
void write_config(GgufWriter& out, const Architecture& architecture, ModelConfig config);

/// Where a parameter's rows stand: the tensor's name and, for a fused one, which part (-1: the tensor is not
/// fused).
struct TensorPlace {
    std::string tensor;
    int part = -1;
    const FusedTensor* fused = nullptr;
};
TensorPlace place_of(const Architecture& architecture, const std::string& parameter);

}  // namespace linnet
