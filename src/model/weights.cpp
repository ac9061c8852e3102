#include "model/weights.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/split.h"
#include "kernels/kernels.h"
#include "model/narrow.h"

namespace linnet {
namespace {

/// Writers differ in whether a vector is a matrix of one row.
bool same_shape(const Shape& a, const Shape& b) {
    auto inner = [](const Shape& s) {
        std::vector<std::int64_t> dim(s.dim.begin(), s.dim.begin() + s.rank);
        return std::vector<std::int64_t>(
            std::find_if(dim.begin(), dim.end(), [](std::int64_t n) { return n != 1; }), dim.end());
    };
    return inner(a) == inner(b);
}

/// The types that kernels compute with, for an error.
std::string computed_types() {
    std::vector<std::string_view> names;
    for (const DTypeInfo& row : dtypes())
        if (row.is_weight) names.push_back(row.name);
    return "a type that this program computes with (" + joined(names) + ")";
}

/// The tensor of a parameter. A row that is for models with another parameter too counts only there. In a
/// file that is read (null: one to be written), parameters may also stand by themselves.
TensorPlace stored_place(const Architecture& a, const std::string& parameter,
                         const std::unordered_set<std::string_view>& parameters, const Gguf* file) {
    TensorPlace place = place_of(a, parameter);
    if (!place.row) return place;
    bool counts = place.beside.empty() || parameters.contains(place.beside + ".weight");
    if (file && !place.row->written) {
        counts &= file->tensor(place.tensor) != nullptr;
    } else if (file && place.row->holds.size() > 1) {
        bool apart = true;
        for (const std::string& name : own_names(place, parameter)) apart &= file->tensor(name) != nullptr;
        counts &= !apart;
    } else {
        counts &= place.row->written;
    }
    return counts ? place : TensorPlace{.tensor = parameter};
}

}  // namespace

std::string shape_text(const Shape& shape) {
    std::string out = "[";
    for (int i = 0; i < shape.rank; i++)
        out += (i ? ", " : "") + std::to_string(shape.dim[static_cast<std::size_t>(i)]);
    return out + "]";
}

bool always_f32(const Parameter& parameter) {
    return parameter.shape.rank == 1 || parameter.stored().rank == 1 ||
           parameter.name.find("position_embd") != std::string::npos;
}

std::vector<StoredTensor> stored_tensors(const Graph& graph, const Architecture& a, const Gguf* file) {
    std::vector<StoredTensor> tensors;
    std::unordered_set<std::string_view> names;
    for (const Parameter& p : graph.parameters())
        if (p.adapter == none) names.insert(p.name);
    std::vector<std::vector<std::pair<int, std::size_t>>> parts;  // of each tensor: (place, parameter)
    std::unordered_map<std::string, std::size_t> found;           // names of ours, by tensor
    for (std::size_t i = 0; i < graph.parameters().size(); i++) {
        const Parameter& p = graph.parameters()[i];
        if (p.adapter != none) continue;
        TensorPlace place = stored_place(a, p.name, names, file);
        auto [at, first] = found.emplace(place.tensor, tensors.size());
        if (first) {
            tensors.push_back({place.tensor, {}, p.stored()});
            tensors.back().shape.dim[0] = 0;
            parts.emplace_back();
        }
        tensors[at->second].shape.dim[0] += p.stored().dim[0];
        parts[at->second].emplace_back(place.part, i);
    }
    for (std::size_t t = 0; t < tensors.size(); t++) {
        std::sort(parts[t].begin(), parts[t].end());
        for (const auto& [place, parameter] : parts[t]) tensors[t].parts.push_back(parameter);
    }
    return tensors;
}

/// Whether a file may have no tensor of this name where others of its kind are there.
static bool may_lack(const Architecture& a, std::string_view name) {
    const std::string layer = parts_of(name).layer;
    return std::any_of(a.presence.begin(), a.presence.end(), [&](const TensorPresence& row) {
        return row.is_bias() && with_layer(row.tensor, layer) == name;
    });
}

std::vector<ParameterPlace> find_parameters(const Graph& graph, const Gguf& file, const Architecture& a) {
    std::vector<ParameterPlace> places(graph.parameters().size());
    std::unordered_set<const GgufTensor*> used;
    for (const StoredTensor& stored : stored_tensors(graph, a, &file)) {
        const GgufTensor* t = file.tensor(stored.name);
        if (!t) {
            if (!may_lack(a, stored.name)) fail_input(file.path(), stored.name, "a tensor", "none");
            continue;
        }
        used.insert(t);
        if (!same_shape(t->shape, stored.shape))
            fail_input(file.path_of(*t), stored.name, "shape " + shape_text(stored.shape),
                       shape_text(t->shape));
        // A vector of blocks is nothing that any tool writes.
        const bool vector = graph.parameters()[stored.parts[0]].shape.rank == 1;
        if (!info(t->type).is_weight || (vector && info(t->type).block > 1))
            fail_input(file.path_of(*t), stored.name,
                       info(t->type).is_weight ? "f32, f16 or bf16" : computed_types(), t->type_name());
        std::int64_t row = 0;
        for (std::size_t part : stored.parts) {
            places[part] = {t, row};
            row += graph.parameters()[part].shape.dim[0];
        }
    }
    for (const GgufTensor& t : file.tensors())
        if (!used.contains(&t) && !is_ignored(a, t.name))
            fail_input(file.path_of(t), t.name, "a tensor of the architecture " + std::string(a.name),
                       "an unknown one");
    return places;
}

Tensor bind_parameter(const Parameter& p, const ParameterPlace& place,
                      std::vector<std::vector<float>>& converted) {
    const auto count = static_cast<std::size_t>(p.shape.count());
    if (!place.tensor) return {converted.emplace_back(count, 0.0F).data(), DType::f32, p.shape};
    const GgufTensor& t = *place.tensor;
    Tensor tensor{const_cast<std::byte*>(t.bytes.data()), t.type, p.shape};
    tensor.data =
        p.shape.rank > 1 ? tensor.row(place.row) : tensor.as<std::byte>() + place.row * info(t.type).bytes;
    if (p.shape.rank == 1 && t.type != DType::f32) {
        std::vector<float>& values = converted.emplace_back(count);
        kernels().load(p.shape.count(), t.type, tensor.data, values.data());
        tensor.data = values.data(), tensor.type = DType::f32;
    }
    return tensor;
}

std::vector<Tensor> bind_parameters(const Graph& graph, const Gguf& file, const Architecture& a,
                                    std::vector<std::vector<float>>& converted) {
    std::vector<Tensor> bound(graph.parameters().size());
    const std::vector<ParameterPlace> places = find_parameters(graph, file, a);
    for (std::size_t i = 0; i < bound.size(); i++)
        if (const Parameter& p = graph.parameters()[i]; p.adapter == none)
            bound[i] = bind_parameter(p, places[i], converted);
    return bound;
}

void emit_tensor(const Tensor& tensor, DType type, const GgufWriter::Sink& sink, const std::string& file,
                 const std::string& name) {
    bool matrix = tensor.shape.rank > 1;
    std::int64_t columns = tensor.shape.dim[matrix ? 1 : 0], rows = tensor.shape.count() / columns;
    Tensor stored{nullptr, type, tensor.shape};
    std::vector<float> values(static_cast<std::size_t>(columns));
    std::vector<std::byte> row(static_cast<std::size_t>(stored.row_bytes()));
    for (std::int64_t i = 0; i < rows; i++) {
        if (tensor.type == type) {
            sink(tensor.row(i), row.size());
            continue;
        }
        kernels().load(columns, tensor.type, tensor.row(i), values.data());
        if (store_narrowed(columns, type, values.data(), row.data()) < columns)
            refuse_narrowed(file, name, matrix ? i : 0, type);
        sink(row.data(), row.size());
    }
}

std::string save_model(const std::string& path, const ModelConfig& config, const Graph& graph,
                       const std::vector<Tensor>& parameters, const Tokenizer& tokenizer, DType type,
                       const std::string& name, const Provenance& provenance) {
    const Architecture& a = architecture_of(config);
    GgufWriter out;
    write_config(out, a, config);
    out.add("general.name", name);
    tokenizer.write(out);
    for (const auto& [key, value] : provenance) out.add("linnet." + key, value);
    for (const StoredTensor& tensor : stored_tensors(graph, a, nullptr)) {
        const Parameter& p = graph.parameters()[tensor.parts[0]];
        DType stored = always_f32(p) ? DType::f32 : type;
        out.add_tensor(tensor.name, stored, tensor.shape,
                       [&, stored, parts = tensor.parts](const GgufWriter::Sink& sink) {
                           for (std::size_t part : parts)
                               emit_tensor(parameters[part], stored, sink, path,
                                           graph.parameters()[part].name);
                       });
    }
    return out.write(path, Existing::replace_name);
}

}  // namespace linnet
