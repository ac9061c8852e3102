// libFuzzer: any bytes as an adapter's GGUF file are changes that fit a model, or an Error.
#include "base/error.h"
#include "model/adapter.h"
#include "small_model.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static const auto base = fuzz::small_model();
    try {
        const Gguf file(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"));
        with_adapters(base, {adapter_of_gguf(file, *base, 1)});
    } catch (const Error&) {
    }
    return 0;
}
