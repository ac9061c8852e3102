// safetensors, read and written (specification: huggingface/safetensors, README.md, "Format").
//
//   8 bytes    N, the header's length, little-endian
//   N bytes    JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}; spaces may
//              follow it, so that the data begin at a multiple of 8
//   the rest   the tensors' bytes: row-major, little-endian, without holes
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/tensor.h"

namespace linnet {

/// An element type of the format.
struct SafetensorsType {
    std::string_view name;      // "BF16"
    int bits;                   // of an element
    std::optional<DType> type;  // ours, where we have it
};
std::span<const SafetensorsType> safetensors_types();

struct SafetensorsTensor {
    std::string name;
    const SafetensorsType* type;
    int rank;                          // any; `shape` says it up to 4
    Shape shape;                       // row-major; of a scalar: rank 0, count 1
    std::span<const std::byte> bytes;  // exactly the tensor's; as the file places it, at any byte
    std::uint32_t part = 0;
};

/// A file, or the files that an index names, mapped and validated whole: a header of at most 100 MB and
/// 2^18 tensors; every name once, over all files too; shape times type is the bytes; the tensors cover the
/// data without holes and without overlap. Errors: Error(Exit::input) with file, place, expected and found,
/// within a second and 64 MiB. Movable.
class Safetensors {
  public:
    /// One file.
    explicit Safetensors(MappedFile file);
    /// "model.safetensors", or the parts that "model.safetensors.index.json" names: they lie in the index's
    /// folder, and each tensor is where the index says.
    static Safetensors open(const std::string& path);

    const std::string& path() const { return path_; }  // the file's, or the index's
    const std::string& path_of(const SafetensorsTensor& tensor) const { return files_[tensor.part].path(); }
    std::span<const SafetensorsTensor> tensors() const { return tensors_; }
    const SafetensorsTensor* tensor(std::string_view name) const;
    /// Renames tensors: of the pairs, the first that a name begins with is replaced. Error where two become
    /// one. `only`: those that none fits are forgotten; how many.
    std::size_t rename(std::span<const std::pair<std::string, std::string>> pairs, bool only);

  private:
    Safetensors() = default;
    void read(MappedFile file);
    void sort_names();
    std::string path_;
    std::vector<MappedFile> files_;
    std::vector<SafetensorsTensor> tensors_;
    std::vector<std::uint32_t> order_;  // by name
};

/// Collects tensors, then writes them: one file NAME.safetensors, or where they take more than `max_part`
/// bytes the parts NAME-00001-of-00003.safetensors and NAME.safetensors.index.json.
class SafetensorsWriter {
  public:
    using Sink = std::function<void(const void*, std::size_t)>;
    /// `emit` must call its argument with pieces that add up to exactly the bytes of (type, shape): other
    /// bytes, a name given twice or a type that the format lacks are std::logic_error.
    void add_tensor(std::string name, DType type, Shape shape, std::function<void(const Sink&)> emit);
    /// Writes into `folder`; each file through AtomicFile. 0: one file.
    void write(const std::string& folder, const std::string& name, std::uint64_t max_part = 0,
               Existing existing = Existing::replace) const;

  private:
    struct Entry {
        std::string name;
        DType type;
        Shape shape;
        std::uint64_t bytes;
        std::function<void(const Sink&)> emit;
    };
    void write_file(const std::string& path, std::span<const Entry> entries, Existing existing) const;
    std::set<std::string> names_;
    std::vector<Entry> tensors_;
};

}  // namespace linnet
