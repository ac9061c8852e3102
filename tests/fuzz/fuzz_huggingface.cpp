// libFuzzer: any text as a config.json is the config of a family, or is an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/huggingface/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        const HuggingFaceConfig file({reinterpret_cast<const char*>(data), size}, "fuzz");
        file.unknown();
        const ModelConfig config = file.read([](const std::string&) { return true; }, 256);
        file.vectors(config);
        huggingface_config(file.family(), config, {});
    } catch (const Error&) {
    }
    return 0;
}
