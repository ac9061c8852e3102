// Any bytes as a GGUF file: read and touched whole, or refused with an Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "formats/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        Gguf file(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"));
        std::uint64_t sum = 0;
        for (const GgufTensor& tensor : file.tensors())
            for (std::byte byte : tensor.bytes) sum += static_cast<std::uint64_t>(byte);
        for (const auto& [key, value] : file.values()) {
            if (file.find(key) != &value) __builtin_trap();
            const auto* array = std::get_if<GgufArray>(&value);
            if (!array) continue;
            for (std::string_view text : array->strings)
                for (char c : text) sum += static_cast<unsigned char>(c);
            if (array->kind != GgufKind::string && array->kind != GgufKind::boolean)
                sum += file.numbers(key)->size();
        }
        volatile std::uint64_t seen = sum;
        (void)seen;
    } catch (const Error&) {
    }
    return 0;
}
