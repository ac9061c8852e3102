// libFuzzer: any text as the KEY=VALUE of --set changes one setting or is an Error.
#include <string>

#include "base/error.h"
#include "input.h"
#include "train/task/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static RunConfig config;
    static std::vector<Field> fields = run_fields(config);
    config = RunConfig();
    try {
        apply_setting(fields, std::string(fuzz::Input(data, size).rest()));
    } catch (const Error&) {
    }
    return 0;
}
