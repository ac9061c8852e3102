// Reading GGUF: nothing of the file is believed before it is checked against the bytes that are there.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/checked.h"
#include "base/error.h"
#include "base/terminal.h"
#include "formats/gguf.h"

namespace linnet {
namespace {

// Every place below copies numbers out of the file as they stand.
static_assert(std::endian::native == std::endian::little, "GGUF is read on little-endian machines only");

struct KindInfo {
    GgufKind kind;
    std::string_view name;
    std::uint32_t bytes;  // of one value; 0: it varies
};
constexpr KindInfo kinds[] = {
    // in the order of their numbers
    {GgufKind::u8, "u8", 1},       {GgufKind::i8, "i8", 1},        {GgufKind::u16, "u16", 2},
    {GgufKind::i16, "i16", 2},     {GgufKind::u32, "u32", 4},      {GgufKind::i32, "i32", 4},
    {GgufKind::f32, "f32", 4},     {GgufKind::boolean, "bool", 1}, {GgufKind::string, "string", 0},
    {GgufKind::array, "array", 0}, {GgufKind::u64, "u64", 8},      {GgufKind::i64, "i64", 8},
    {GgufKind::f64, "f64", 8},
};

const KindInfo& info(GgufKind kind) {
    return kinds[static_cast<std::size_t>(kind)];
}

/// A cursor over the header; every step says what it was reading.
class Reader {
  public:
    Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    std::uint64_t position() const { return position_; }
    std::uint64_t remaining() const { return bytes_.size() - position_; }

    [[noreturn]] void refuse(const std::string& where, std::string_view expected, std::string_view got,
                             std::string_view hint = {}) const {
        fail_input(path_, where, expected, got, hint);
    }

    std::span<const std::byte> take(std::uint64_t size, const std::string& where) {
        if (size > remaining())
            refuse(where, std::to_string(size) + " bytes at byte " + std::to_string(position_),
                   std::to_string(remaining()), "is the file truncated?");
        auto part = bytes_.subspan(position_, size);
        position_ += size;
        return part;
    }

    template <class T>
    T number(const std::string& where) {
        T value;
        std::memcpy(&value, take(sizeof value, where).data(), sizeof value);
        return value;
    }

    std::string_view string(const std::string& where) {
        auto size = number<std::uint64_t>(where);
        auto part = take(size, where);
        return {reinterpret_cast<const char*>(part.data()), part.size()};
    }

    std::string_view name(const std::string& where) {
        std::string_view text = string(where);
        if (text.empty()) refuse(where, "a name", "an empty one");
        if (text.size() > 65535) refuse(where, "a name of at most 65535 bytes", std::to_string(text.size()));
        if (printable(text) != text)
            refuse(where, "a name in UTF-8 without control characters", quoted(text));
        return text;
    }

    /// A count of things that take at least `least` bytes each.
    std::uint64_t count(std::uint64_t least, const std::string& where) {
        auto n = number<std::uint64_t>(where);
        if (n > remaining() / least)
            refuse(where, "at most " + std::to_string(remaining() / least) + " in the bytes that follow",
                   std::to_string(n), "is the file truncated?");
        return n;
    }

    GgufKind kind(const std::string& where) {
        auto id = number<std::uint32_t>(where);
        if (id >= std::size(kinds)) refuse(where, "a value kind from 0 to 12", std::to_string(id));
        return static_cast<GgufKind>(id);
    }

    bool boolean(const std::string& where) {
        auto value = number<std::uint8_t>(where);
        if (value > 1) refuse(where, "a bool of 0 or 1", std::to_string(value));
        return value == 1;
    }

    GgufArray array(const std::string& where) {
        GgufArray array;
        array.kind = kind(where);
        if (array.kind == GgufKind::array) refuse(where, "an array of plain values", "an array of arrays");
        if (array.kind == GgufKind::string) {
            array.count = count(8, where);
            array.strings.reserve(array.count);
            for (std::uint64_t i = 0; i < array.count; i++) array.strings.push_back(string(where));
        } else {
            std::uint64_t size = info(array.kind).bytes;
            array.count = count(size, where);
            array.bytes = take(array.count * size, where);  // cannot overflow: count() has bounded it
        }
        return array;
    }

    GgufValue value(GgufKind kind, const std::string& where) {
        GgufValue value;
        auto take = [&](auto like) {
            using T = decltype(like);
            using Whole = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
            using Stored = std::conditional_t<std::is_floating_point_v<T>, double, Whole>;
            value = Stored{number<T>(where)};
        };
        if (with_number_type(kind, take)) return value;
        if (kind == GgufKind::boolean) return boolean(where);
        if (kind == GgufKind::string) return string(where);
        return array(where);
    }

  private:
    std::span<const std::byte> bytes_;
    const std::string& path_;
    std::uint64_t position_ = 0;
};

void check_magic(Reader& in) {
    if (in.remaining() == 0) in.refuse("", "a GGUF file", "an empty file");
    std::uint64_t size = std::min<std::uint64_t>(in.remaining(), 4);
    auto magic = in.take(size, "magic");
    std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (text != "GGUF") in.refuse("magic", "'GGUF'", quoted(text), "not a GGUF file");
    auto version = in.number<std::uint32_t>("version");
    // Big-endian files carry the same magic; their version's bytes are turned round.
    if (version >= 0x01000000 && (version & 0xFFFF) == 0)
        in.refuse("version", "a little-endian file", "a big-endian one",
                  "gguf-py's gguf_convert_endian.py turns it");
    if (version == 1) in.refuse("version", "2 or 3", "1", "written before August 2023; convert it again");
    if (version != 2 && version != 3) in.refuse("version", "2 or 3", std::to_string(version));
}

/// Indices in the order of their names; twins are refused. Sorted rather than hashed: no choice of names
/// makes it slower than n log n.
template <class Name>
std::vector<std::uint32_t> order_of(std::size_t count, const Name& name, const Reader& in, const char* what) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return name(a) < name(b); });
    for (std::size_t i = 1; i < count; i++)
        if (name(order[i - 1]) == name(order[i]))
            in.refuse(what + (" " + quoted(name(order[i]))), "once", "twice");
    return order;
}

template <class Name>
std::optional<std::uint32_t> find_in(const std::vector<std::uint32_t>& order, std::string_view wanted,
                                     const Name& name) {
    auto place =
        std::lower_bound(order.begin(), order.end(), wanted,
                         [&](std::uint32_t index, std::string_view key) { return name(index) < key; });
    if (place == order.end() || name(*place) != wanted) return std::nullopt;
    return *place;
}

struct RawTensor {
    GgufTensor tensor;
    std::uint64_t offset, size;  // bytes from the start of the data
};

RawTensor read_tensor(Reader& in, std::uint64_t index, UnknownTypes unknown) {
    RawTensor raw;
    GgufTensor& tensor = raw.tensor;
    tensor.name = in.name("tensor " + std::to_string(index) + ": name");
    std::string where = "tensor " + quoted(tensor.name);
    auto rank = in.number<std::uint32_t>(where);
    if (rank < 1 || rank > 4) in.refuse(where, "1 to 4 dimensions", std::to_string(rank));
    tensor.shape.rank = static_cast<int>(rank);
    std::int64_t count = 1;
    for (std::uint32_t i = 0; i < rank; i++) {  // the file's order is innermost first
        auto dim = in.number<std::uint64_t>(where);
        if (dim < 1 || dim > INT64_MAX) in.refuse(where, "dimensions of at least 1", std::to_string(dim));
        tensor.shape.dim[rank - 1 - i] = static_cast<std::int64_t>(dim);
        auto product = checked_mul(count, static_cast<std::int64_t>(dim));
        if (!product) in.refuse(where, "fewer than 2^63 elements", "more");
        count = *product;
    }
    auto type = in.number<std::uint32_t>(where);
    auto known = dtype_from_gguf(type);
    if (!known && unknown == UnknownTypes::refused)
        in.refuse(where, "a tensor type of ggml", "type " + std::to_string(type));
    tensor.type = known.value_or(DType::unknown);
    if (!known) tensor.type_number = type;
    const DTypeInfo& element = linnet::info(tensor.type);
    if (tensor.shape.dim[rank - 1] % element.block != 0)
        in.refuse(where, "rows of whole blocks of " + std::to_string(element.block),
                  std::to_string(tensor.shape.dim[rank - 1]));
    auto size = checked_mul(count / element.block, element.bytes);
    if (!size) in.refuse(where, "fewer than 2^63 bytes", "more");
    raw.size = static_cast<std::uint64_t>(*size);
    raw.offset = in.number<std::uint64_t>(where);
    return raw;
}

/// A tensor of an unknown type reaches to the next one that begins behind it, or to the end of the data.
void size_unknown(const std::vector<RawTensor*>& by_offset, std::uint64_t available) {
    std::uint64_t end = available, begins = available;  // of those behind
    for (std::size_t i = by_offset.size(); i-- > 0;) {
        RawTensor& r = *by_offset[i];
        if (r.offset < begins) end = std::min(begins, available);
        begins = r.offset;
        if (r.tensor.type == DType::unknown && r.offset < end) r.size = end - r.offset;
    }
}

/// Hands each tensor its bytes: aligned, inside the file, apart from all others, with nothing behind but
/// padding.
void place_tensors(const Reader& in, std::span<const std::byte> bytes, std::uint64_t alignment,
                   std::vector<RawTensor>& raw) {
    auto start = checked_round_up(in.position(), alignment);
    if (!start || (*start > bytes.size() && !raw.empty()))
        in.refuse("tensor data", "it at byte " + std::to_string(start.value_or(UINT64_MAX)),
                  "the end of the file at " + std::to_string(bytes.size()), "is the file truncated?");
    std::uint64_t available = raw.empty() ? 0 : bytes.size() - *start;
    std::vector<RawTensor*> by_offset;
    by_offset.reserve(raw.size());
    for (RawTensor& r : raw) by_offset.push_back(&r);
    std::stable_sort(by_offset.begin(), by_offset.end(),
                     [](auto* a, auto* b) { return a->offset < b->offset; });
    size_unknown(by_offset, available);
    for (RawTensor& r : raw) {
        std::string where = "tensor " + quoted(r.tensor.name);
        if (r.offset % alignment != 0)
            in.refuse(where, "an offset that is a multiple of " + std::to_string(alignment),
                      std::to_string(r.offset));
        auto end = checked_add(r.offset, r.size);
        if (!end || *end > available)
            in.refuse(where, std::to_string(r.size) + " bytes at offset " + std::to_string(r.offset),
                      std::to_string(available) + " bytes of tensor data", "is the file truncated?");
        r.tensor.bytes = bytes.subspan(*start + r.offset, r.size);
    }
    for (std::size_t i = 1; i < by_offset.size(); i++)
        if (by_offset[i - 1]->offset + by_offset[i - 1]->size > by_offset[i]->offset)
            in.refuse("tensor " + quoted(by_offset[i]->tensor.name), "data of its own",
                      "data shared with " + quoted(by_offset[i - 1]->tensor.name));
    std::uint64_t end =
        raw.empty() ? in.position() : *start + by_offset.back()->offset + by_offset.back()->size;
    std::uint64_t padded = checked_round_up(end, alignment).value_or(UINT64_MAX);
    if (bytes.size() > padded)
        in.refuse("", std::to_string(padded) + " bytes", std::to_string(bytes.size()),
                  "bytes follow the last tensor");
}

}  // namespace

Gguf::Gguf(MappedFile file, UnknownTypes unknown) : file_(std::move(file)) {
    Reader in(file_.bytes(), file_.path());
    check_magic(in);
    // A tensor takes at least 8 + 1 (name), 4 (rank), 8 (one dimension), 4 (type) and 8 (offset) bytes; a
    // value 8 + 1 (key), 4 (kind) and 1. Both counts stand before either list.
    std::uint64_t tensor_count = in.count(33, "tensor count"), value_count = in.count(14, "metadata count");

    values_.reserve(value_count);
    stored_values_.reserve(value_count);
    for (std::uint64_t i = 0; i < value_count; i++) {
        std::string_view key = in.name("metadata " + std::to_string(i) + ": key");
        std::string where = "key " + quoted(key);
        std::uint64_t start = in.position();
        GgufKind kind = in.kind(where);
        values_.emplace_back(key, in.value(kind, where));
        stored_values_.push_back(file_.bytes().subspan(start, in.position() - start));
    }
    value_order_ = order_of(
        values_.size(), [&](std::uint32_t i) { return values_[i].first; }, in, "key");

    std::uint64_t alignment = integer("general.alignment", UINT32_MAX).value_or(32);
    // The specification wants a multiple of 8, llama.cpp a power of two.
    if (!std::has_single_bit(alignment) || alignment < 8)
        in.refuse("key 'general.alignment'", "a power of two from 8 on", std::to_string(alignment));

    std::vector<RawTensor> raw;
    raw.reserve(std::min(tensor_count, in.remaining() / 33 + 1));
    for (std::uint64_t i = 0; i < tensor_count; i++) raw.push_back(read_tensor(in, i, unknown));
    place_tensors(in, file_.bytes(), alignment, raw);
    tensors_.reserve(raw.size());
    for (const RawTensor& r : raw) tensors_.push_back(r.tensor);
    check_elements();
    tensor_order_ = order_of(
        tensors_.size(), [&](std::uint32_t i) { return tensors_[i].name; }, in, "tensor");
}

std::string_view gguf_kind_name(GgufKind kind) {
    return info(kind).name;
}

const GgufValue* Gguf::find(std::string_view key) const {
    auto index = find_in(value_order_, key, [&](std::uint32_t i) { return values_[i].first; });
    return index ? &values_[*index].second : nullptr;
}

const GgufTensor* Gguf::tensor(std::string_view name) const {
    auto index = find_in(tensor_order_, name, [&](std::uint32_t i) { return tensors_[i].name; });
    return index ? &tensors_[*index] : nullptr;
}

namespace {

std::string described(const GgufValue& value) {
    struct {
        std::string operator()(std::uint64_t v) const { return std::to_string(v); }
        std::string operator()(std::int64_t v) const { return std::to_string(v); }
        std::string operator()(double v) const { return std::to_string(v); }
        std::string operator()(bool v) const { return v ? "true" : "false"; }
        std::string operator()(std::string_view v) const { return "the string " + quoted(v); }
        std::string operator()(const GgufArray& v) const {
            return "an array of " + std::to_string(v.count) + " " + std::string(gguf_kind_name(v.kind));
        }
    } describe;
    return std::visit(describe, value);
}

[[noreturn]] void wrong(const Gguf& file, std::string_view key, std::string_view expected,
                        const GgufValue& value) {
    fail_input(file.path(), "key " + quoted(key), expected, described(value));
}

/// Decodes an array's elements one after another, handing each to `take` as its own C++ type. False where
/// the elements are not numbers (or, with `integers_only`, not integers).
template <class Take>
bool each_number(const GgufArray& array, bool integers_only, const Take& take) {
    if (integers_only && (array.kind == GgufKind::f32 || array.kind == GgufKind::f64)) return false;
    return with_number_type(array.kind, [&](auto value) {
        for (std::uint64_t i = 0; i < array.count; i++) {
            std::memcpy(&value, array.bytes.data() + i * sizeof value, sizeof value);
            take(value);
        }
    });
}

}  // namespace

/// Bytes bound those of known types alone.
void Gguf::check_elements() const {
    std::int64_t elements = 0;
    for (const GgufTensor& tensor : tensors_) {
        auto sum = checked_add(elements, tensor.shape.count());
        if (!sum)
            fail_input(path_of(tensor), "tensor " + quoted(tensor.name), "fewer than 2^63 elements in all",
                       "more");
        elements = *sum;
    }
}

std::optional<std::uint64_t> Gguf::integer(std::string_view key, std::uint64_t max) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    const auto* plain = std::get_if<std::uint64_t>(value);
    const auto* with_sign = std::get_if<std::int64_t>(value);
    bool fits = (plain && *plain <= max) ||
                (with_sign && *with_sign >= 0 && static_cast<std::uint64_t>(*with_sign) <= max);
    if (!fits)
        wrong(*this, key,
              max == UINT64_MAX ? "an integer from 0" : "an integer from 0 to " + std::to_string(max),
              *value);
    return plain ? *plain : static_cast<std::uint64_t>(*with_sign);
}

std::optional<double> Gguf::number(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* v = std::get_if<double>(value)) return *v;
    if (const auto* v = std::get_if<std::uint64_t>(value)) return static_cast<double>(*v);
    if (const auto* v = std::get_if<std::int64_t>(value)) return static_cast<double>(*v);
    wrong(*this, key, "a number", *value);
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* v = std::get_if<bool>(value)) return *v;
    wrong(*this, key, "true or false", *value);
}

std::optional<std::string_view> Gguf::string(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* v = std::get_if<std::string_view>(value)) return *v;
    wrong(*this, key, "a string", *value);
}

const std::vector<std::string_view>* Gguf::strings(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return nullptr;
    const auto* array = std::get_if<GgufArray>(value);
    if (array && array->kind == GgufKind::string) return &array->strings;
    wrong(*this, key, "an array of strings", *value);
}

std::optional<std::vector<double>> Gguf::numbers(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    std::vector<double> out;
    const auto* array = std::get_if<GgufArray>(value);
    if (array) out.reserve(array->count);
    if (!array || !each_number(*array, false, [&](auto v) { out.push_back(static_cast<double>(v)); }))
        wrong(*this, key, "an array of numbers", *value);
    return out;
}

std::optional<std::vector<std::int64_t>> Gguf::integers(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    std::vector<std::int64_t> out;
    bool fits = true;
    const auto* array = std::get_if<GgufArray>(value);
    if (array) out.reserve(array->count);
    auto take = [&](auto v) {
        fits =
            fits && v <= static_cast<decltype(v)>(std::min<std::uint64_t>(
                             INT64_MAX, static_cast<std::uint64_t>(std::numeric_limits<decltype(v)>::max())));
        out.push_back(static_cast<std::int64_t>(v));
    };
    if (!array || !each_number(*array, true, take) || !fits)
        wrong(*this, key, "an array of integers", *value);
    return out;
}

std::optional<std::vector<bool>> Gguf::booleans(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    const auto* array = std::get_if<GgufArray>(value);
    if (!array || array->kind != GgufKind::boolean) wrong(*this, key, "an array of true and false", *value);
    std::vector<bool> out;
    for (std::byte one : array->bytes) {
        if (one > std::byte{1})
            fail_input(path(), "key " + quoted(key), "0 or 1 for each",
                       std::to_string(std::to_integer<int>(one)));
        out.push_back(one == std::byte{1});
    }
    return out;
}

}  // namespace linnet
