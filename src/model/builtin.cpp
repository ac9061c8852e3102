// Embeds models/shakespeare.gguf. The assembler's .incbin costs nothing at compile time, where an array of
// eight million literals costs a minute; #embed is not in C++20.
#include "model/builtin.h"

#if defined(__APPLE__)
#define LINNET_RODATA ".const_data\n"
#else
#define LINNET_RODATA ".section .rodata\n"
#endif

extern "C" const std::byte linnet_builtin_begin[], linnet_builtin_end[];

__asm__(LINNET_RODATA
        ".balign 64\n"
        ".globl linnet_builtin_begin\n"
        "linnet_builtin_begin:\n"
        ".incbin \"" LINNET_BUILTIN
        "\"\n"
        ".globl linnet_builtin_end\n"
        "linnet_builtin_end:\n"
        ".byte 0\n"
        ".text\n");

namespace linnet {

std::span<const std::byte> builtin_model() {
    return {linnet_builtin_begin, linnet_builtin_end};
}

}  // namespace linnet
