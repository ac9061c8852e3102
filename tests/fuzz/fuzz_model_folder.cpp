// libFuzzer: the files of a Hugging Face folder, of any bytes: a model whose every value can be read, or an
// Error.
#include "base/error.h"
#include "folder.h"
#include "input.h"
#include "model/convert/source.h"
#include "model/model.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    for (const char* name :
         {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
          "generation_config.json", "modules.json", "chat_template.jinja", "1_Pooling/config.json"})
        folder.with_any(name, input.part());
    try {
        const ModelSource source = open_folder(folder.path(), {});
        Gguf file = as_gguf(source);
        fuzz::walk(file);
        Model::open(std::move(file), source.tokenizer);
    } catch (const Error&) {
    }
    return 0;
}
