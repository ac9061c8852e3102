// libFuzzer: any bytes as a checkpoint of llm.c are a model, whose every value can be read, or an Error.
#include <string_view>

#include "base/error.h"
#include "folder.h"
#include "model/convert/source.h"
#include "touch.h"

namespace {

/// Five letters, which the seeds' models have as their vocabulary.
constexpr std::string_view tokenizer = R"({"version": "1.0", "added_tokens": [],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}, "merges": []}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    [[maybe_unused]] static const std::string& once = fuzz::folder_with(
        "tokenizer.json", reinterpret_cast<const std::uint8_t*>(tokenizer.data()), tokenizer.size());
    const std::string path = fuzz::folder_with("m.bin", data, size) + "/m.bin";
    try {
        const ModelSource source = open_llmc(path, {});
        const Gguf model = as_gguf(source);
        for (const GgufTensor& t : model.tensors()) fuzz::touch(t.bytes);
    } catch (const Error&) {
    }
    return 0;
}
