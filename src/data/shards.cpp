#include "data/shards.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/megatron_index.h"

namespace linnet {

static_assert(std::endian::native == std::endian::little, "shards are little-endian; a swap is wanted here");

TokenShard::TokenShard(const std::string& path, const CorpusLayout& layout) : file_(path) {
    if (layout.header_bytes > 0) read_llmc_header();
    const std::uint64_t bytes = file_.bytes().size() - layout.header_bytes;
    if (layout.index)
        token_bytes_ = read_megatron_index(path.substr(0, path.rfind('.')) + ".idx", bytes).token_bytes;
    if (bytes % static_cast<std::uint64_t>(token_bytes_) != 0)
        fail_input(path, "", "ids of " + std::to_string(token_bytes_) + " bytes",
                   std::to_string(bytes) + " bytes", "truncated");
    if (layout.header_bytes == 0) tokens_ = bytes / static_cast<std::uint64_t>(token_bytes_);
    ids_ = file_.bytes().data() + layout.header_bytes;
}

void TokenShard::read_llmc_header() {
    const std::string& path = file_.path();
    const auto bytes = file_.bytes();
    if (bytes.size() < llmc_header_bytes)
        fail_input(path, "header", std::to_string(llmc_header_bytes) + " bytes",
                   std::to_string(bytes.size()));
    std::int32_t header[3];
    std::memcpy(header, bytes.data(), sizeof header);
    const LlmcHeader* format = nullptr;
    for (const LlmcHeader& f : llmc_headers)
        if (f.magic == header[0] && f.version == header[1]) format = &f;
    if (!format)
        fail_input(path, "header", "magic 20240520 version 1 or magic 20240801 version 7",
                   "magic " + std::to_string(header[0]) + " version " + std::to_string(header[1]),
                   "not a token shard");
    token_bytes_ = format->token_bytes;
    std::uint64_t held = (bytes.size() - llmc_header_bytes) / static_cast<std::uint64_t>(token_bytes_);
    bool whole = (bytes.size() - llmc_header_bytes) % static_cast<std::uint64_t>(token_bytes_) == 0;
    if (header[2] < 0 || held != static_cast<std::uint64_t>(header[2]) || !whole)
        fail_input(path, "header",
                   std::to_string(header[2]) + " tokens of " + std::to_string(token_bytes_) + " bytes",
                   std::to_string(bytes.size() - llmc_header_bytes) + " bytes",
                   "truncated, or written by another run");
    tokens_ = held;
}

std::uint32_t TokenShard::operator[](std::uint64_t i) const {
    // Two loads of a known width are faster than one of a width that is not.
    return token_bytes_ == 2 ? load_token(ids_ + i * 2, 2) : load_token(ids_ + i * 4, 4);
}

}  // namespace linnet
