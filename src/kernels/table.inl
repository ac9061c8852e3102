// All algorithms with the primitives that were included before, and their table.
#include "kernels/attention.inl"
#include "kernels/attention_backward.inl"
#include "kernels/dropout.inl"
#include "kernels/elementwise.inl"
#include "kernels/gemm.inl"
#include "kernels/gemv.inl"
#include "kernels/loss.inl"
#include "kernels/matrix_scan.inl"
#include "kernels/norm.inl"
#include "kernels/peak.inl"
#include "kernels/update.inl"

namespace linnet {
namespace {

constexpr size_t attention_bytes = sizeof(AttentionWork) > sizeof(AttentionBackwardWork)
                                       ? sizeof(AttentionWork)
                                       : sizeof(AttentionBackwardWork);

consteval KernelTable<Real> make_table(const char* name) {
    return {.name = name,
            .gemm_tile_m = tile_rows,
            .gemm_tile_n = tile_columns,
            .gemm_workspace = gemm_workspace_bytes,
            .gemm_block_m = block_m,
            .gemm_block_n = block_n,
            .gemm_block_k = block_k,
            .gemm = gemm,
            .gemv = gemv,
            .attention_workspace = attention_bytes,
            .attention_max_head_width = widest_head,
            .attention_ring = decode_block,
            .attention_block = query_block,
            .attention = attention,
            .attention_decode = attention_decode,
            .attention_backward = attention_backward,
            .selective_scan = selective_scan,
            .selective_scan_backward = selective_scan_backward,
            .matrix_scan = matrix_scan,
            .matrix_scan_backward = matrix_scan_backward,
            .layer_norm = layer_norm,
            .layer_norm_backward = layer_norm_backward,
            .rms_norm = rms_norm,
            .rms_norm_backward = rms_norm_backward,
            .norm_backward_weights = norm_backward_weights,
            .column_sum = column_sum,
            .activation = activation,
            .activation_backward = activation_backward,
            .gated = gated,
            .gated_backward = gated_backward,
            .add = add,
            .scale = scale,
            .multiply = multiply,
            .dropout = dropout,
            .sum_squares = sum_squares,
            .rope = rope,
            .cross_entropy = cross_entropy,
            .update = update,
            .load = load_stored,
            .store = store_stored,
            .quantize = quantize_stored,
            .fma_probe = fma_probe,
            .read_probe = read_probe,
            .bf16_probe = no_probe,
            .int8_probe = no_probe,
            .tile_probe = no_probe};
}

[[maybe_unused]] consteval KernelTable<Real> with_dot_probes(KernelTable<Real> table, double (*bf16)(int64_t),
                                                             double (*int8)(int64_t)) {
    table.bf16_probe = bf16;
    table.int8_probe = int8;
    return table;
}
[[maybe_unused]] consteval KernelTable<Real> with_block(KernelTable<Real> table, BlockProducts<Real> block) {
    table.block = block;
    return table;
}

}  // namespace
}  // namespace linnet
