// libFuzzer: any bytes encode with a byte-level vocabulary and decode to themselves.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/train/make.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static const TokenizerPtr tokenizer =
        made_tokenizer("bpe", "the cat sat on the mat, don't you see? 12345 the hat was on the cat again",
                       400, false, {}, 1);
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (tokenizer->decode(tokenizer->encode(text)) != text) std::abort();
    EncodeOptions special;
    special.parse_special = true;
    tokenizer->encode(text, special);
    return 0;
}
