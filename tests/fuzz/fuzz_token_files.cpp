// libFuzzer: a byte of choices, then any bytes as files of tokens (llm.c's, nanoGPT's, Megatron-LM's) are the
// ids that the files have room for, or an Error.
#include "base/error.h"
#include "data/layouts.h"
#include "data/shards.h"
#include "data/token_files.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder plain, indexed;
    fuzz::Input input(data, size);
    const bool has_index = input.choice(2) == 1;
    fuzz::Folder& folder = has_index ? indexed : plain;
    folder.with("train.bin", input.part());
    folder.with(has_index ? "train.idx" : "val.bin", input.part());
    try {
        const auto found = find_token_files(folder.path());
        if (!found) return 0;
        std::uint64_t tokens = 0;
        for (const CorpusShard& one : found->index.shards) {
            const TokenShard shard(folder.path() + "/" + one.file, *find_layout(found->index.layout));
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < shard.size(); i++) sum += shard[i];
            volatile std::uint64_t seen = sum;
            (void)seen;
            tokens += shard.size();
        }
        if (tokens != found->index.tokens) std::abort();
        found->sha256();
    } catch (const Error&) {
    }
    return 0;
}
