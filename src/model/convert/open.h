// Model files of every format, told by what they hold.
#pragma once
#include <string>

#include "model/convert/source.h"

namespace linnet {

enum class ModelFormat { gguf, folder, llama2c, llmc };

/// What a path holds. Error(Exit::input) where it is no model: a PyTorch file, whose pickle would execute
/// code, is named.
ModelFormat model_format(const std::string& path);
/// "GGUF", "Hugging Face folder" …
std::string_view format_name(ModelFormat format);

/// A model of another format than GGUF.
ModelSource open_source(const std::string& path, ModelFormat format, const OpenOptions& options = {});

/// A model of any format as GGUF; an empty path is the model built into the program. `tokenizer` (where not
/// null) becomes the one that the file itself cannot hold.
Gguf open_model_file(const std::string& path, TokenizerPtr* tokenizer = nullptr,
                     UnknownTypes unknown = UnknownTypes::refused);

/// Before the model of `path` is written as GGUF. `beside`: its tokenizer where open_model_file gave one, or
/// Model::tokenizer_beside(). Error(Exit::input) where there is one: in GGUF without its name, other programs
/// would take the text for other tokens.
void require_gguf_tokenizer(const std::string& path, const TokenizerPtr& beside);

}  // namespace linnet
