// libFuzzer: any bytes as a model file have a config and a vocabulary, or are an Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "formats/gguf.h"
#include "model/architectures.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        const Gguf file(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"));
        try {
            const Architecture* architecture = nullptr;
            read_config(file, architecture);
        } catch (const Error&) {
        }
        tokenizer_from_gguf(file)->encode("The 12 cats' hats, déjà vu.");
    } catch (const Error&) {
    }
    return 0;
}
