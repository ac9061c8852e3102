// Reading safetensors: nothing of the file is believed before it is checked against the bytes that are there.
#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/json_reader.h"
#include "formats/safetensors.h"

namespace linnet {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are read on little-endian machines only");

constexpr std::uint64_t largest_header = 100'000'000;  // the format's own limit
constexpr std::size_t most_tensors = std::size_t{1} << 18;
constexpr std::size_t most_name_bytes = std::size_t{1} << 23;  // of a header's names together
constexpr std::size_t largest_index = 100'000'000;
constexpr std::size_t most_parts = 4096;
constexpr int most_dimensions = 32;
constexpr std::string_view length = "header length", header_text = "header";

constexpr SafetensorsType types[] = {
    {"BOOL", 8, std::nullopt},    {"U8", 8, std::nullopt},      {"I8", 8, DType::i8},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E4M3", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
    {"F4", 4, std::nullopt},      {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"I16", 16, DType::i16},      {"U16", 16, std::nullopt},    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},    {"I32", 32, DType::i32},      {"U32", 32, std::nullopt},
    {"F32", 32, DType::f32},      {"C64", 64, std::nullopt},    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},      {"U64", 64, std::nullopt},
};

/// Where a tensor's bytes are said to lie in the data.
struct Offsets {
    std::uint64_t begin = 0, end = 0;
};

/// A tensor of the header, before its place is checked.
struct Raw {
    SafetensorsTensor tensor;
    Offsets at;
};

/// Adds a header's tensors to those of the parts before.
class HeaderReader {
  public:
    HeaderReader(std::string_view text, const std::string& path, std::vector<SafetensorsTensor>& tensors)
        : text_(text), json_(text, path, std::string(header_text)), path_(path), tensors_(tensors) {}

    std::vector<Offsets> read() {
        constexpr std::string_view white = "\t\n\r ";
        if (!text_.empty() && white.find(text_[0]) != white.npos)
            json_.refuse("'{' as its first byte", "white space");
        bool metadata = false;
        json_.object([&](std::string_view name) {
            if (name != "__metadata__") return tensor(name);
            if (std::exchange(metadata, true)) json_.refuse("'__metadata__' once", "it twice");
            json_.object([&](std::string_view) { json_.string(); });
        });
        json_.end();
        if (text_.find_last_not_of(' ') != text_.rfind('}'))
            json_.refuse("nothing but spaces behind it", "other white space");
        return std::move(offsets_);
    }

  private:
    [[noreturn]] void refuse(const Raw& raw, std::string_view expected, std::string_view got) const {
        fail_input(path_, "tensor " + quoted(raw.tensor.name), expected, got);
    }

    void tensor(std::string_view name) {
        if (offsets_.size() == most_tensors)
            json_.refuse("at most " + std::to_string(most_tensors) + " tensors", "more");
        if (name.empty()) json_.refuse("a tensor's name", "an empty one");
        if ((name_bytes_ += name.size()) > most_name_bytes)
            json_.refuse("names of at most " + std::to_string(most_name_bytes) + " bytes together", "more");
        Raw raw;
        raw.tensor.name = name;
        raw.tensor.type = nullptr;
        bool shape = false, offsets = false;
        auto once = [&](bool& seen, std::string_view key) {
            if (std::exchange(seen, true)) refuse(raw, quoted(key) + " once", "it twice");
        };
        json_.object([&](std::string_view key) {
            if (key == "dtype") {
                bool seen = raw.tensor.type != nullptr;
                once(seen, key);
                raw.tensor.type = type(raw);
            } else if (key == "shape") {
                once(shape, key);
                read_shape(raw);
            } else if (key == "data_offsets") {
                once(offsets, key);
                read_offsets(raw);
            } else {
                refuse(raw, "dtype, shape and data_offsets", quoted(key));
            }
        });
        if (!raw.tensor.type || !shape || !offsets)
            refuse(raw, "dtype, shape and data_offsets", "not all of them");
        check_size(raw);
        offsets_.push_back(raw.at);
        tensors_.push_back(std::move(raw.tensor));
    }

    const SafetensorsType* type(const Raw& raw) {
        const std::string_view name = json_.string();
        for (const SafetensorsType& row : types)
            if (row.name == name) return &row;
        refuse(raw, "a dtype of the format", quoted(name));
    }

    void read_shape(Raw& raw) {
        Shape& shape = raw.tensor.shape;
        shape = {};
        int rank = 0;
        std::int64_t count = 1;
        json_.array([&] {
            const std::uint64_t dim = json_.whole_number();
            if (rank == most_dimensions)
                refuse(raw, std::to_string(most_dimensions) + " dimensions at most", "more");
            auto product =
                dim > INT64_MAX ? std::nullopt : checked_mul(count, static_cast<std::int64_t>(dim));
            if (!product) refuse(raw, "fewer than 2^63 elements", "more");
            count = *product;
            if (rank < 4) shape.dim[static_cast<std::size_t>(rank)] = static_cast<std::int64_t>(dim);
            rank++;
        });
        raw.tensor.rank = rank;
        shape.rank = std::min(rank, 4);
        // Of more dimensions the last of the four stands for the rest.
        if (rank > 4) {
            const std::int64_t first = shape.dim[0] * shape.dim[1] * shape.dim[2];
            shape.dim[3] = first == 0 ? 0 : count / first;
        }
    }

    void read_offsets(Raw& raw) {
        int i = 0;
        json_.array([&] {
            const std::uint64_t value = json_.whole_number();
            if (i++ < 2) (i == 1 ? raw.at.begin : raw.at.end) = value;
        });
        if (i != 2) refuse(raw, "two data_offsets", std::to_string(i));
        if (raw.at.end < raw.at.begin)
            refuse(raw, "an end at or behind " + std::to_string(raw.at.begin), std::to_string(raw.at.end));
    }

    void check_size(const Raw& raw) const {
        auto bits = checked_mul(raw.tensor.shape.count(), static_cast<std::int64_t>(raw.tensor.type->bits));
        if (!bits || *bits % 8 != 0) refuse(raw, "a whole number of bytes below 2^60", "another size");
        const auto size = static_cast<std::uint64_t>(*bits / 8);
        if (raw.at.end - raw.at.begin != size)
            refuse(raw, std::to_string(size) + " bytes, as shape and dtype say",
                   std::to_string(raw.at.end - raw.at.begin));
    }

    std::string_view text_;
    JsonReader json_;
    const std::string& path_;
    std::vector<SafetensorsTensor>& tensors_;
    std::vector<Offsets> offsets_;
    std::size_t name_bytes_ = 0;
};

/// The header's text.
std::string_view header_of(const MappedFile& file) {
    const std::string_view all = file.text();
    if (all.size() < 8)
        fail_input(file.path(), length, "8 bytes", std::to_string(all.size()), "not a safetensors file");
    std::uint64_t size;
    std::memcpy(&size, all.data(), sizeof size);
    if (size > largest_header)
        fail_input(file.path(), length, "at most " + std::to_string(largest_header) + " bytes",
                   std::to_string(size), "not a safetensors file");
    if (size > all.size() - 8)
        fail_input(file.path(), length,
                   "at most the " + std::to_string(all.size() - 8) + " bytes that follow",
                   std::to_string(size), "is the file truncated?");
    return all.substr(8, size);
}

/// Gives each tensor its bytes: in order of offsets they cover the data.
void place(std::span<SafetensorsTensor> tensors, std::span<const Offsets> offsets,
           std::span<const std::byte> data, const std::string& path) {
    std::vector<std::uint32_t> order(offsets.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {},
                      [&](std::uint32_t i) { return std::pair(offsets[i].begin, offsets[i].end); });
    std::uint64_t at = 0;
    for (std::uint32_t i : order) {
        const Offsets& r = offsets[i];
        const std::string where = "tensor " + quoted(std::string_view(tensors[i].name));
        if (r.begin != at)
            fail_input(path, where, "data from byte " + std::to_string(at) + " on, where those before end",
                       std::to_string(r.begin), r.begin < at ? "tensors overlap" : "a hole in the data");
        if (r.end > data.size())
            fail_input(path, where, "data within " + std::to_string(data.size()) + " bytes",
                       "their end at " + std::to_string(r.end), "is the file truncated?");
        tensors[i].bytes = data.subspan(r.begin, r.end - r.begin);
        at = r.end;
    }
    if (at != data.size())
        fail_input(path, "", std::to_string(at) + " bytes of data", std::to_string(data.size()),
                   "bytes follow the last tensor");
}

/// What an index says: tensor to file. A std::map, as no choice of names makes it slower than n log n.
std::map<std::string, std::string, std::less<>> read_index(const MappedFile& file) {
    if (file.text().size() > largest_index)
        fail_input(file.path(), "", "an index of at most " + std::to_string(largest_index) + " bytes",
                   std::to_string(file.text().size()));
    std::map<std::string, std::string, std::less<>> places;
    JsonReader json(file.text(), file.path(), "index");
    bool there = false;
    std::size_t bytes = 0;  // of all names
    json.object([&](std::string_view key) {
        if (key != "weight_map") return json.skip();
        if (std::exchange(there, true)) json.refuse("'weight_map' once", "it twice");
        json.object([&](std::string_view tensor) {
            if (places.size() == most_tensors)
                json.refuse("at most " + std::to_string(most_tensors) + " tensors", "more");
            const std::string name(tensor), part(json.string(JsonReader::longest_key));
            if ((bytes += name.size() + part.size()) > 2 * most_name_bytes)
                json.refuse("names of at most " + std::to_string(2 * most_name_bytes) + " bytes together",
                            "more");
            if (!places.emplace(name, part).second)
                fail_input(file.path(), "tensor " + quoted(name), "it in one file alone", "it twice");
        });
    });
    json.end();
    if (!there) fail_input(file.path(), "weight_map", "an object", "none");
    if (places.empty()) fail_input(file.path(), "weight_map", "tensors", "none");
    return places;
}

/// A part's name must be that of a file in the index's folder.
void check_part_name(const std::string& index, const std::string& name) {
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != name.npos)
        fail_input(index, "weight_map", "names of files in the index's folder", quoted(name));
}

}  // namespace

std::span<const SafetensorsType> safetensors_types() {
    return types;
}

void Safetensors::read(MappedFile file) {
    const std::string_view header = header_of(file);
    const std::size_t before = tensors_.size();
    const std::vector<Offsets> offsets = HeaderReader(header, file.path(), tensors_).read();
    const std::span<SafetensorsTensor> own = std::span(tensors_).subspan(before);
    place(own, offsets, file.bytes().subspan(8 + header.size()), file.path());
    for (SafetensorsTensor& t : own) t.part = static_cast<std::uint32_t>(files_.size());
    files_.push_back(std::move(file));
}

/// Twins are refused.
void Safetensors::sort_names() {
    order_.resize(tensors_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, {}, [&](std::uint32_t i) { return std::string_view(tensors_[i].name); });
    for (std::size_t i = 1; i < order_.size(); i++) {
        const SafetensorsTensor &one = tensors_[order_[i - 1]], &twin = tensors_[order_[i]];
        if (one.name == twin.name)
            fail_input(path_of(twin), "tensor " + quoted(twin.name), "it once",
                       one.part == twin.part ? "it twice" : "it in " + path_of(one) + " too");
    }
}

Safetensors::Safetensors(MappedFile file) : path_(file.path()) {
    read(std::move(file));
    sort_names();
}

Safetensors Safetensors::open(const std::string& path) {
    if (!path.ends_with(".json")) return Safetensors(MappedFile(path));
    const auto places = read_index(MappedFile(path));
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    Safetensors all;
    all.path_ = path;
    std::map<std::string_view, std::uint32_t> parts;  // by name, in the order of names
    for (const auto& [tensor, file] : places) parts.emplace(file, 0);
    if (parts.size() > most_parts)
        fail_input(path, "weight_map", "at most " + std::to_string(most_parts) + " files",
                   std::to_string(parts.size()));
    for (const auto& [name, number] : parts) check_part_name(path, std::string(name));
    for (auto& [name, number] : parts) {
        const std::string part = folder + std::string(name);
        std::error_code ignored;
        if (!std::filesystem::exists(part, ignored))
            fail_input(part, "", "a part that " + path + " names", "no such file");
        number = static_cast<std::uint32_t>(all.files_.size());
        all.read(MappedFile(part));
    }
    all.sort_names();
    for (const auto& [tensor, file] : places) {
        const SafetensorsTensor* found = all.tensor(tensor);
        if (!found || found->part != parts.at(file))
            fail_input(path, "tensor " + quoted(tensor), "it in " + file,
                       found ? "it in " + all.path_of(*found) : "it in no part");
    }
    for (const SafetensorsTensor& t : all.tensors_)
        if (!places.contains(t.name))
            fail_input(all.path_of(t), "tensor " + quoted(t.name), "a tensor that " + path + " names",
                       "another");
    return all;
}

std::size_t Safetensors::rename(std::span<const std::pair<std::string, std::string>> pairs, bool only) {
    if (pairs.empty()) return 0;
    const auto unfit = [&](SafetensorsTensor& t) {
        for (const auto& [before, now] : pairs)
            if (t.name.starts_with(before)) {
                t.name.replace(0, before.size(), now);
                return false;
            }
        return only;
    };
    const std::size_t others = std::erase_if(tensors_, unfit);
    sort_names();
    return others;
}

const SafetensorsTensor* Safetensors::tensor(std::string_view name) const {
    auto at = std::ranges::lower_bound(order_, name, {},
                                       [&](std::uint32_t i) { return std::string_view(tensors_[i].name); });
    return at == order_.end() || tensors_[*at].name != name ? nullptr : &tensors_[*at];
}

}  // namespace linnet
