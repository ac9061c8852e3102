// Any bytes as a safetensors file: read and touched whole, or refused with an Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "formats/safetensors.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        const Safetensors file(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"));
        std::uint64_t bytes = 0;
        for (const SafetensorsTensor& tensor : file.tensors()) {
            if (file.tensor(tensor.name) != &tensor) __builtin_trap();
            if (static_cast<std::uint64_t>(tensor.shape.count()) *
                    static_cast<std::uint64_t>(tensor.type->bits) !=
                8 * tensor.bytes.size())
                __builtin_trap();
            bytes += tensor.bytes.size();
            fuzz::touch(tensor.bytes);
        }
        if (bytes > size) __builtin_trap();
    } catch (const Error&) {
    }
    return 0;
}
