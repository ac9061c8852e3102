#include "model/convert/outgoing.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/signals.h"
#include "kernels/kernels.h"
#include "model/narrow.h"
#include "model/weights.h"

namespace linnet {

/// The window as the parameter's own type.
const std::byte* WindowReader::stored(const ParameterValues& from, const Window& w) {
    auto bytes = [&](std::int64_t elements) {
        return static_cast<std::size_t>(stored_bytes(from.type, elements));
    };
    const std::int64_t columns = from.columns(), rows = w.end - w.begin;
    const std::byte* at =
        from.in_place ? from.in_place + bytes(w.begin * columns) + bytes(w.column) : nullptr;
    if (at && (rows == 1 || w.columns == columns)) return at;
    stored_.resize(bytes(rows * w.columns));
    if (!at) {
        from.made->read(w, stored_.data());
        return stored_.data();
    }
    for (std::int64_t row = 0; row < rows; row++)
        std::memcpy(stored_.data() + bytes(row * w.columns), at + bytes(row * columns), bytes(w.columns));
    return stored_.data();
}

const std::byte* WindowReader::read(const ParameterValues& from, const Window& w, ValueTransform transform) {
    const std::byte* own = stored(from, w);
    if (from.type == type_ && transform == ValueTransform::same) return own;
    const std::int64_t count = (w.end - w.begin) * w.columns;
    out_.resize(static_cast<std::size_t>(count * info(type_).bytes));
    if (type_ == DType::f32 && transform == ValueTransform::same) {
        kernels().load(count, from.type, own, reinterpret_cast<float*>(out_.data()));
        return out_.data();
    }
    values_.resize(static_cast<std::size_t>(count));
    kernels().load(count, from.type, own, values_.data());
    apply_transform(transform, values_);
    std::int64_t lost = store_narrowed(count, type_, values_.data(), out_.data());
    if (transform != ValueTransform::same) lost = std::min(lost, first_not_finite(values_));
    if (lost < count && too_large_ == TooLarge::refused) {
        const std::int64_t row = from.row + w.begin + lost / w.columns;
        if (transform == ValueTransform::log)
            refuse_row(from.file, from.tensor, row, "negative numbers, whose logarithms are written",
                       "others");
        refuse_narrowed(from.file, from.tensor, row, type_);
    }
    return out_.data();
}

void write_values(const ParameterValues& values, DType type,
                  const std::function<void(const void*, std::size_t)>& sink) {
    WindowReader reader(type);
    const std::int64_t rows = values.rows(), columns = values.columns(), some = rows_at_a_time(columns);
    for (std::int64_t row = 0; row < rows; row += some) {
        if (int signal = stop_signal()) throw Stopped{signal};
        const std::int64_t end = std::min(rows, row + some);
        sink(reader.read(values, {row, end, 0, columns}),
             static_cast<std::size_t>(stored_bytes(type, (end - row) * columns)));
    }
}

OutgoingModel::OutgoingModel(const ModelSource& source) : outline_(outline(source)), file_(&*outline_) {
    for (const SourceTensor* t : bound_tensors(source))
        if (t->in_place.empty()) made_.emplace(t->name, t);
}

std::vector<ParameterValues> OutgoingModel::parameters(const Graph& graph, const Architecture& architecture,
                                                       std::vector<std::vector<float>>& converted) const {
    std::vector<ParameterValues> values;
    const std::vector<ParameterPlace> places = find_parameters(graph, *file_, architecture);
    for (std::size_t i = 0; i < places.size(); i++) {
        const Parameter& p = graph.parameters()[i];
        const GgufTensor* in = places[i].tensor;
        const std::string name(in ? in->name : std::string_view(p.name)),
            path = in ? file_->path_of(*in) : file_->path();
        const auto found = in ? made_.find(in->name) : made_.end();
        if (found == made_.end()) {
            const Tensor t = bind_parameter(p, places[i], converted);
            values.push_back({t.type, t.shape, t.as<std::byte>(), nullptr, path, name, places[i].row});
            continue;
        }
        std::int64_t row = 0;
        const MadeRows* made = nullptr;
        for (const MadeRows& one : found->second->made) {
            if (row == places[i].row) made = &one;
            row += one.rows;
        }
        if (!made || made->rows * made->columns != p.shape.count())
            throw std::logic_error("OutgoingModel: " + p.name + " is made of other rows");
        values.push_back({in->type, p.shape, nullptr, made, path, name, places[i].row});
        if (p.shape.rank > 1) continue;
        // Vectors are f32 and there, as bind_parameter has them.
        WindowReader reader(DType::f32);
        const auto* from = reinterpret_cast<const float*>(reader.read(values.back(), {0, made->rows, 0, 1}));
        const std::vector<float>& kept = converted.emplace_back(from, from + made->rows);
        values.back().type = DType::f32, values.back().made = nullptr;
        values.back().in_place = reinterpret_cast<const std::byte*>(kept.data());
    }
    return values;
}

}  // namespace linnet
