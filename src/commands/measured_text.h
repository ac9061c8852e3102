// A text that a model is measured on: a file or stdin, read as `train --data` reads it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/documents.h"
#include "text/tokenizer.h"

namespace linnet {

/// A file or stdin ("-") as documents. A plain text is one and stays mapped; gzip, Zstandard, JSON Lines and
/// what `read` divides are read as training reads them. Bytes of a plain text that are no UTF-8 are kept.
/// Error(Exit::input) for what is no text, and for JSON Lines of conversations or of prompts with answers,
/// of which training learns the answers alone.
class MeasuredText {
  public:
    MeasuredText(const std::string& path, ReadOptions read);
    MeasuredText(const MeasuredText&) = delete;  // the documents may lie inside
    const std::vector<std::string_view>& documents() const { return documents_; }
    const std::string& name() const { return name_; }

  private:
    bool take_plain(const std::string& path, const ReadOptions& read);
    MappedFile file_;
    std::string name_, piped_;
    Documents read_;
    std::vector<std::string_view> documents_;
};

/// The text as a model reads it in windows: a single document without a begin token, as windows start
/// anywhere, and peers measure it so; several with the marks that training puts around each.
std::vector<TokenId> encode_for_windows(const Tokenizer& tokenizer, const MeasuredText& text, int threads);

/// Tokens of a window: those asked for, else the context, or all of a text that is shorter.
std::int64_t window_size(std::int64_t asked, std::int64_t context, std::size_t tokens);

/// Error(Exit::input) where the text has not one window of `size` tokens.
void require_window(const MeasuredText& text, std::size_t tokens, std::int64_t size);

}  // namespace linnet
