// libFuzzer: any bytes as a checkpoint of llama2.c are a model, whose every value can be read, or an Error.
#include "base/error.h"
#include "input.h"
#include "model/convert/source.h"
#include "small_model.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    folder.with("tokenizer.bin", fuzz::eight_letters());
    const std::string path = folder.with("m.bin", fuzz::Input(data, size).rest());
    try {
        fuzz::walk(as_gguf(open_llama2c(path, {})));
    } catch (const Error&) {
    }
    return 0;
}
