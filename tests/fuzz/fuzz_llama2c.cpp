// libFuzzer: any bytes as a checkpoint of llama2.c are a model, whose every value can be read, or an Error.
#include <cstring>

#include "base/error.h"
#include "folder.h"
#include "model/convert/source.h"
#include "touch.h"

namespace {

/// Eight letters, which the seeds' models have as their vocabulary.
const std::string& tokenizer() {
    static const std::string bytes = [] {
        std::string words(4, '\1');
        for (char token = 0; token < 8; token++) {
            const float score = 0;
            const std::int32_t length = 1;
            words.append(reinterpret_cast<const char*>(&score), sizeof score);
            words.append(reinterpret_cast<const char*>(&length), sizeof length);
            words += static_cast<char>('a' + token);
        }
        return words;
    }();
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    [[maybe_unused]] static const std::string& once = fuzz::folder_with(
        "tokenizer.bin", reinterpret_cast<const std::uint8_t*>(tokenizer().data()), tokenizer().size());
    const std::string path = fuzz::folder_with("m.bin", data, size) + "/m.bin";
    try {
        const ModelSource source = open_llama2c(path, {});
        const Gguf model = as_gguf(source);
        for (const GgufTensor& t : model.tensors()) fuzz::touch(t.bytes);
    } catch (const Error&) {
    }
    return 0;
}
