// libFuzzer: any bytes as model.safetensors.index.json and two parts: the tensors lie where the index says,
// in its folder, or it is an Error.
#include "base/error.h"
#include "folder.h"
#include "formats/safetensors.h"
#include "input.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const std::string index = folder.with("model.safetensors.index.json", input.part());
    folder.with("a.safetensors", input.part());
    folder.with("b.safetensors", input.part());
    try {
        const Safetensors file = Safetensors::open(index);
        std::uint64_t bytes = 0;
        for (const SafetensorsTensor& tensor : file.tensors()) {
            if (file.tensor(tensor.name) != &tensor) std::abort();
            if (std::filesystem::path(file.path_of(tensor)).parent_path() != folder.path()) std::abort();
            bytes += tensor.bytes.size();
            fuzz::touch(tensor.bytes);
        }
        if (bytes > size) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
