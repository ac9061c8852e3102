// libFuzzer: any bytes as Megatron-LM's .idx are an index whose tokens fill the .bin, or an Error.
#include "base/error.h"
#include "data/megatron_index.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    constexpr std::uint64_t bin_bytes = 10;
    const std::string path = folder.with("a.idx", fuzz::Input(data, size).rest());
    try {
        const MegatronIndex index = read_megatron_index(path, bin_bytes);
        if (index.tokens * static_cast<std::uint64_t>(index.token_bytes) != bin_bytes) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
