// Writing safetensors: the header from the tensors' sizes, their bytes streamed behind it.
#include <stdexcept>
#include <utility>

#include "base/checked.h"
#include "formats/json_append.h"
#include "formats/parts.h"
#include "formats/safetensors.h"

namespace linnet {
namespace {

using nlohmann::ordered_json;

const SafetensorsType* type_of(DType type) {
    for (const SafetensorsType& row : safetensors_types())
        if (row.type == type) return &row;
    return nullptr;
}

}  // namespace

void SafetensorsWriter::add_tensor(std::string name, DType type, Shape shape,
                                   std::function<void(const Sink&)> emit) {
    const SafetensorsType* known = type_of(type);
    if (!known) throw std::logic_error("SafetensorsWriter: tensor " + name + " has no place in the format");
    if (!names_.insert(name).second)
        throw std::logic_error("SafetensorsWriter: tensor " + name + " given twice");
    const auto bytes = static_cast<std::uint64_t>(shape.count() * known->bits / 8);
    tensors_.push_back({std::move(name), type, shape, bytes, std::move(emit)});
}

void SafetensorsWriter::write_file(const std::string& path, std::span<const Entry> entries,
                                   Existing existing) const {
    ordered_json header = {{"__metadata__", {{"format", "pt"}}}};  // transformers refuses files without it
    std::uint64_t at = 0;
    for (const Entry& entry : entries) {
        ordered_json shape = ordered_json::array();
        for (int i = 0; i < entry.shape.rank; i++)
            shape.push_back(entry.shape.dim[static_cast<std::size_t>(i)]);
        append(header, entry.name,
               {{"dtype", type_of(entry.type)->name},
                {"shape", shape},
                {"data_offsets", {at, at + entry.bytes}}});
        at += entry.bytes;
    }
    std::string text = header.dump();
    text.resize(checked_round_up(text.size(), std::size_t{8}).value(), ' ');
    AtomicFile file(path, existing);
    const std::uint64_t size = text.size();
    file.write(&size, sizeof size);
    file.write(text);
    for (const Entry& entry : entries) {
        std::uint64_t given = 0;
        entry.emit([&](const void* data, std::size_t bytes) {
            given += bytes;
            if (given <= entry.bytes) file.write(data, bytes);
        });
        if (given != entry.bytes)
            throw std::logic_error("SafetensorsWriter: tensor " + entry.name + " gave other bytes");
    }
    file.commit();
}

void SafetensorsWriter::write(const std::string& folder, const std::string& name, std::uint64_t max_part,
                              Existing existing) const {
    std::vector<std::span<const Entry>> parts;
    std::uint64_t all = 0, filled = 0;
    const std::span<const Entry> entries = tensors_;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < entries.size(); i++) {
        if (max_part > 0 && i > begin && filled + entries[i].bytes > max_part) {
            parts.push_back(entries.subspan(begin, i - begin));
            begin = i, filled = 0;
        }
        filled += entries[i].bytes, all += entries[i].bytes;
    }
    parts.push_back(entries.subspan(begin));
    const std::string stem = folder + "/" + name;
    if (parts.size() == 1) return write_file(stem + ".safetensors", entries, existing);
    ordered_json places = ordered_json::object();
    for (std::size_t p = 0; p < parts.size(); p++) {
        const std::string ending = part_ending(p, parts.size(), ".safetensors");
        write_file(stem + ending, parts[p], existing);
        for (const Entry& entry : parts[p]) append(places, entry.name, name + ending);
    }
    linnet::write_file(
        stem + ".safetensors.index.json",
        ordered_json{{"metadata", {{"total_size", all}}}, {"weight_map", places}}.dump(2) + "\n", existing);
}

}  // namespace linnet
