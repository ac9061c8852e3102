// libFuzzer: any bytes as a checkpoint's manifest are a checkpoint or an Error.
#include "base/error.h"
#include "folder.h"
#include "input.h"
#include "train/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    folder.with("manifest.json", fuzz::Input(data, size).rest());
    try {
        read_checkpoint(folder.path());
    } catch (const Error&) {
    }
    return 0;
}
