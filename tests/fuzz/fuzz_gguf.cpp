// libFuzzer: any bytes as a GGUF file are read whole, with types that are not known or without, or are an
// Error.
#include "base/error.h"
#include "input.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    for (const UnknownTypes unknown : {UnknownTypes::refused, UnknownTypes::kept}) try {
            fuzz::walk(
                Gguf(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"), unknown));
        } catch (const Error&) {
        }
    return 0;
}
