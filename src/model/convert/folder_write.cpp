// A model written as a Hugging Face folder.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/signals.h"
#include "base/split.h"
#include "kernels/kernels.h"
#include "model/convert/new_folder.h"
#include "model/convert/outgoing.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/convert/tensor_rows.h"
#include "model/huggingface/config.h"
#include "model/huggingface/generation_config.h"
#include "model/trace/trace.h"
#include "text/chat/template.h"
#include "text/files/tokenizer_json.h"

namespace linnet {
namespace {

using nlohmann::ordered_json;

// Of the folder, beside config.json and the weights.
constexpr std::string_view tokenizer_name = "tokenizer.json", modules_name = "modules.json";

/// A model and the family that it goes out as.
struct FolderModel {
    const Gguf& file;
    const Architecture* architecture = nullptr;
    ModelConfig config;
    Graph graph;
    std::vector<std::vector<float>> converted;
    std::vector<ParameterValues> parameters;
    std::map<std::string, std::vector<float>> vectors;  // that config.json says
    const HuggingFaceFamily* family = nullptr;
    ordered_json json;  // config.json
    bool kept = false;  // it is the one that the model came with

    explicit FolderModel(const OutgoingModel& model) : file(model.file()) {
        config = read_config(file, architecture);
        graph = trace(config, false).graph;
        parameters = model.parameters(graph, *architecture, converted);
        for (std::size_t i = 0; i < parameters.size(); i++)
            if (const std::string& name = graph.parameters()[i].name; name.starts_with("rope_f")) {
                const auto* values = reinterpret_cast<const float*>(parameters[i].in_place);
                vectors[name] = {values, values + parameters[i].shape.count()};
            }
    }
};

/// Whether config.json, read by its family's rows, gives the model's own config.
bool says_model(const HuggingFaceConfig& file, const FolderModel& model) {
    std::set<std::string> names;
    for (const ParameterRows& rows : parameter_rows(file.family(), model.config, model.graph, true))
        names.insert(rows.tensors.begin(), rows.tensors.end());
    try {
        const ModelConfig read =
            file.read([&](const std::string& name) { return names.contains(name); }, model.config.vocabulary);
        if (!same_settings(read, model.config)) return false;
        const auto made = file.vectors(read);
        if (made.size() != model.vectors.size()) return false;
        for (const auto& [name, values] : model.vectors) {
            auto found = made.find(name);
            if (found == made.end() || found->second.size() != values.size()) return false;
            for (std::size_t i = 0; i < values.size(); i++)
                if (std::abs(found->second[i] - values[i]) > 1e-5F * std::abs(values[i])) return false;
        }
        return true;
    } catch (const Error&) {  // a value that the family cannot have
        return false;
    }
}

bool all_placed(const HuggingFaceFamily& family, const FolderModel& model) {
    const std::vector<ParameterRows> rows = parameter_rows(family, model.config, model.graph, true);
    for (std::size_t i = 0; i < rows.size(); i++)
        if (rows[i].tensors.empty() && !model.vectors.contains(model.graph.parameters()[i].name))
            return false;
    return true;
}

/// Sets the family and its config.json; false where there is none.
bool choose_family(FolderModel& model) {
    if (auto text = model.file.string(kept_config)) {
        try {
            const HuggingFaceConfig kept(*text, model.file.path() + ": " + kept_config);
            if (says_model(kept, model) && all_placed(kept.family(), model)) {
                model.family = &kept.family(), model.json = ordered_json::parse(kept.text()),
                model.kept = true;
                return true;
            }
        } catch (const Error&) {  // of another program, or damaged: a config is made
        }
    }
    for (const HuggingFaceFamily& family : huggingface_families()) {
        const std::string& name = model.architecture->name;
        if (family.gguf->name != name && !family.also.contains(name)) continue;
        if (!all_placed(family, model)) continue;
        ordered_json json = huggingface_config(family, model.config, model.vectors);
        if (json.is_null()) continue;
        if (!says_model(HuggingFaceConfig(json.dump(), "config.json"), model)) continue;
        model.family = &family, model.json = std::move(json);
        return true;
    }
    return false;
}

const char* torch_name(DType type) {
    return type == DType::f32 ? "float32" : type == DType::f16 ? "float16" : "bfloat16";
}

/// A tensor of the folder and the parameters that it is made of.
struct FolderTensor {
    std::string name;
    DType type = DType::f32;
    std::size_t part = 0;                                                        // of the parameters' tensors
    std::vector<std::pair<const ParameterValues*, const ParameterRows*>> holds;  // in order
    Shape shape() const { return holds[0].second->shape; }
    std::int64_t rows() const {
        const ParameterRows& r = *holds[0].second;
        return r.tensors.size() > 1 ? r.rows / static_cast<std::int64_t>(r.tensors.size()) : r.all;
    }
};

/// Whether every value of a tensor of f32 comes back from `type`.
bool survives(const ParameterValues& tensor, DType type, ValueTransform transform) {
    WindowReader own(DType::f32), narrow(type, WindowReader::TooLarge::infinite);
    std::vector<float> back;
    const std::int64_t columns = tensor.columns(), some = rows_at_a_time(columns);
    for (std::int64_t row = 0; row < tensor.rows(); row += some) {
        const Window window{row, std::min(tensor.rows(), row + some), 0, columns};
        const std::int64_t count = (window.end - row) * columns;
        back.resize(static_cast<std::size_t>(count));
        kernels().load(count, type, narrow.read(tensor, window, transform), back.data());
        undo_transform(transform, back);
        if (std::memcmp(back.data(), own.read(tensor, window), back.size() * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/// Writes a tensor of the folder whose rows are other parameters' or in another order.
class TensorEmitter {
  public:
    explicit TensorEmitter(const FolderTensor& tensor)
        : tensor_(tensor),
          first_(*tensor.holds[0].second),
          rows_(tensor.rows()),
          size_(info(tensor.type).bytes),
          from_(static_cast<std::size_t>(rows_)),
          reader_(tensor.type) {
        for (std::size_t h = 0; h < tensor.holds.size(); h++) {
            const auto [begin, end] = tensor.holds[h].second->near(tensor.part);
            for (std::int64_t r = begin; r < end; r++) {
                const ParameterRows::Place place = tensor.holds[h].second->at(r);
                if (place.tensor == tensor.part)
                    from_[static_cast<std::size_t>(place.row)] = {static_cast<std::uint32_t>(h), r};
            }
        }
    }

    void emit(const SafetensorsWriter::Sink& sink) {
        const std::int64_t columns = first_.columns, unit = 256;  // quantized types' blocks divide it
        if (!first_.transpose) {
            const std::int64_t some = rows_at_a_time(columns);
            for (std::int64_t at = 0; at < rows_; at += some)
                put({at, std::min(at + some, rows_), 0, columns}, sink);
            return;
        }
        // Rows become columns: a piece has some elements of every row of a matrix.
        const std::int64_t each = rows_ / first_.stacks,
                           some = std::max(unit, rows_at_a_time(each) / unit * unit);
        for (std::int64_t row = 0; row < rows_; row += each)
            for (std::int64_t at = 0; at < columns; at += some)
                put({row, row + each, at, std::min(some, columns - at)}, sink);
    }

  private:
    struct From {
        std::uint32_t hold;
        std::int64_t row;
    };

    /// A window of the rows in the tensor's order, as the tensor has it.
    void put(const Window& w, const SafetensorsWriter::Sink& sink) {
        if (int signal = stop_signal()) throw Stopped{signal};
        const std::int64_t rows = w.end - w.begin;
        bytes_.resize(static_cast<std::size_t>(rows * w.columns * size_));
        std::byte* out = bytes_.data();
        for (std::int64_t r = w.begin; r < w.end;) {
            const From& from = from_[static_cast<std::size_t>(r)];
            std::int64_t n = 1;  // rows that follow one another there, too
            for (; r + n < w.end; n++) {
                const From& next = from_[static_cast<std::size_t>(r + n)];
                if (next.hold != from.hold || next.row != from.row + n) break;
            }
            const std::byte* values =
                reader_.read(*tensor_.holds[from.hold].first, {from.row, from.row + n, w.column, w.columns},
                             first_.transform);
            const std::int64_t at = r - w.begin;
            if (first_.transpose)
                transpose(n, w.columns, static_cast<std::size_t>(size_), values, w.columns, out + at * size_,
                          rows);
            else
                std::memcpy(out + at * w.columns * size_, values,
                            static_cast<std::size_t>(n * w.columns * size_));
            r += n;
        }
        sink(bytes_.data(), bytes_.size());
    }

    const FolderTensor& tensor_;
    const ParameterRows& first_;
    std::int64_t rows_, size_;
    std::vector<From> from_;
    WindowReader reader_;
    std::vector<std::byte> bytes_;
};

void emit(const FolderTensor& tensor, const SafetensorsWriter::Sink& sink) {
    const ParameterRows& first = *tensor.holds[0].second;
    if (tensor.holds.size() == 1 && first.tensors.size() == 1 && first.in_order() && first.as_is())
        return write_values(*tensor.holds[0].first, tensor.type, sink);
    TensorEmitter(tensor).emit(sink);
}

/// The type of a tensor: what was asked for, or as stored; GGUF's tensors that are always f32 go back to the
/// others' type where no value changes.
DType type_of(const ParameterValues& t, ValueTransform transform, DType matrices, const Gguf& file,
              const std::string& name, const SinkOptions& options) {
    if (options.type) return *options.type;
    if (info(t.type).block > 1)
        fail_input(file.path(), name, "f32, f16 or bf16", std::string(info(t.type).name),
                   "--type f16 unpacks quantized weights");
    return t.type == DType::f32 && matrices != DType::f32 && survives(t, matrices, transform) ? matrices
                                                                                              : t.type;
}

DType matrix_type(const FolderModel& model, const SinkOptions& options) {
    if (options.type) return *options.type;
    for (std::size_t i = 0; i < model.parameters.size(); i++)
        if (model.parameters[i].shape.rank > 1 && !parts_of(model.graph.parameters()[i].name).layer.empty())
            return info(model.parameters[i].type).block > 1 ? DType::f32 : model.parameters[i].type;
    return DType::f32;
}

/// Every tensor of the folder in the order of its first parameter. `rows` is by parameter and outlives them.
std::vector<FolderTensor> folder_tensors(const FolderModel& model, const std::vector<ParameterRows>& rows,
                                         const SinkOptions& options) {
    const DType matrices = matrix_type(model, options);
    std::vector<FolderTensor> tensors;
    std::map<std::string, std::size_t> found;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (rows[i].tensors.empty()) continue;
        const DType type = type_of(model.parameters[i], rows[i].transform, matrices, model.file,
                                   rows[i].tensors[0], options);
        for (std::size_t part = 0; part < rows[i].tensors.size(); part++) {
            auto [at, first] = found.emplace(rows[i].tensors[part], tensors.size());
            if (first) tensors.push_back({rows[i].tensors[part], type, part, {}});
            FolderTensor& tensor = tensors[at->second];
            tensor.holds.emplace_back(&model.parameters[i], &rows[i]);
            if (type != tensor.type) tensor.type = DType::f32;
        }
    }
    for (FolderTensor& tensor : tensors)
        std::ranges::stable_sort(tensor.holds, {}, [](const auto& hold) { return hold.second->first; });
    return tensors;
}

void write_json(const std::string& path, const ordered_json& json) {
    write_file(path, json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

/// The tokenizer's files.
void write_tokenizer(const FolderModel& model, const Tokenizer& tokenizer, const std::string& folder) {
    const auto* pipeline = dynamic_cast<const Pipeline*>(&tokenizer);
    if (!pipeline)
        fail_input(folder, std::string(tokenizer_name), "a tokenizer that it can express",
                   std::string(tokenizer.kind()));
    write_file(folder + "/" + std::string(tokenizer_name), tokenizer_to_json(*pipeline));
    const SpecialIds& s = pipeline->parts().special;
    ordered_json settings{{"tokenizer_class", "PreTrainedTokenizerFast"},
                          {"model_max_length", model.config.context},
                          {"clean_up_tokenization_spaces", false}};
    auto token = [&](const char* key, std::optional<TokenId> id) {
        if (id) settings[key] = std::string(pipeline->piece(*id));
    };
    token("bos_token", s.bos), token("eos_token", s.eos), token("unk_token", s.unknown),
        token("pad_token", s.padding), token("cls_token", s.cls), token("sep_token", s.separator),
        token("mask_token", s.mask);
    settings["add_bos_token"] = pipeline->add_bos();
    if (auto chat = model.file.string(chat_template_key)) settings["chat_template"] = std::string(*chat);
    write_json(folder + "/" + folder_settings_name, settings);
    write_json(folder + "/" + std::string(generation_name), generation_config(model.file, s));
}

/// What sentence-transformers read beside an encoder: its parts (as `linnet embed`, vectors of length 1), and
/// how rows become one vector.
void write_pooling(const ordered_json& pooling, const std::string& folder) {
    const std::string name(pooling_folder);
    make_folders(folder + "/" + name);
    write_json(folder + "/" + name + "/config.json", pooling);
    ordered_json modules = ordered_json::array();
    for (const auto& [kind, path] : {std::pair("Transformer", std::string()), std::pair("Pooling", name),
                                     std::pair("Normalize", std::string("2_Normalize"))})
        modules.push_back({{"idx", modules.size()},
                           {"name", std::to_string(modules.size())},
                           {"path", path},
                           {"type", std::string("sentence_transformers.models.") + kind}});
    write_json(folder + "/" + std::string(modules_name), modules);
}

void write_config_json(FolderModel& model, const Tokenizer& tokenizer, DType type,
                       const std::string& folder) {
    ordered_json& json = model.json;
    if (json.contains("dtype") || json.contains("torch_dtype"))
        for (const char* key : {"dtype", "torch_dtype"}) {
            if (json.contains(key)) json[key] = torch_name(type);
        }
    else if (!model.kept)
        json["torch_dtype"] = torch_name(type);
    if (!model.kept) {
        if (tokenizer.bos()) json["bos_token_id"] = *tokenizer.bos();
        if (tokenizer.eos()) json["eos_token_id"] = *tokenizer.eos();
        // Else some classes have an id of their own, which a smaller vocabulary lacks.
        if (!model.config.has_encoder() && !json.contains("pad_token_id")) json["pad_token_id"] = nullptr;
    }
    write_json(folder + "/config.json", json);
}

const NewFolder::Names folder_names{
    "config.json",
    // What would be taken for weights of the model, too.
    [](std::string_view name) {
        return name.starts_with("model") &&
               (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"));
    },
    // And what transformers or linnet would read beside them.
    {tokenizer_name, folder_settings_name, generation_name, modules_name, pooling_folder,
     folder_template_name, "special_tokens_map.json", "added_tokens.json", "tokenizer.model", "vocab.json",
     "merges.txt"},
    "adapter_config.json"};

}  // namespace

const HuggingFaceFamily* folder_family(const Gguf& file) {
    FolderModel model(file);
    return choose_family(model) ? model.family : nullptr;
}

std::optional<std::string> folder_class(const Gguf& file) {
    const HuggingFaceFamily* family = folder_family(file);
    return family ? std::optional(family->class_name) : std::nullopt;
}

std::uint64_t write_folder(const OutgoingModel& values, const TokenizerPtr& tokenizer,
                           const std::string& path, const SinkOptions& options) {
    FolderModel model(values);
    const Gguf& file = values.file();
    if (!choose_family(model))
        fail_input(file.path(), "", "a model that a family of transformers can say",
                   model.architecture->name + " with settings that none has");
    const TokenizerPtr words = tokenizer ? tokenizer : tokenizer_from_gguf(file);
    const std::vector<ParameterRows> rows = parameter_rows(*model.family, model.config, model.graph, true);
    const std::vector<FolderTensor> tensors = folder_tensors(model, rows, options);
    NewFolder folder(path, options.existing, folder_names);
    double done = 0, all = 0;
    SafetensorsWriter writer;
    for (const FolderTensor& tensor : tensors) {
        all += static_cast<double>(tensor.shape().count() * info(tensor.type).bytes);
        std::vector<std::string_view> from;
        for (const auto& [held, r] : tensor.holds)
            from.push_back(
                model.graph.parameters()[static_cast<std::size_t>(held - model.parameters.data())].name);
        options.mapped(joined(from) + " -> " + tensor.name);
        writer.add_tensor(tensor.name, tensor.type, tensor.shape(), [&](const SafetensorsWriter::Sink& sink) {
            emit(tensor, [&](const void* data, std::size_t size) {
                sink(data, size);
                done += static_cast<double>(size);
                options.progress(done, all);
            });
        });
    }
    writer.write(folder.path(), "model", options.max_part);
    if (auto pooling = model.json.find(pooling_folder); pooling != model.json.end()) {
        write_pooling(*pooling, folder.path());
        model.json.erase(pooling);  // which has that file of its own there
    }
    write_config_json(model, *words, matrix_type(model, options), folder.path());
    write_tokenizer(model, *words, folder.path());
    return folder.finish();
}

}  // namespace linnet
