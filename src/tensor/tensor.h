// A view of a row-major array: pointer, type, shape. It owns nothing.
#pragma once
#include <array>
#include <cstdint>

#include "tensor/dtype.h"

namespace linnet {

/// Outermost dimension first; unused dimensions are 1. (GGUF stores the reverse order.)
struct Shape {
    std::array<std::int64_t, 4> dim{1, 1, 1, 1};
    int rank = 0;

    Shape() = default;
    explicit Shape(std::int64_t a) : dim{a, 1, 1, 1}, rank(1) {}
    Shape(std::int64_t a, std::int64_t b) : dim{a, b, 1, 1}, rank(2) {}
    std::int64_t count() const { return dim[0] * dim[1] * dim[2] * dim[3]; }
    /// Elements of a row: the last dimension.
    std::int64_t columns() const { return dim[static_cast<std::size_t>(rank > 0 ? rank - 1 : 0)]; }
    bool operator==(const Shape&) const = default;
};

struct Tensor {
    void* data = nullptr;
    DType type = DType::f32;
    Shape shape;

    /// Bytes of one row, a whole number of blocks.
    std::int64_t row_bytes() const { return stored_bytes(type, shape.columns()); }
    /// Where row `index` of a matrix begins.
    std::byte* row(std::int64_t index) const { return as<std::byte>() + index * row_bytes(); }

    template <class T>
    T* as() const {
        return static_cast<T*>(data);
    }
};

}  // namespace linnet
