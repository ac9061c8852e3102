// libFuzzer: any bytes as SentencePiece's character map rewrite a text, or are an Error.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/unicode/charsmap.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view blob(reinterpret_cast<const char*>(data), size);
    try {
        const CharsMap map(blob, "fuzz", "precompiled_charsmap");
        std::string text = "The ﬁrst ½ of Ａ text\xFF e\xCC\x81";
        text += blob.substr(0, 1024);
        map.apply(text);
    } catch (const Error&) {
    }
    return 0;
}
