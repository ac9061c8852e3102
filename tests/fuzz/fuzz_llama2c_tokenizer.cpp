// libFuzzer: two bytes of a vocabulary's size, then a tokenizer.bin of llama2.c of any bytes: a tokenizer
// that is written as it is read, or an Error.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "text/files/llama2c.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    std::uint16_t tokens;
    if (size < sizeof tokens) return 0;
    std::memcpy(&tokens, data, sizeof tokens);
    const std::string_view file(reinterpret_cast<const char*>(data) + sizeof tokens, size - sizeof tokens);
    TokenizerPtr read;
    try {
        read = tokenizer_from_llama2c(file, "fuzz", tokens);
    } catch (const Error&) {
        return 0;
    }
    fuzz::walk(*read, file);
    // The largest length, which stands first, is not read; spaces and their marks are one.
    const std::string written = tokenizer_to_llama2c(*read);
    if (tokenizer_to_llama2c(*tokenizer_from_llama2c(written, "again", tokens)) != written) std::abort();
    return 0;
}
