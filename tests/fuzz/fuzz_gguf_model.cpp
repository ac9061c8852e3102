// libFuzzer: any bytes as a model file have a config, a vocabulary and parameters, or are an Error.
#include "base/error.h"
#include "model/architectures.h"
#include "model/encode/encoder_text.h"
#include "model/model.h"
#include "tensor/tensor.h"
#include "walk.h"

namespace {

using namespace linnet;

Gguf file_of(const std::uint8_t* data, std::size_t size) {
    return Gguf(MappedFile::view({reinterpret_cast<const std::byte*>(data), size}, "fuzz"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Gguf file = file_of(data, size);
        try {
            const Architecture* architecture = nullptr;
            read_config(file, architecture);
        } catch (const Error&) {
        }
        fuzz::walk(*tokenizer_from_gguf(file), "mats");
        const auto model = Model::open(file_of(data, size));
        labels_of(*model);
        if (model->parameters().size() != model->traced().graph.parameters().size()) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
