#include "model/convert/raw_model.h"

#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "model/architectures.h"
#include "model/convert/tensor_rows.h"
#include "model/narrow.h"
#include "model/weights.h"

namespace linnet {
namespace {

struct Raw {
    std::shared_ptr<const MappedFile> file;
    Graph graph;
    std::vector<RawPlace> places;  // by parameter

    void read(std::size_t parameter, std::int64_t first, std::int64_t count, DType to, std::byte* out) const {
        const RawPlace& place = places[parameter];
        const Parameter& p = graph.parameters()[parameter];
        const std::byte* from = file->bytes().data() + place.begin;
        std::int64_t lost = count;
        if (place.group == 0) {
            lost = convert_elements(count, place.type, from + first * info(place.type).bytes, to, out);
        } else {
            const std::byte* scales = from + p.shape.count();
            std::vector<double> values(static_cast<std::size_t>(count));  // exact: no product is beyond them
            for (std::int64_t i = 0; i < count; i++) {
                float scale;
                std::memcpy(&scale, scales + (first + i) / place.group * 4, sizeof scale);
                values[static_cast<std::size_t>(i)] =
                    static_cast<double>(scale) *
                    static_cast<std::int8_t>(std::to_integer<int>(from[first + i]));
            }
            lost = convert_elements(count, DType::f64, values.data(), to, out);
        }
        const std::int64_t columns = p.shape.rank > 1 ? p.shape.dim[1] : 1;
        if (lost < count) refuse_narrowed(file->path(), p.name, (first + lost) / columns, to);
    }

    MadeRows made_rows(std::size_t parameter, DType type) const {
        const Shape& shape = graph.parameters()[parameter].shape;
        const std::int64_t columns = shape.rank > 1 ? shape.dim[1] : 1;
        return {shape.dim[0], columns, [this, parameter, columns, type](const Window& w, std::byte* out) {
                    if (w.columns == columns)
                        return read(parameter, w.begin * columns, (w.end - w.begin) * columns, type, out);
                    for (std::int64_t row = w.begin; row < w.end; row++, out += w.columns * info(type).bytes)
                        read(parameter, row * columns + w.column, w.columns, type, out);
                }};
    }
};

}  // namespace

std::uint64_t RawPlace::bytes(std::int64_t elements) const {
    return static_cast<std::uint64_t>(group == 0 ? elements * info(type).bytes
                                                 : elements + elements / group * 4);
}

std::vector<std::size_t> raw_order(const Graph& graph, std::span<const RawGroup> groups,
                                   std::int64_t layers) {
    std::unordered_map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < graph.parameters().size(); i++) index[graph.parameters()[i].name] = i;
    std::vector<std::size_t> order;
    for (const RawGroup& group : groups) {
        const bool each = group[0].find("{layer}") != group[0].npos;
        for (std::int64_t layer = 0; layer < (each ? layers : 1); layer++)
            for (std::string_view name : group)
                if (auto found = index.find(with_layer(std::string(name), std::to_string(layer)));
                    found != index.end())
                    order.push_back(found->second);
    }
    return order;
}

void add_raw_tensors(ModelSource& source, std::shared_ptr<const MappedFile> file, const ModelConfig& config,
                     const Graph& graph, std::span<const RawPlace> places, const OpenOptions& options) {
    auto raw = std::make_shared<Raw>(Raw{std::move(file), graph, {}});
    raw->places.resize(graph.parameters().size());
    for (const RawPlace& place : places) raw->places[place.parameter] = place;
    const Architecture& a = architecture_of(config);
    for (const StoredTensor& stored : stored_tensors(raw->graph, a, nullptr)) {
        const Parameter& first = graph.parameters()[stored.parts[0]];
        const RawPlace& place = raw->places[stored.parts[0]];
        SourceTensor t{stored.name,
                       gguf_type(first, place.group ? DType::f32 : place.type, options),
                       stored.shape,
                       {},
                       {},
                       "byte " + std::to_string(place.begin),
                       {}};
        for (std::size_t part : stored.parts) t.made.push_back(raw->made_rows(part, t.type));
        const bool aligned = place.begin % static_cast<std::uint64_t>(info(place.type).bytes) == 0;
        if (stored.parts.size() == 1 && place.group == 0 && t.type == place.type && aligned)
            t.in_place = raw->file->bytes().subspan(place.begin, place.bytes(stored.shape.count()));
        source.tensors.push_back(std::move(t));
    }
    source.keep = raw;
}

void add_tokenizer(ModelSource& source, const OpenOptions& options, std::int64_t tokens,
                   const std::string& path) {
    const TokenizerPtr tokenizer = tokenizer_at(options.tokenizer);
    if (tokenizer->size() != tokens)
        fail_input(options.tokenizer, "", std::to_string(tokens) + " tokens, as many as " + path + " has",
                   std::to_string(tokenizer->size()));
    tokenizer->write(source.metadata);
}

void require_matrices(const MappedFile& file, const ModelConfig& config, std::uint64_t bytes) {
    // Below 2^62: headers have at most 2^24 in a field, and most_layers.
    const auto rows = static_cast<std::uint64_t>(config.vocabulary + config.layers * config.width);
    const std::uint64_t least = rows * static_cast<std::uint64_t>(config.width) * bytes;
    if (file.bytes().size() < least)
        fail_input(file.path(), "", "at least " + std::to_string(least) + " bytes, as the header says",
                   std::to_string(file.bytes().size()), "is the file truncated?");
}

void check_sizes(const MappedFile& file, std::span<const std::int32_t> sizes,
                 std::span<const char* const> names, const std::string& program) {
    for (std::size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] < 1 || sizes[i] > 1 << 24)
            fail_input(file.path(), names[i], "1 to 2^24", std::to_string(sizes[i]),
                       "is it a checkpoint of " + program + "?");
        if (names[i] == std::string_view("layers") && sizes[i] > most_layers)
            fail_input(file.path(), names[i], "at most " + std::to_string(most_layers),
                       std::to_string(sizes[i]));
    }
}

std::int32_t raw_integer(const MappedFile& file, std::size_t i) {
    std::int32_t value;
    if (file.bytes().size() < (i + 1) * sizeof value)
        fail_input(file.path(), "header", std::to_string((i + 1) * sizeof value) + " bytes",
                   std::to_string(file.bytes().size()), "is the file truncated?");
    std::memcpy(&value, file.bytes().data() + i * sizeof value, sizeof value);
    return value;
}

}  // namespace linnet
