// What the tokenizer commands read: texts from files or stdin, vocabularies from files or the built-in model.
#pragma once
#include <string>
#include <string_view>

#include "base/file.h"
#include "text/tokenizer.h"

namespace linnet {

/// A regular file, mapped, or stdin ("-"), read whole. UTF-16 is refused by name (Exit::input). Bytes that
/// are no UTF-8: `invalid` "keep" leaves them, "replace" puts U+FFFD for each, "error" refuses the first.
class TextInput {
  public:
    explicit TextInput(const std::string& path, std::string_view invalid = "keep");
    std::string_view text() const { return text_; }
    const std::string& name() const { return name_; }

  private:
    MappedFile file_;
    std::string buffer_, name_;
    std::string_view text_;
};

/// load_tokenizer, or the built-in model's where `path` is empty. Error for a directory without a
/// tokenizer.json; a Hugging Face directory is its tokenizer.json.
TokenizerPtr open_tokenizer(const std::string& path);

}  // namespace linnet
