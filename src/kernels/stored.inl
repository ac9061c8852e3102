// Stored weights of any type as numbers.
#pragma once
#include "kernels/kernels.h"
#include "kernels/types/all.inl"

namespace linnet {
namespace {

/// Elements of a block, and bytes of n elements in whole blocks.
inline int64_t block_of(DType type) {
    int64_t elements = 1;
    AllBlockTypes::with(type, [&](auto block) { elements = block.elements; });
    return elements;
}
inline int64_t bytes_of(DType type, int64_t n) {
    int64_t bytes = n * size_of(type);
    AllBlockTypes::with(type, [&](auto block) { bytes = n / block.elements * block.bytes; });
    return bytes;
}

/// Where weight k of row j stands: k is a multiple of the block.
template <class Block>
inline const char* block_at(const Operand& w, int64_t j, int64_t k) {
    return static_cast<const char*>(w.data) + (j * w.col + k) / Block::elements * Block::bytes;
}

/// Where element k of row j of W stands; of a block type: k is a multiple of the block.
inline const char* stored_at(const Operand& w, int64_t j, int64_t k) {
    return static_cast<const char*>(w.data) + bytes_of(w.type, j * w.col + k);
}

/// Blocks are loaded whole: n is a multiple of the type's.
inline void load_stored(int64_t n, DType type, const void* source, Real* target) {
    bool blocks = AllBlockTypes::with(type, [&](auto block) {
        using Block = decltype(block);
        const char* from = static_cast<const char*>(source);
        for (int64_t i = 0; i < n; i += run_length, from += run_bytes<Block>)
            load_run<Block>(from, least(run_length, n - i), target + i);
    });
    if (blocks) return;
    with_stored(type, [&](auto stored) {
        using Stored = decltype(stored);
        const typename Stored::Element* from = static_cast<const typename Stored::Element*>(source);
        each_vector(n, [&](int64_t i, int64_t some) {
            store_n(target + i, some == W ? Stored::get(from + i) : Stored::get_n(from + i, some), some);
        });
    });
}

}  // namespace
}  // namespace linnet
