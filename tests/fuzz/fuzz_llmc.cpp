// libFuzzer: any bytes as a checkpoint of llm.c are a model, whose every value can be read, or an Error.
#include "base/error.h"
#include "folder.h"
#include "input.h"
#include "model/convert/source.h"
#include "walk.h"

namespace {

/// Five letters, which the seeds' models have as their vocabulary.
constexpr std::string_view tokenizer = R"({"version": "1.0", "added_tokens": [],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}, "merges": []}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    folder.with("tokenizer.json", tokenizer);
    const std::string path = folder.with("m.bin", fuzz::Input(data, size).rest());
    try {
        fuzz::walk(as_gguf(open_llmc(path, {})));
    } catch (const Error&) {
    }
    return 0;
}
