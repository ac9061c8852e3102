#include "model/convert/open.h"

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal.h"
#include "model/adapter.h"
#include "model/builtin.h"
#include "model/convert/peft.h"
#include "model/convert/raw_model.h"
#include "model/model.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

/// The integers of llama2.c's oldest header and the bytes that follow make sense together only there.
bool looks_like_llama2c(const MappedFile& file) {
    std::int32_t n[7];
    if (file.bytes().size() < sizeof n) return false;
    std::memcpy(n, file.bytes().data(), sizeof n);
    for (int i = 0; i < 7; i++)
        if (n[i] == 0 || n[i] < (i == 5 ? -(1 << 24) : 0) || n[i] > 1 << 24) return false;
    return true;
}

}  // namespace

ModelFormat model_format(const std::string& path) {
    std::error_code ignored;
    if (is_folder(path)) {
        if (fs::exists(path + "/config.json", ignored)) return ModelFormat::folder;
        fail_input(path, "", "a model: a folder with config.json and safetensors, or a file",
                   "another folder");
    }
    const MappedFile file(path);
    const std::string_view text = file.text();
    std::int32_t first = 0;
    if (text.size() >= sizeof first) std::memcpy(&first, text.data(), sizeof first);
    if (text.starts_with("GGUF")) return ModelFormat::gguf;
    const bool pickled = text.size() > 1 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
    if (text.starts_with("PK\x03\x04") || pickled)
        refuse_pickle(path, "GGUF, a folder with safetensors, or a checkpoint of llama2.c or llm.c");
    if (path.ends_with(".safetensors"))
        fail_input(path, "", "a folder with config.json, or GGUF", "weights alone", "name the folder");
    if (first == llmc_magic) return ModelFormat::llmc;
    if (first == llama2c_magic || (path.ends_with(".bin") && looks_like_llama2c(file)))
        return ModelFormat::llama2c;
    return ModelFormat::gguf;
}

std::string_view format_name(ModelFormat format) {
    constexpr std::string_view names[] = {"GGUF", "Hugging Face folder", "llama2.c checkpoint",
                                          "llm.c checkpoint"};
    return names[static_cast<std::size_t>(format)];
}

ModelSource open_source(const std::string& path, ModelFormat format, const OpenOptions& options) {
    if (format == ModelFormat::folder) return open_folder(path, options);
    return format == ModelFormat::llama2c ? open_llama2c(path, options) : open_llmc(path, options);
}

Gguf open_model_file(const std::string& path, TokenizerPtr* tokenizer, UnknownTypes unknown) {
    if (path.empty()) return Gguf(MappedFile::view(builtin_model(), "built-in model"));
    const ModelFormat format = model_format(path);
    if (format == ModelFormat::gguf) return Gguf(path, unknown);
    ModelSource source = open_source(path, format);
    for (const std::string& line : source.notes) note(line);
    if (tokenizer) *tokenizer = source.tokenizer;
    return as_gguf(source);
}

void require_gguf_tokenizer(const std::string& path, const TokenizerPtr& beside) {
    if (!beside) return;
    try {
        GgufWriter none;
        beside->write(none);
    } catch (const Error& error) {  // says what it is that GGUF has no name for
        throw Error(error.exit(), path + ": " + error.what());
    }
}

Adapter open_adapter(const AdapterChoice& choice, const Model& base) {
    const bool peft = is_peft_folder(choice.path);
    if (!peft && is_folder(choice.path))
        fail_input(choice.path, "",
                   "an adapter: a file, a PEFT folder, or the folder of a run that trained one",
                   "another folder", "-m takes whole models");
    Adapter adapter = peft ? adapter_of_folder(choice.path, base, choice.scale)
                           : adapter_of_gguf(Gguf(choice.path), base, choice.scale);
    adapter.path = choice.path;
    return adapter;
}

std::shared_ptr<const Model> Model::open(const std::string& path) {
    TokenizerPtr tokenizer;
    Gguf file = open_model_file(path, &tokenizer);
    return open(std::move(file), tokenizer);
}

}  // namespace linnet
