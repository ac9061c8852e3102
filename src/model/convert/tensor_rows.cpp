#include "model/convert/tensor_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/narrow.h"
#include "model/weights.h"

namespace linnet {
namespace {

constexpr std::string_view part_mark = "{part}";

std::string with_part(std::string name, std::int64_t part) {
    const std::size_t at = name.find(part_mark);
    if (at != name.npos) name.replace(at, part_mark.size(), std::to_string(part));
    return name;
}

std::string text(const SafetensorsTensor& t) {
    return t.rank > 4 ? std::to_string(t.rank) + " dimensions" : shape_text(t.shape);
}

/// A family's rows for one model.
class Places {
  public:
    Places(const HuggingFaceFamily& family, const ModelConfig& config, const Graph& graph, bool prefixed)
        : family_(family), fields_(values_of(config)), prefixed_(prefixed) {
        for (const Parameter& p : graph.parameters()) parameters_.emplace(p.name, &p);
    }

    ParameterRows of(const Parameter& p) const {
        const NameParts name = parts_of(p.name);
        const auto [begin, end] = family_.places.equal_range(name.stem);
        for (auto it = begin; it != end; ++it) {
            const HuggingFaceTensor& row = family_.tensors[it->second.first];
            if (!row.beside.empty() && !parameters_.contains(with_layer(row.beside, name.layer) + ".weight"))
                continue;
            return rows_of(p, name, row, it->second.second);
        }
        return {};
    }

  private:
    /// A field's number in a layer; 1 where there is no field.
    std::int64_t number(const std::string& field, const std::string& layer) const {
        if (field.empty()) return 1;
        const nlohmann::json& value = fields_[field];
        if (!value.is_array()) return value;
        return value[(layer.empty() ? 0 : std::stoul(layer)) % value.size()];
    }

    ParameterRows rows_of(const Parameter& p, const NameParts& name, const HuggingFaceTensor& row,
                          int part) const {
        ParameterRows r;
        const bool matrix = p.shape.rank > 1;
        r.rows = p.shape.dim[0], r.columns = matrix ? p.shape.dim[1] : 1;
        r.transpose = row.transpose && matrix;
        if (name.suffix != ".bias") r.transform = row.transform;
        for (std::size_t i = 0; i < row.holds.size(); i++) {
            auto held = parameters_.find(with_layer(row.holds[i], name.layer) + name.suffix);
            const std::int64_t rows = held == parameters_.end() ? 0 : held->second->shape.dim[0];
            if (i < static_cast<std::size_t>(part)) r.first += rows;
            r.all += rows;
        }
        const std::int64_t parts = number(row.parts, name.layer), matrices = number(row.matrices, name.layer);
        r.groups = std::max(number(row.groups, name.layer), matrices);
        r.stacks = number(row.stacks, name.layer);
        if (const std::string& heads = row.permute[static_cast<std::size_t>(part)]; !heads.empty())
            r.head = r.rows / number(heads, name.layer);
        std::string tensor = with_layer(row.tensor, name.layer) + (row.whole ? "" : name.suffix);
        if (!prefixed_ && !family_.prefix.empty() && tensor.starts_with(family_.prefix))
            tensor.erase(0, family_.prefix.size());
        for (std::int64_t i = 0; i < parts; i++) r.tensors.push_back(with_part(tensor, i));
        if (!row.matrices.empty()) {
            r.shape.rank = 3, r.shape.dim = {matrices, r.all / matrices, r.columns, 1};
        } else if (row.channels && p.parts > 0) {
            r.shape.rank = 3, r.shape.dim = {r.all / p.parts, 1, p.parts, 1};
        } else if (!matrix) {
            r.shape = p.parts > 0 && row.parts.empty() && !row.flat ? p.stored() : Shape(r.all / parts);
        } else {
            r.shape =
                r.transpose ? Shape(r.stacks * r.columns, r.all / r.stacks) : Shape(r.all / parts, r.columns);
        }
        return r;
    }

    const HuggingFaceFamily& family_;
    nlohmann::json fields_;
    bool prefixed_;
    std::unordered_map<std::string, const Parameter*> parameters_;
};

/// "model.layers.3.mlp.experts.12.w1" -> "model.layers.{layer}.mlp.experts.{part}.w1"
std::string pattern_of(const std::string& name) {
    std::string out;
    int numbers = 0;
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        const std::string piece = name.substr(begin, end - begin);
        const bool number = !piece.empty() && piece.find_first_not_of("0123456789") == piece.npos;
        out += number && numbers < 2 ? std::string(numbers == 0 ? "{layer}" : part_mark) : piece;
        numbers += number;
        if (end < name.size()) out += '.';
        begin = end + 1;
    }
    return out;
}

}  // namespace

ParameterRows::Place ParameterRows::at(std::int64_t row) const {
    std::int64_t i = row;
    if (head > 0) {
        const std::int64_t k = row % head;
        i = row - k + k % 2 * (head / 2) + k / 2;
    }
    if (tensors.size() > 1) {
        const std::int64_t each = rows / static_cast<std::int64_t>(tensors.size());
        return {static_cast<std::size_t>(i / each), i % each};
    }
    if (groups > 1) {
        const std::int64_t share = rows / groups;
        return {0, i / share * (all / groups) + first / groups + i % share};
    }
    return {0, first + i};
}

std::pair<std::int64_t, std::int64_t> ParameterRows::near(std::size_t tensor) const {
    if (tensors.size() < 2) return {0, rows};
    const std::int64_t each = rows / static_cast<std::int64_t>(tensors.size()),
                       first = static_cast<std::int64_t>(tensor) * each,
                       unit = std::max<std::int64_t>(head, 1);  // rows change places within a head
    return {first / unit * unit, std::min((first + each + unit - 1) / unit * unit, rows)};
}

std::vector<ParameterRows> parameter_rows(const HuggingFaceFamily& family, const ModelConfig& config,
                                          const Graph& graph, bool prefixed) {
    const Places places(family, config, graph, prefixed);
    std::vector<ParameterRows> rows;
    for (const Parameter& p : graph.parameters()) rows.push_back(places.of(p));
    return rows;
}

bool is_spare(const HuggingFaceFamily& family, const std::string& tensor, bool prefixed) {
    const std::string name = pattern_of(prefixed ? tensor : family.prefix + tensor);
    if (family.ignored.contains(name) || family.ignored.contains(pattern_of(tensor))) return true;
    for (const HuggingFaceTensor& row : family.tensors)
        for (const char* suffix : {".weight", ".bias"})
            if (row.spare && row.tensor + suffix == tensor) return true;
    return false;
}

void undo_transform(ValueTransform transform, std::span<float> values) {
    for (float& x : values)
        if (transform == ValueTransform::less_one)
            x += 1;
        else if (transform == ValueTransform::log)
            x = static_cast<float>(-std::exp(static_cast<double>(x)));
}

void apply_transform(ValueTransform transform, std::span<float> values) {
    for (float& x : values)
        if (transform == ValueTransform::less_one)
            x -= 1;
        else if (transform == ValueTransform::log)
            x = static_cast<float>(std::log(-static_cast<double>(x)));
}

std::int64_t first_not_finite(std::span<const float> values) {
    return std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); }) - values.begin();
}

std::int64_t convert_elements(std::int64_t count, DType from, const void* source, DType to, void* target,
                              ValueTransform transform) {
    constexpr std::int64_t some = 4096;
    alignas(64) float values[some];
    alignas(64) std::byte aligned[some * sizeof(double)];
    const KernelTable<float>& k = kernels();
    const std::int64_t size = info(from).bytes;
    for (std::int64_t i = 0; i < count; i += some) {
        const std::int64_t n = std::min(some, count - i);
        std::memcpy(aligned, static_cast<const std::byte*>(source) + i * size,
                    static_cast<std::size_t>(n * size));
        std::int64_t lost = n;
        if (from == DType::f64)
            lost = narrow(n, reinterpret_cast<const double*>(aligned), values);
        else
            k.load(n, from, aligned, values);
        const std::span<float> all(values, static_cast<std::size_t>(n));
        undo_transform(transform, all);
        if (transform != ValueTransform::same) lost = std::min(lost, first_not_finite(all));
        lost = std::min(lost,
                        store_narrowed(n, to, values, static_cast<std::byte*>(target) + i * info(to).bytes));
        if (lost < n) return i + lost;
    }
    return count;
}

namespace {

/// In squares that stay in the cache: of one of the two, each element is in another row.
template <class T>
void transpose_as(std::int64_t rows, std::int64_t columns, const std::byte* in, std::int64_t in_row,
                  std::byte* out, std::int64_t out_row) {
    constexpr std::int64_t side = 32;
    for (std::int64_t r0 = 0; r0 < rows; r0 += side)
        for (std::int64_t c0 = 0; c0 < columns; c0 += side)
            for (std::int64_t c = c0; c < std::min(columns, c0 + side); c++)
                for (std::int64_t r = r0; r < std::min(rows, r0 + side); r++)  // of any address
                    std::memcpy(out + static_cast<std::size_t>(c * out_row + r) * sizeof(T),
                                in + static_cast<std::size_t>(r * in_row + c) * sizeof(T), sizeof(T));
}

}  // namespace

void transpose(std::int64_t rows, std::int64_t columns, std::size_t size, const std::byte* in,
               std::int64_t in_row, std::byte* out, std::int64_t out_row) {
    switch (size) {
        case 2:
            return transpose_as<std::uint16_t>(rows, columns, in, in_row, out, out_row);
        case 4:
            return transpose_as<std::uint32_t>(rows, columns, in, in_row, out, out_row);
        case 8:
            return transpose_as<std::uint64_t>(rows, columns, in, in_row, out, out_row);
        default:
            throw std::logic_error("transpose: no element has " + std::to_string(size) + " bytes");
    }
}

ParameterReader::ParameterReader(const Safetensors& file, ParameterRows rows)
    : file_(file), rows_(std::move(rows)) {
    for (const std::string& name : rows_.tensors) {
        const SafetensorsTensor* t = file.tensor(name);
        if (!t) fail_input(file.path(), name, "a tensor", "none");
        const std::optional<DType> type = t->type->type;
        if (!type || (!info(*type).is_weight && type != DType::f64))
            fail_input(file.path_of(*t), name, "F32, F16, BF16 or F64", std::string(t->type->name));
        if (t->rank != rows_.shape.rank || t->shape != rows_.shape)
            fail_input(file.path_of(*t), name, "shape " + shape_text(rows_.shape), text(*t));
        if (!tensors_.empty() && t->type != tensors_[0]->type)
            fail_input(file.path_of(*t), name,
                       std::string(tensors_[0]->type->name) + ", as the parts before it",
                       std::string(t->type->name));
        type_ = *type;
        tensors_.push_back(t);
    }
}

std::span<const std::byte> ParameterReader::in_place(DType type) const {
    if (tensors_.size() != 1 || !rows_.in_order() || !rows_.as_is() || type != type_) return {};
    const std::int64_t row = rows_.columns * info(type_).bytes;
    const std::span<const std::byte> bytes = tensors_[0]->bytes.subspan(
        static_cast<std::size_t>(rows_.first * row), static_cast<std::size_t>(rows_.rows * row));
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(bytes.data()) % static_cast<std::uintptr_t>(info(type_).bytes) == 0;
    return aligned ? bytes : std::span<const std::byte>();
}

/// A window as the file stores it.
void ParameterReader::gather(const Window& w, std::byte* out) const {
    const auto size = static_cast<std::size_t>(info(type_).bytes);
    const std::size_t row = static_cast<std::size_t>(w.columns) * size;
    const std::int64_t each = rows_.all / rows_.stacks;  // rows of a matrix that is transposed
    for (std::int64_t r = w.begin; r < w.end;) {
        const ParameterRows::Place place = rows_.at(r);
        std::int64_t n = 1;  // rows that follow one another there, too
        for (; r + n < w.end; n++) {
            const ParameterRows::Place next = rows_.at(r + n);
            if (next.tensor != place.tensor || next.row != place.row + n) break;
            if (rows_.transpose && next.row % each == 0) break;
        }
        const std::byte* from = tensors_[place.tensor]->bytes.data();
        std::byte* to = out + static_cast<std::size_t>(r - w.begin) * row;
        auto at = [&](std::int64_t element) { return from + static_cast<std::size_t>(element) * size; };
        if (rows_.transpose)
            transpose(w.columns, n, size,
                      at((place.row / each * rows_.columns + w.column) * each + place.row % each), each, to,
                      w.columns);
        else if (w.columns == rows_.columns)
            std::memcpy(to, at(place.row * rows_.columns), static_cast<std::size_t>(n) * row);
        else
            for (std::int64_t i = 0; i < n; i++)
                std::memcpy(to + static_cast<std::size_t>(i) * row,
                            at((place.row + i) * rows_.columns + w.column), row);
        r += n;
    }
}

/// Of a window's element that `type` cannot hold, by its place in the file.
void ParameterReader::refuse(const Window& w, std::int64_t element, DType type) const {
    const ParameterRows::Place place = rows_.at(w.begin + element / w.columns);
    const std::int64_t each = rows_.all / rows_.stacks, column = w.column + element % w.columns;
    const SafetensorsTensor& t = *tensors_[place.tensor];
    refuse_narrowed(file_.path_of(t), t.name,
                    rows_.transpose ? place.row / each * rows_.columns + column : place.row, type);
}

void ParameterReader::read(const Window& w, DType type, std::byte* out) const {
    if (type == type_ && rows_.as_is()) return gather(w, out);
    const std::int64_t count = (w.end - w.begin) * w.columns;
    std::vector<std::byte> stored(static_cast<std::size_t>(count * info(type_).bytes));
    gather(w, stored.data());
    const std::int64_t lost = convert_elements(count, type_, stored.data(), type, out, rows_.transform);
    if (lost < count) refuse(w, lost, type);
}

}  // namespace linnet
