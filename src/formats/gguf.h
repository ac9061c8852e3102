// GGUF version 3, read and written (specification: ggml-org/ggml, docs/gguf.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "tensor/tensor.h"

namespace linnet {

/// The value kinds of the specification, with its numbers.
enum class GgufKind : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    string,
    array,
    u64,
    i64,
    f64
};

/// As the specification's readers write it: "u8", "string".
std::string_view gguf_kind_name(GgufKind kind);

/// Calls `see` with a zero of the C++ type of the kind's values; false where they are no numbers.
template <class See>
bool with_number_type(GgufKind kind, const See& see) {
    switch (kind) {
        case GgufKind::u8:
            return see(std::uint8_t{}), true;
        case GgufKind::i8:
            return see(std::int8_t{}), true;
        case GgufKind::u16:
            return see(std::uint16_t{}), true;
        case GgufKind::i16:
            return see(std::int16_t{}), true;
        case GgufKind::u32:
            return see(std::uint32_t{}), true;
        case GgufKind::i32:
            return see(std::int32_t{}), true;
        case GgufKind::f32:
            return see(float{}), true;
        case GgufKind::u64:
            return see(std::uint64_t{}), true;
        case GgufKind::i64:
            return see(std::int64_t{}), true;
        case GgufKind::f64:
            return see(double{}), true;
        case GgufKind::boolean:
        case GgufKind::string:
        case GgufKind::array:
            break;
    }
    return false;
}

/// An array value: its elements still in the file (checked), decoded on request.
struct GgufArray {
    GgufKind kind = GgufKind::u8;  // of the elements; nested arrays are refused
    std::uint64_t count = 0;
    std::vector<std::string_view> strings;  // for kind string; views into the mapping
    std::span<const std::byte> bytes;       // otherwise: count elements, little-endian, unaligned
};

using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufTensor {
    std::string_view name;
    DType type;
    Shape shape;                       // row-major: outermost first (the reverse of the file's order)
    std::span<const std::byte> bytes;  // the tensor's data, aligned; of an unknown type with the padding
    std::uint32_t type_number = 0;     // in the file, where it is DType::unknown

    std::string type_name() const {
        return type == DType::unknown ? std::to_string(type_number) : std::string(info(type).name);
    }
};

/// What to do with a tensor whose type has no row in the table: refuse the file, or take what lies before the
/// next tensor for its bytes (to look at, not to compute with).
enum class UnknownTypes { refused, kept };

/// A GGUF file (version 2 or 3, little-endian), mapped and validated whole: every span handed out lies inside
/// the mapping; names are unique; tensors do not overlap and nothing follows the last one but padding; counts
/// were bounded by the bytes that remain before anything was allocated. Errors: Error(Exit::input) with file,
/// place, expected and found. Time is linear in the header's bytes but for sorting the names. Movable.
class Gguf {
  public:
    /// A file that was split ("NAME-00001-of-00003.gguf") is opened whole, by the name of any of its parts.
    explicit Gguf(const std::string& path, UnknownTypes unknown = UnknownTypes::refused);
    /// This one alone: of a part its own tensors.
    explicit Gguf(MappedFile file, UnknownTypes unknown = UnknownTypes::refused);
    /// Metadata as in `header`, a file without tensors, and tensors that stand in memory which `keep` holds:
    /// another format, seen as GGUF. Messages name `path`.
    Gguf(std::string path, std::string header, std::vector<GgufTensor> tensors,
         std::shared_ptr<const void> keep);

    const std::string& path() const { return file_.path(); }  // of a split file: the first part's
    const std::string& path_of(const GgufTensor& tensor) const;
    std::uint64_t file_bytes() const;  // of all parts
    const GgufValue* find(std::string_view key) const;
    std::span<const std::pair<std::string_view, GgufValue>> values() const { return values_; }
    /// Kind and value of values()[i], as they stand in the file: for GgufWriter::add_stored.
    std::span<const std::byte> stored_value(std::size_t i) const { return stored_values_[i]; }
    std::span<const GgufTensor> tensors() const { return tensors_; }
    const GgufTensor* tensor(std::string_view name) const;

    // Typed access: the value, or nothing where the key is absent; a wrong kind or range is an Error.
    std::optional<std::uint64_t> integer(std::string_view key, std::uint64_t max = UINT64_MAX) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> string(std::string_view key) const;
    const std::vector<std::string_view>* strings(std::string_view key) const;
    std::optional<std::vector<double>> numbers(std::string_view key) const;  // any float or integer kind
    std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
    std::optional<std::vector<bool>> booleans(std::string_view key) const;

  private:
    void join_parts();
    void order_tensors();
    void check_elements() const;
    MappedFile file_;
    std::shared_ptr<const void> kept_, header_;
    std::vector<Gguf> parts_;  // the second and further ones
    std::vector<std::pair<std::string_view, GgufValue>> values_;
    std::vector<std::span<const std::byte>> stored_values_;
    std::vector<GgufTensor> tensors_;
    std::vector<std::uint32_t> value_order_, tensor_order_;  // indices, sorted by name
};

/// Collects metadata and tensors, then writes them in one pass through AtomicFile (version 3, alignment 32).
/// A key or tensor given twice, and an emitter that gives other than its tensor's bytes, are
/// std::logic_error: our fault.
class GgufWriter {
  public:
    void add(const std::string& key, std::uint32_t value);
    void add(const std::string& key, std::int32_t value);
    void add(const std::string& key, std::uint64_t value);
    void add(const std::string& key, float value);
    void add(const std::string& key, bool value);
    void add(const std::string& key, std::string_view value);
    void add(const std::string& key, const char* value) { add(key, std::string_view(value)); }
    /// An array of `count` strings; at(i) is the i-th, for as long as until the next call.
    void add(const std::string& key, std::size_t count,
             const std::function<std::string_view(std::size_t)>& at);
    void add(const std::string& key, std::span<const std::int32_t> values);
    void add(const std::string& key, std::span<const float> values);
    void add(const std::string& key, const std::vector<bool>& values);
    /// A value of another file as it stands there (Gguf::stored_value).
    void add_stored(const std::string& key, std::span<const std::byte> kind_and_value);

    /// The tensor's bytes are asked for while writing: `emit` must call its argument with pieces that add up
    /// to exactly the bytes of (type, shape).
    using Sink = std::function<void(const void*, std::size_t)>;
    void add_tensor(std::string name, DType type, Shape shape, std::function<void(const Sink&)> emit);

    /// All of the file that comes before the tensors' bytes: the whole of one that has no tensors.
    std::string header() const;

    /// Returns the lower-case hexadecimal sha256 of the file written
    /// (empty where `hashed` is false, which is faster).
    std::string write(const std::string& path, Existing existing = Existing::replace,
                      bool hashed = true) const;

  private:
    struct Entry {
        std::string name;
        DType type;
        Shape shape;
        std::function<void(const Sink&)> emit;
    };
    void begin(const std::string& key, GgufKind kind);
    void begin_array(const std::string& key, GgufKind kind, std::uint64_t count);
    std::string metadata_;
    std::set<std::string> keys_, names_;
    std::vector<Entry> tensors_;
};

}  // namespace linnet
