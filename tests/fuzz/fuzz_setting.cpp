// libFuzzer: any text as the KEY=VALUE of --set changes one setting or is an Error.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "train/task/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    RunConfig config;
    auto fields = run_fields(config);
    try {
        apply_setting(fields, std::string(reinterpret_cast<const char*>(data), size));
    } catch (const Error&) {
    }
    return 0;
}
