// Products on AMX's matrix units: what this tier adds to the one below it. One symbol leaves this file: the
// table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"

#include "kernels/tile_instructions.h"
#include "kernels/tile_panels.inl"

namespace linnet {
static_assert(sizeof(TilePanels) <= gemm_workspace_bytes);
extern const AddedKernels amx_kernels;
constinit const AddedKernels amx_kernels = {
    .name = "amx", .block = {.panels = tile_panels<TileInstructions>, .panels_take_halves = true}};
}  // namespace linnet
