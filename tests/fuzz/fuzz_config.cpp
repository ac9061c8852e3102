// libFuzzer: any bytes as a training config are settings that can be printed and read again, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "train/task/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    RunConfig config;
    try {
        config = read_run_config(parse_json(text, "fuzz"), "fuzz", {});
    } catch (const Error&) {
        return 0;
    }
    // What was printed is no longer any text: an Error about it is a fault.
    const nlohmann::ordered_json first = to_json(run_fields(config));
    RunConfig again = read_run_config(parse_json(first.dump(), "printed"), "printed", {});
    if (to_json(run_fields(again)) != first) std::abort();
    return 0;
}
