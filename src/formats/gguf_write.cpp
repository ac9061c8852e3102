// Writing GGUF: the header is built in memory, tensors stream through behind it.
#include <bit>
#include <stdexcept>

#include "base/checked.h"
#include "base/file.h"
#include "base/sha256.h"
#include "formats/gguf.h"

namespace linnet {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is written on little-endian machines only");

constexpr std::uint64_t alignment = 32;  // the specification's default, so that no key needs to say it

template <class T>
void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& out, std::string_view text) {
    append(out, std::uint64_t{text.size()});
    out += text;
}

std::uint64_t bytes_of(DType type, const Shape& shape) {
    return static_cast<std::uint64_t>(stored_bytes(type, shape.count()));
}

std::uint64_t padded(std::uint64_t size) {
    return checked_round_up(size, alignment).value();
}

}  // namespace

void GgufWriter::begin(const std::string& key, GgufKind kind) {
    if (!keys_.insert(key).second) throw std::logic_error("GgufWriter: key " + key + " given twice");
    append(metadata_, std::string_view(key));
    append(metadata_, static_cast<std::uint32_t>(kind));
}

void GgufWriter::begin_array(const std::string& key, GgufKind kind, std::uint64_t count) {
    begin(key, GgufKind::array);
    append(metadata_, static_cast<std::uint32_t>(kind));
    append(metadata_, count);
}

void GgufWriter::add(const std::string& key, std::uint32_t value) {
    begin(key, GgufKind::u32);
    append(metadata_, value);
}

void GgufWriter::add(const std::string& key, std::int32_t value) {
    begin(key, GgufKind::i32);
    append(metadata_, value);
}

void GgufWriter::add(const std::string& key, std::uint64_t value) {
    begin(key, GgufKind::u64);
    append(metadata_, value);
}

void GgufWriter::add(const std::string& key, float value) {
    begin(key, GgufKind::f32);
    append(metadata_, value);
}

void GgufWriter::add(const std::string& key, bool value) {
    begin(key, GgufKind::boolean);
    append(metadata_, std::uint8_t{value});
}

void GgufWriter::add(const std::string& key, std::string_view value) {
    begin(key, GgufKind::string);
    append(metadata_, value);
}

void GgufWriter::add(const std::string& key, std::size_t count,
                     const std::function<std::string_view(std::size_t)>& at) {
    begin_array(key, GgufKind::string, count);
    for (std::size_t i = 0; i < count; i++) append(metadata_, at(i));
}

void GgufWriter::add(const std::string& key, std::span<const std::int32_t> values) {
    begin_array(key, GgufKind::i32, values.size());
    metadata_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void GgufWriter::add(const std::string& key, std::span<const float> values) {
    begin_array(key, GgufKind::f32, values.size());
    metadata_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void GgufWriter::add(const std::string& key, const std::vector<bool>& values) {
    begin_array(key, GgufKind::boolean, values.size());
    for (bool value : values) append(metadata_, std::uint8_t{value});
}

void GgufWriter::add_stored(const std::string& key, std::span<const std::byte> kind_and_value) {
    if (!keys_.insert(key).second) throw std::logic_error("GgufWriter: key " + key + " given twice");
    append(metadata_, std::string_view(key));
    metadata_.append(reinterpret_cast<const char*>(kind_and_value.data()), kind_and_value.size());
}

void GgufWriter::add_tensor(std::string name, DType type, Shape shape,
                            std::function<void(const Sink&)> emit) {
    if (!names_.insert(name).second) throw std::logic_error("GgufWriter: tensor " + name + " given twice");
    if (info(type).gguf_id < 0 || shape.rank < 1 || shape.dim[shape.rank - 1] % info(type).block != 0)
        throw std::logic_error("GgufWriter: tensor " + name + " has no place in GGUF");
    tensors_.push_back({std::move(name), type, shape, std::move(emit)});
}

std::string GgufWriter::header() const {
    std::string header = "GGUF";
    append(header, std::uint32_t{3});
    append(header, std::uint64_t{tensors_.size()});
    append(header, std::uint64_t{keys_.size()});
    header += metadata_;
    std::uint64_t offset = 0;
    for (const Entry& entry : tensors_) {
        append(header, std::string_view(entry.name));
        append(header, static_cast<std::uint32_t>(entry.shape.rank));
        for (int i = entry.shape.rank - 1; i >= 0; i--)  // innermost first
            append(header, static_cast<std::uint64_t>(entry.shape.dim[i]));
        append(header, static_cast<std::uint32_t>(info(entry.type).gguf_id));
        append(header, offset);
        offset = padded(offset + bytes_of(entry.type, entry.shape));
    }
    if (!tensors_.empty()) header.resize(padded(header.size()));
    return header;
}

std::string GgufWriter::write(const std::string& path, Existing existing, bool hashed) const {
    AtomicFile file(path, existing);
    Sha256 hash;
    auto put = [&](const void* data, std::size_t size) {
        file.write(data, size);
        if (hashed) hash.update(data, size);
    };
    const std::string first = header();
    put(first.data(), first.size());
    for (const Entry& entry : tensors_) {
        std::uint64_t expected = bytes_of(entry.type, entry.shape), given = 0;
        entry.emit([&](const void* data, std::size_t size) {
            given += size;
            if (given <= expected) put(data, size);
        });
        if (given != expected)
            throw std::logic_error("GgufWriter: tensor " + entry.name + " gave other bytes");
        static const char zeros[alignment] = {};
        put(zeros, padded(expected) - expected);
    }
    file.commit();
    return hashed ? hash.hex() : std::string();
}

}  // namespace linnet
