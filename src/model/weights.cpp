#include "model/weights.h"

#include <set>

#include "base/error.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

std::string text(const Shape& shape) {
    std::string out = "[";
    for (int i = 0; i < shape.rank; i++)
        out += (i ? ", " : "") + std::to_string(shape.dim[static_cast<std::size_t>(i)]);
    return out + "]";
}

/// The types that kernels compute with, for an error.
std::string computed_types() {
    std::string list;
    for (const DTypeInfo& row : dtypes())
        if (row.is_weight) list += (list.empty() ? "" : ", ") + std::string(row.name);
    return "a type that this program computes with (" + list + ")";
}

/// The parameters that stand in the same tensor as `parameter`, in the order of their rows.
struct Group {
    std::vector<const Parameter*> parts;
    Shape shape;  // of the whole tensor
};

Group group_of(const Graph& graph, const Architecture& a, const Parameter& parameter) {
    TensorPlace place = place_of(a, parameter.name);
    if (!place.fused) return {{&parameter}, parameter.shape};
    Group group;
    for (std::size_t part = 0; part < place.fused->parts.size(); part++)
        for (const Parameter& p : graph.parameters()) {
            TensorPlace other = place_of(a, p.name);
            if (other.tensor == place.tensor && other.part == static_cast<int>(part))
                group.parts.push_back(&p);
        }
    group.shape = parameter.shape;
    group.shape.dim[0] = 0;
    for (const Parameter* p : group.parts) group.shape.dim[0] += p->shape.dim[0];
    return group;
}

}  // namespace

std::vector<Tensor> bind_parameters(const Graph& graph, const Gguf& file, const Architecture& a,
                                    std::vector<std::vector<float>>& converted) {
    std::vector<Tensor> bound;
    std::set<std::string_view> used;
    for (const Parameter& p : graph.parameters()) {
        TensorPlace place = place_of(a, p.name);
        const GgufTensor* t = file.tensor(place.tensor);
        if (!t) fail_input(file.path(), place.tensor, "a tensor", "none");
        used.insert(t->name);
        Group group = group_of(graph, a, p);
        if (t->shape != group.shape)
            fail_input(file.path(), place.tensor, "shape " + text(group.shape), text(t->shape));
        if (!info(t->type).is_weight)
            fail_input(file.path(), place.tensor, computed_types(), std::string(info(t->type).name));
        Tensor tensor{const_cast<std::byte*>(t->bytes.data()), t->type, p.shape};
        std::int64_t first_row = 0;
        for (const Parameter* part : group.parts) {
            if (part == &p) break;
            first_row += part->shape.dim[0];
        }
        // Of a vector, each element counts as a row.
        tensor.data = p.shape.rank > 1 ? tensor.row(first_row)
                                       : tensor.as<std::byte>() + first_row * info(t->type).bytes;
        if (p.shape.rank == 1 && t->type != DType::f32) {
            converted.emplace_back(static_cast<std::size_t>(p.shape.count()));
            kernels().load(p.shape.count(), t->type, tensor.data, converted.back().data());
            tensor.data = converted.back().data();
            tensor.type = DType::f32;
        }
        bound.push_back(tensor);
    }
    for (const GgufTensor& t : file.tensors())
        if (!used.contains(t.name))
            fail_input(file.path(), t.name, "a tensor of the architecture " + std::string(a.name),
                       "an unknown one");
    return bound;
}

namespace {

/// Hands `tensor`'s rows, stored as `type`, to the writer one at a time. Rows that have that type already go
/// as they are.
void emit(const Tensor& tensor, DType type, const GgufWriter::Sink& sink) {
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
        kernels().store(columns, type, values.data(), row.data());
        sink(row.data(), row.size());
    }
}

}  // namespace

std::string save_model(const std::string& path, const ModelConfig& config, const Graph& graph,
                       const std::vector<Tensor>& parameters, const Tokenizer& tokenizer, DType type,
                       const std::string& name, const Provenance& provenance) {
    const Architecture& a = architecture_of(config);
    GgufWriter out;
    write_config(out, a, config);
    out.add("general.name", name);
    tokenizer.write(out);
    for (const auto& [key, value] : provenance) out.add("linnet." + key, value);
    std::set<std::string> written;
    for (const Parameter& p : graph.parameters()) {
        TensorPlace place = place_of(a, p.name);
        if (!written.insert(place.tensor).second) continue;
        Group group = group_of(graph, a, p);
        // Runtimes add the position table to activations as it is, so it stays in f32; it is small.
        DType stored = p.shape.rank == 1 || p.name.starts_with("position_embd") ? DType::f32 : type;
        std::vector<Tensor> parts;
        for (const Parameter* part : group.parts)
            parts.push_back(parameters[static_cast<std::size_t>(part - graph.parameters().data())]);
        out.add_tensor(place.tensor, stored, group.shape, [parts, stored](const GgufWriter::Sink& sink) {
            for (const Tensor& part : parts) emit(part, stored, sink);
        });
    }
    return out.write(path);
}

}  // namespace linnet
