// libFuzzer: any bytes as PEFT's adapter_config.json and its safetensors are changes that fit a model, or an
// Error.
#include "base/error.h"
#include "input.h"
#include "model/adapter.h"
#include "model/convert/peft.h"
#include "small_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static const auto base = fuzz::small_model();
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    folder.with("adapter_config.json", input.part());
    folder.with("adapter_model.safetensors", input.part());
    try {
        with_adapters(base, {adapter_of_folder(folder.path(), *base, 1)});
    } catch (const Error&) {
    }
    return 0;
}
