// Models of many layers: their files, the graphs that are traced of them, and where their values lie.
#include <cstdlib>
#include <memory>

#include "fuzz/folder.h"
#include "fuzz/small_model.h"
#include "growth.h"
#include "model/adapter.h"
#include "model/convert/source.h"
#include "model/engine/engine.h"
#include "model/huggingface/config.h"
#include "model/model.h"
#include "model/trace/trace.h"
#include "train/checkpoint.h"
#include "train/task/config.h"

namespace linnet::growth {
namespace {

/// llama2.c's checkpoint of a model four wide, all zeros but its header.
std::string checkpoint(std::size_t layers) {
    const std::int32_t header[] = {4, 4, static_cast<std::int32_t>(layers), 1, 1, 8, 8};
    std::string bytes(reinterpret_cast<const char*>(header), sizeof header);
    const std::size_t matrices = layers * (4 + 3) * 16 + 8 * 4, norms = (2 * layers + 1) * 4, turns = 8 * 4;
    return bytes + std::string(4 * (matrices + norms + turns), '\0');
}

std::shared_ptr<fuzz::Folder> folder_of(std::size_t layers) {
    auto folder = std::make_shared<fuzz::Folder>();
    folder->with("tokenizer.bin", fuzz::eight_letters());
    folder->with("m.bin", checkpoint(layers));
    return folder;
}

std::shared_ptr<const Model> model_of(const fuzz::Folder& folder) {
    return Model::open(folder.path() + "/m.bin");
}

Act foreign_file(std::size_t n) {
    return [folder = folder_of(n)] { model_of(*folder); };
}

Act own_file(std::size_t n) {
    auto folder = folder_of(n);
    const std::string path = folder->path() + "/m.gguf";
    write_gguf(open_llama2c(folder->path() + "/m.bin", {}), path, Existing::replace, [](double, double) {});
    return [folder, path] { Model::open(path); };
}

Act engine(std::size_t n) {
    return [model = model_of(*folder_of(n))] { const Engine made(model, {}); };
}

Act huggingface_layers(std::size_t n) {
    std::string list;
    for (std::size_t i = 0; i < n; i++)
        list += (i ? ",\"" : "\"") + std::string(i % 2 ? "full" : "sliding") + "_attention\"";
    const std::string text =
        R"({"model_type":"gemma2","hidden_size":8,"intermediate_size":16,"num_attention_heads":2,)"
        R"("head_dim":4,"max_position_embeddings":64,"query_pre_attn_scalar":4,"num_hidden_layers":)" +
        std::to_string(n) + ",\"layer_types\":[" + list + "]}";
    return [text] {
        const HuggingFaceConfig file(text, "growth");
        huggingface_config(file.family(), file.read([](const std::string&) { return true; }, 256), {});
    };
}

Act config_layers(std::size_t n) {
    std::string list;
    for (std::size_t i = 0; i < n; i++) list += (i ? "," : "") + std::to_string(i % 5 ? 8 : 0);
    const std::string text = R"({"model":{"width":8,"context":8,"heads":1,"layers":)" + std::to_string(n) +
                             R"(,"attention":{"window":[)" + list + "]}}}";
    return [text] {
        RunConfig config = read_run_config(parse_json(text, "growth"), "growth", {});
        to_json(run_fields(config)).dump();
    };
}

Act tied_layers(std::size_t n) {
    const std::string text = R"({"model":{"width":8,"context":8,"heads":1,"layers":)" +
                             std::to_string(2 * n) + R"(,"tie_layers":)" + std::to_string(n) + "}}";
    RunConfig config = read_run_config(parse_json(text, "growth"), "growth", {});
    return [config] { trace(config.model, true); };
}

}  // namespace

std::vector<Row> model_rows() {
    return {{"model: layers of another maker's file", 50, foreign_file},
            {"model: layers of a GGUF file", 50, own_file},
            {"model: layers whose values are laid out", 50, engine},
            {"config.json: a kind for each layer", 100, huggingface_layers},
            {"config: a window for each layer", 100, config_layers},
            {"model: layers that share weights", 50, tied_layers}};
}

}  // namespace linnet::growth
