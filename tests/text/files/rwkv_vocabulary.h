// A GGUF file of RWKV's kind of vocabulary.
#pragma once
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

namespace linnet::test {

/// Token 0 is the end, 1 to 256 the bytes, but for `missing`, then the words, spelled as Python writes bytes.
inline void write_rwkv_vocabulary(const std::string& path, std::span<const std::string> words,
                                  int missing = -1) {
    std::vector<std::string> tokens{"<s>"};
    std::vector<std::int32_t> types{3};
    char byte[8];
    for (int i = 0; i < 256; i++) {
        std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<unsigned>(i));
        if (i != missing) tokens.emplace_back(byte);
    }
    tokens.insert(tokens.end(), words.begin(), words.end());
    types.resize(tokens.size(), 1);
    GgufWriter out;
    out.add("general.architecture", "rwkv7");
    out.add("tokenizer.ggml.model", "rwkv");
    out.add("tokenizer.ggml.tokens", tokens.size(),
            [&](std::size_t i) { return std::string_view(tokens[i]); });
    out.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    out.add("tokenizer.ggml.bos_token_id", 0U), out.add("tokenizer.ggml.eos_token_id", 0U);
    out.write(path);
}

}  // namespace linnet::test
