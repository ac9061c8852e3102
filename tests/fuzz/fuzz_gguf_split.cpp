// libFuzzer: any bytes as two parts of a GGUF file are one model's, or an Error.
#include "base/error.h"
#include "folder.h"
#include "input.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const std::string first = folder.with("m-00001-of-00002.gguf", input.part()),
                      second = folder.with("m-00002-of-00002.gguf", input.part());
    try {
        const Gguf file(first);
        fuzz::walk(file);
        for (const GgufTensor& tensor : file.tensors())
            if (file.path_of(tensor) != first && file.path_of(tensor) != second) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
