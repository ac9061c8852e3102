#include "data/corpus_check.h"

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "base/stream_file.h"
#include "data/corpus_index.h"
#include "data/shards.h"

namespace linnet {
namespace {

constexpr std::uint64_t sample_bytes = std::uint64_t{128} << 20;  // a quarter of a second

void check_sum(const std::string& path, const std::string& expected) {
    Sha256 sum;
    read_stream(path, [&](std::string_view bytes) { sum.update(bytes); });
    const std::string found = sum.hex();
    if (found != expected)
        fail_input(path, "sha256", expected + " (index.json)", found, "damaged: run linnet corpus again");
}

}  // namespace

void check_corpus(const std::string& folder, bool whole) {
    const CorpusIndex index = read_corpus_index(folder);
    const CorpusLayout& layout = *find_layout(index.layout);
    // The last ones first: what was cut short is most likely there.
    std::uint64_t left = sample_bytes;
    for (auto shard = index.shards.rbegin(); shard != index.shards.rend(); ++shard) {
        const std::string path = folder + "/" + shard->file;
        const TokenShard opened(path, layout);
        if (opened.size() != shard->tokens)
            fail_input(path, "header", std::to_string(shard->tokens) + " tokens (index.json)",
                       std::to_string(opened.size()));
        if (!whole && opened.bytes() > left) continue;
        if (!whole) left -= opened.bytes();
        check_sum(path, shard->sha256);
    }
}

}  // namespace linnet
