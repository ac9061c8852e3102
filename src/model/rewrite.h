// A model's file written again with some of its tensors new: all else as it was, metadata too.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "formats/gguf.h"
#include "model/weights.h"

namespace linnet {

/// What stands in the place of a tensor.
struct NewTensor {
    DType type;
    std::function<void(const GgufWriter::Sink&)> emit;
};

/// Hands over a file's metadata but what the writer tells by itself (its alignment, the type of its tensors,
/// parts), and what `drop` says.
void copy_metadata(const Gguf& file, GgufWriter& out, const std::function<bool(std::string_view key)>& drop);

/// Writes `file` to `path`, asking `replace` of every tensor; nothing: it stays. What the file said of its
/// own training ("linnet.train.") is left out; `provenance` is added, and `chat_template`, where it is not
/// empty, stands in the place of the file's own. Returns the sha256 of what was written (empty where not
/// `hashed`).
std::string rewrite_model(const Gguf& file, const std::string& path, const Provenance& provenance,
                          const std::function<std::optional<NewTensor>(const GgufTensor&)>& replace,
                          bool hashed = true, Existing existing = Existing::replace,
                          std::string_view chat_template = {});

}  // namespace linnet
