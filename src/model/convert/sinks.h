// A model on its way out of GGUF, into another format.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf.h"
#include "model/convert/outgoing.h"
#include "text/tokenizer.h"

namespace linnet {

struct SinkOptions {
    std::optional<DType> type;   // of the tensors: f32, f16 or bf16; else matrices as stored
    std::uint64_t max_part = 0;  // bytes of one safetensors file; 0: all in one
    int version = 0;             // of llama2.c's checkpoint: 0, 1 or 2
    Existing existing = Existing::keep;
    std::function<void(double done, double all)> progress = [](double, double) {};    // bytes
    std::function<void(const std::string& line)> mapped = [](const std::string&) {};  // "FROM -> TO"
};

/// A Hugging Face folder: config.json, safetensors, tokenizer.json, tokenizer_config.json,
/// generation_config.json; of an encoder also 1_Pooling/config.json and modules.json. Nothing has its name
/// before all is written; the folder is locked. `tokenizer`: null for the file's. Returns the bytes written.
/// Error(Exit::input) where no family can say the model, or weights are quantized and no type is given.
std::uint64_t write_folder(const OutgoingModel& model, const TokenizerPtr& tokenizer, const std::string& path,
                           const SinkOptions& options);

/// llama2.c's checkpoint (version 0, which its run.c reads, 1, or 2, whose 8-bit matrices runq.c reads) and
/// tokenizer.bin beside it. Error(Exit::input) for a model that llama2.c cannot run.
void write_llama2c(const OutgoingModel& model, const TokenizerPtr& tokenizer, const std::string& path,
                   const SinkOptions& options);

/// llm.c's checkpoint of a GPT-2: version 3, or 5 of bf16. Error(Exit::input) for another model.
void write_llmc(const OutgoingModel& model, const std::string& path, const SinkOptions& options);

struct HuggingFaceFamily;
/// The family of transformers that a model could be written for; null where there is none.
const HuggingFaceFamily* folder_family(const Gguf& file);
/// The transformers class; nothing where no family fits.
std::optional<std::string> folder_class(const Gguf& file);

}  // namespace linnet
