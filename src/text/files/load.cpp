// Any tokenizer file, told by its content, or found by its name.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "text/files/foreign.h"
#include "text/files/tokenizer_json.h"

namespace linnet {

TokenizerPtr load_tokenizer(const std::string& path) {
    MappedFile file(path);
    if (file.text().starts_with("GGUF")) return tokenizer_from_gguf(Gguf(std::move(file)));
    std::string_view text = file.text();
    const std::size_t head = text.find_first_not_of(" \t\r\n");
    if (text.empty()) fail_input(path, "", "a tokenizer", "an empty file");
    if (looks_like_sentencepiece(text)) return tokenizer_from_sentencepiece(text, path);
    if (head != std::string_view::npos && text[head] == '{') return tokenizer_from_json(text, path);
    if (text.starts_with("\xEF\xBB\xBF{"))
        fail_input(path, "byte 0", "JSON", "a byte-order mark before it", "save the file without it");
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        fail_input(path, "byte 0", "a tokenizer in UTF-8", "UTF-16");
    if (looks_like_tiktoken(text)) return tokenizer_from_tiktoken(text, path);
    fail_input(path, "", "a tokenizer (GGUF, tokenizer.json, .tiktoken ranks or SentencePiece model)",
               "another kind of file");
}

std::string tokenizer_in(const std::string& folder) {
    std::error_code ignored;
    for (const char* name : {"tokenizer.gguf", "tokenizer.json", "tokenizer.model"})
        if (std::string path = folder + "/" + name; std::filesystem::is_regular_file(path, ignored))
            return path;
    return {};
}

}  // namespace linnet
