// libFuzzer: any bytes as a checkpoint's manifest are a checkpoint or an Error.
#include "base/error.h"
#include "folder.h"
#include "train/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        read_checkpoint(fuzz::folder_with("manifest.json", data, size));
    } catch (const Error&) {
    }
    return 0;
}
