// The two vocabulary formats that are only read: .tiktoken ranks and SentencePiece's .model.
#pragma once
#include <string>
#include <string_view>

#include "text/files/hints.h"
#include "text/tokenizer.h"

namespace linnet {

/// Lines "base64-of-bytes rank". The format names neither pattern nor special tokens; both follow from the
/// number of ranks where it is a published vocabulary's, else a note is printed, and cl100k's pattern is
/// taken without special tokens.
TokenizerPtr tokenizer_from_tiktoken(std::string_view text, const std::string& file);

/// A ModelProto (google/sentencepiece, src/sentencepiece_model.proto), kinds unigram, bpe and char.
TokenizerPtr tokenizer_from_sentencepiece(std::string_view bytes, const std::string& file,
                                          const TokenizerHints& hints = {});

/// How such files begin.
bool looks_like_tiktoken(std::string_view text);
bool looks_like_sentencepiece(std::string_view bytes);

}  // namespace linnet
