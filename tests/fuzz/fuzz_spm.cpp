// libFuzzer: a file of any bytes is a tokenizer or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/files/foreign.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        tokenizer_from_sentencepiece(text, "fuzz")->encode(text.substr(0, 4096));
    } catch (const Error&) {
    }
    return 0;
}
