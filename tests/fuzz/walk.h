// What parsers return, walked whole, so that what points beyond its file is a fault of memory.
#pragma once
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/gguf.h"
#include "text/tokenizer.h"

namespace linnet::fuzz {

inline void touch(std::span<const std::byte> bytes) {
    std::uint64_t sum = 0;
    for (std::byte byte : bytes) sum += static_cast<std::uint64_t>(byte);
    volatile std::uint64_t seen = sum;
    (void)seen;
}

inline void walk(const Gguf& file) {
    for (const GgufTensor& tensor : file.tensors()) {
        if (file.tensor(tensor.name) != &tensor) std::abort();
        touch(tensor.bytes);
    }
    for (const auto& [key, value] : file.values()) {
        if (file.find(key) != &value) std::abort();
        const auto* array = std::get_if<GgufArray>(&value);
        if (!array) continue;
        for (std::string_view text : array->strings) touch(std::as_bytes(std::span(text)));
        if (array->kind != GgufKind::string && array->kind != GgufKind::boolean) file.numbers(key);
    }
}

/// Encodes and decodes, and spells every token.
inline void walk(const Tokenizer& tokenizer, std::string_view text) {
    for (const std::string_view one : {text.substr(0, 4096), std::string_view("The 12 cats' hats, déjà vu.")})
        try {
            tokenizer.decode(tokenizer.encode(one));
        } catch (const Error&) {  // the vocabulary cannot spell it
        }
    std::string bytes;
    for (TokenId id = 0; id < tokenizer.size(); id++) {
        bytes.clear();
        tokenizer.decode(id, id % 2 == 0, bytes);
        touch(std::as_bytes(std::span(tokenizer.piece(id))));
    }
}

}  // namespace linnet::fuzz
