// libFuzzer: two lengths of two bytes, a model.safetensors.index.json, and two parts of any bytes: the
// tensors lie where the index says, in its folder, or it is an Error.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "folder.h"
#include "formats/safetensors.h"
#include "touch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    std::uint16_t lengths[2];
    if (size < sizeof lengths) return 0;
    std::memcpy(lengths, data, sizeof lengths);
    std::size_t at = sizeof lengths;
    auto next = [&](const char* name, std::size_t length) -> const std::string& {
        const std::size_t begin = at;
        at += std::min(length, size - at);
        return fuzz::folder_with(name, data + begin, at - begin);
    };
    next("model.safetensors.index.json", lengths[0]);
    next("a.safetensors", lengths[1]);
    const std::string& folder = next("b.safetensors", size);
    try {
        const Safetensors file = Safetensors::open(folder + "/model.safetensors.index.json");
        std::uint64_t bytes = 0;
        for (const SafetensorsTensor& tensor : file.tensors()) {
            if (file.tensor(tensor.name) != &tensor) std::abort();
            if (std::filesystem::path(file.path_of(tensor)).parent_path() != folder) std::abort();
            bytes += tensor.bytes.size();
            fuzz::touch(tensor.bytes);
        }
        if (bytes > size) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
