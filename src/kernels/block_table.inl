// The products with weights of block types, for the sets of instructions that have integers of their own for
// them.
#pragma once
#include "kernels/table.inl"

#include "kernels/block_rows.inl"

namespace linnet {
namespace {

consteval KernelTable<float> with_block_rows(KernelTable<float> table) {
    table.block_rows = block_rows;
    table.block_rows_longest = block_rows_longest;
    return table;
}

}  // namespace
}  // namespace linnet
