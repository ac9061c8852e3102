// A model of another format on its way to GGUF: what its header will say, and its tensors one by one.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "graph/graph.h"
#include "model/config/config.h"
#include "text/chat/carried.h"
#include "text/tokenizer.h"

namespace linnet {

/// Rows [begin, end) of a matrix, and of each so many elements from `column` on.
struct Window {
    std::int64_t begin, end, column, columns;
};

/// The rows of one parameter that lie nowhere as GGUF has them: made from the other format when they are
/// read.
struct MadeRows {
    std::int64_t rows = 0, columns = 1;
    /// Elements of the tensor's type, row after row.
    std::function<void(const Window& window, std::byte* out)> read;
};

/// A tensor as GGUF will have it.
struct SourceTensor {
    std::string name;
    DType type;
    Shape shape;
    /// Its bytes where they lie; empty where they have to be made.
    std::span<const std::byte> in_place;
    std::vector<MadeRows> made;  // then: its parameters, in order
    std::string from;            // "q_proj, k_proj, v_proj: transposed", for people
    /// Where several parameters make the tensor and each lies somewhere by itself: those.
    std::vector<SourceTensor> apart;
};

struct ModelSource {
    std::string path;
    GgufWriter metadata;
    std::vector<SourceTensor> tensors;
    std::shared_ptr<const void> keep;  // what the tensors lie in
    TokenizerPtr tokenizer;            // where GGUF has no name for it; else null
    std::vector<std::string> notes;    // for stderr
};

struct OpenOptions {
    std::optional<DType> type;  // of matrices: f32, f16 or bf16; else as stored
    std::string tokenizer;      // a file, where the model has none
};

/// The model of a folder with config.json and safetensors. Error(Exit::input).
ModelSource open_folder(const std::string& path, const OpenOptions& options);
/// The tokenizer of a file of any kind, or of such a folder: tokenizer.json or tokenizer.model, with what the
/// files beside it say. Error(Exit::input).
TokenizerPtr tokenizer_at(const std::string& path);
/// Files of such a folder: its chat template, and settings of its tokenizer, in which a template may stand
/// too.
inline constexpr const char *folder_template_name = "chat_template.jinja",
                            *folder_settings_name = "tokenizer_config.json";
/// The chat template of a folder: the file of its own, else that of the settings.
ChosenTemplate folder_chat_template(const std::string& path);
/// llama2.c's checkpoint, version 0 to 2; the tokenizer is tokenizer.bin beside it. Error(Exit::input).
ModelSource open_llama2c(const std::string& path, const OpenOptions& options);
/// llm.c's checkpoint of a GPT-2, versions 3 and 5; the tokenizer is tokenizer_in() its folder.
/// Error(Exit::input).
ModelSource open_llmc(const std::string& path, const OpenOptions& options);

/// The rows of a window of whole rows that fits the memory of a few MiB, at least one.
std::int64_t rows_at_a_time(std::int64_t columns);

/// Error(Exit::input): PyTorch's weights at `path`, in the place of what was expected.
[[noreturn]] void refuse_pickle(const std::string& path, std::string_view expected);

/// Hands on a tensor's bytes, a few MiB at a time. Asks for stop signals (Stopped).
void emit_tensor(const SourceTensor& tensor, const GgufWriter::Sink& sink);

/// Seen as GGUF: tensors where they lie, those that have to be made in memory.
Gguf as_gguf(const ModelSource& source);
/// The same with nothing made: tensors that lie nowhere have no bytes.
Gguf outline(const ModelSource& source);
/// Its tensors as those two have them: where parameters lie apart, each by itself.
std::vector<const SourceTensor*> bound_tensors(const ModelSource& source);

/// Written as GGUF, a few MiB in memory at a time; `progress` is told of the bytes done and of all.
void write_gguf(const ModelSource& source, const std::string& path, Existing existing,
                const std::function<void(double done, double all)>& progress);

/// The type that a parameter has in GGUF: vectors and position tables f32 (as runtimes want them), matrices
/// as stored or asked for.
DType gguf_type(const Parameter& parameter, DType stored, const OpenOptions& options);

}  // namespace linnet
