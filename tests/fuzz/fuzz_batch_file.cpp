// libFuzzer: any bytes as a batch file are prompts with their settings, or an Error.
#include "base/error.h"
#include "commands/generate/batch_file.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    const std::string path = folder.with("batch.jsonl", fuzz::Input(data, size).rest());
    try {
        if (read_batch_file(path, {}).empty()) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
