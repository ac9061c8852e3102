// The weight types that are stored in blocks: one file each, one line each here, one row each in
// tensor/dtype.cpp. A test walks that table and fails where a type lacks one of the three.
#pragma once
#include "kernels/common.inl"
#include "kernels/type_q8_0.inl"

namespace linnet {
namespace {

template <class... Types>
struct BlockTypes {
    /// Calls f(Block{}) for the block type; false where `type` is none.
    template <class F>
    static bool with(DType type, F f) {
        return ((type == Types::type && (f(Types{}), true)) || ...);
    }
};

using AllBlockTypes = BlockTypes<BlockQ8_0>;

}  // namespace
}  // namespace linnet
