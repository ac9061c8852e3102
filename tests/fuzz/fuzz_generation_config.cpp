// libFuzzer: any text as a generation_config.json comes back from GGUF as it was, or is an Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/huggingface/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    GgufWriter metadata;
    try {
        add_generation_config(metadata, text, "fuzz");
    } catch (const Error&) {
        return 0;
    }
    const nlohmann::ordered_json back =
        generation_config(Gguf("fuzz", metadata.header(), {}, nullptr), SpecialIds());
    if (back != nlohmann::ordered_json::parse(text)) std::abort();
    return 0;
}
