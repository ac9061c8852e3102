// The product of reading in NEON with products of matrices of bytes (Armv8.6 FEAT_I8MM): what this tier adds
// to the one below it. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/neon.h"

#include "kernels/blocks/byte_panels.inl"

namespace linnet {
namespace {

struct ByteMatrix {
    /// c [2,2] += a [2,8] · b [2,8]ᵀ, all signed.
    static Ints4 multiply(Ints4 c, const Byte* a, const Byte* b) {
        auto signed_at = [](const Byte* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); };
        return reinterpret_cast<Ints4>(
            vmmlaq_s32(reinterpret_cast<int32x4_t>(c), signed_at(a), signed_at(b)));
    }
};

}  // namespace

extern const AddedKernels i8mm_kernels;
constinit const AddedKernels i8mm_kernels = {
    .name = "i8mm", .block = {.panels = byte_panels<ByteMatrix>, .panel_numbers = PanelNumbers::bytes}};
}  // namespace linnet
