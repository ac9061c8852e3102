// Products on AMX's matrix units: what this tier adds to the one below it. One symbol leaves this file: the
// table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"

#include "kernels/bf16/tile_attention.inl"
#include "kernels/tile_instructions.h"
#include "kernels/tile_panels.inl"

namespace linnet {
namespace {

/// A tile of bf16 between 1 and 2, of either sign.
struct ProbeTile {
    uint16_t number[tile_side * tile_depth] = {};
    constexpr ProbeTile() {
        uint32_t x = 1;
        for (uint16_t& to : number) {
            x = x * 1664525 + 1013904223;
            to = static_cast<uint16_t>(0x3F80 | (x >> 16 & 0x807F));
        }
    }
};

/// Of numbers, as zeros take less power: tiles of them are a tenth faster.
double tile_probe(int64_t iterations) {
    using Tiles = TileInstructions;
    alignas(64) static constexpr ProbeTile tile;
    Tiles::begin();
    Tiles::load<4>(tile.number, 64), Tiles::load<5>(tile.number, 64), Tiles::load<6>(tile.number, 64),
        Tiles::load<7>(tile.number, 64);
    for (int64_t n = 0; n < iterations; n++) multiply_tiles<Tiles, true>();
    Tiles::end();
    return 2.0 * 4 * tile_side * tile_side * tile_depth * static_cast<double>(iterations);
}

}  // namespace

static_assert(sizeof(TilePanels) <= gemm_workspace_bytes);
extern const AddedKernels amx_kernels;
constinit const AddedKernels amx_kernels = {
    .name = "amx",
    .block = {.panels = tile_panels<TileInstructions>,
              .panel_numbers = PanelNumbers::bf16,
              // Measured with q8_0 and 512 rows (MEASUREMENTS.md).
              .panel_cut = {.tile_m = tile_block,
                            .tile_n = tile_block,
                            .packing_a = 240,
                            .packing_b = 80,
                            .block_m = a_rows},
              .halves = tile_panels<TileInstructions>,
              .half_numbers = PanelNumbers::bf16},
    .narrow = {.rounded = bf16_product<TileProduct<TileInstructions, false>>,
               .rounded_longest = TileProduct<TileInstructions, false>::longest,
               .split = bf16_product<TileProduct<TileInstructions, true>>,
               .attention = bf16_attention<TileUnits<TileInstructions>>,
               .attention_backward = bf16_attention_backward<TileUnits<TileInstructions>>,
               .attention_split = bf16_attention<TileUnits<TileInstructions, true>>,
               .attention_split_workspace = sizeof(BF16Attention<true>),
               .workspace = sizeof(BF16Panels),
               .cut = {.tile_m = tile_block, .tile_n = tile_block, .packing_a = 128, .packing_b = 128},
               .speed = 8},
    .tile_probe = tile_probe};
}  // namespace linnet
