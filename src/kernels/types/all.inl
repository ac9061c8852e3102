// The weight types that are stored in blocks: one file each, one line each here, one row each in
// tensor/dtype.cpp. A test walks that table and fails where a type lacks one of the three.
#pragma once
#include "kernels/simd/common.inl"
#include "kernels/types/iq4_nl.inl"
#include "kernels/types/iq4_xs.inl"
#include "kernels/types/mxfp4.inl"
#include "kernels/types/q2_k.inl"
#include "kernels/types/q3_k.inl"
#include "kernels/types/q4_0.inl"
#include "kernels/types/q4_1.inl"
#include "kernels/types/q4_k.inl"
#include "kernels/types/q5_0.inl"
#include "kernels/types/q5_1.inl"
#include "kernels/types/q5_k.inl"
#include "kernels/types/q6_k.inl"
#include "kernels/types/q8_0.inl"
#include "kernels/types/tq2_0.inl"

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

using AllBlockTypes =
    BlockTypes<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ2_K, BlockQ3_K, BlockQ4_K,
               BlockQ5_K, BlockQ6_K, BlockIQ4_NL, BlockIQ4_XS, BlockMXFP4, BlockTQ2_0>;

}  // namespace
}  // namespace linnet
