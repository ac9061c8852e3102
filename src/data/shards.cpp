#include "data/shards.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace linnet {

static_assert(std::endian::native == std::endian::little, "shards are little-endian; a swap is wanted here");

const ShardFormat& shard_format(TokenId vocab_size) {
    return shard_formats[vocab_size > 65536 ? 1 : 0];
}

void ShardFormat::store(std::span<const TokenId> ids, char* to) const {
    if (token_bytes == 4) {
        std::memcpy(to, ids.data(), ids.size_bytes());
        return;
    }
#pragma omp simd
    for (std::size_t i = 0; i < ids.size(); i++) {
        const auto narrow = static_cast<std::uint16_t>(ids[i]);
        std::memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

TokenShard::TokenShard(const std::string& path) : file_(path) {
    auto bytes = file_.bytes();
    if (bytes.size() < shard_header_bytes)
        fail_input(path, "header", std::to_string(shard_header_bytes) + " bytes",
                   std::to_string(bytes.size()));
    std::int32_t header[3];
    std::memcpy(header, bytes.data(), sizeof header);
    const ShardFormat* format = nullptr;
    for (const ShardFormat& f : shard_formats)
        if (f.magic == header[0] && f.version == header[1]) format = &f;
    if (!format)
        fail_input(path, "header", "magic 20240520 version 1 or magic 20240801 version 7",
                   "magic " + std::to_string(header[0]) + " version " + std::to_string(header[1]),
                   "not a token shard");
    token_bytes_ = format->token_bytes;
    std::uint64_t held = (bytes.size() - shard_header_bytes) / static_cast<std::uint64_t>(token_bytes_);
    bool whole = (bytes.size() - shard_header_bytes) % static_cast<std::uint64_t>(token_bytes_) == 0;
    if (header[2] < 0 || held != static_cast<std::uint64_t>(header[2]) || !whole)
        fail_input(path, "header",
                   std::to_string(header[2]) + " tokens of " + std::to_string(token_bytes_) + " bytes",
                   std::to_string(bytes.size() - shard_header_bytes) + " bytes",
                   "truncated, or written by another run");
    tokens_ = held;
}

std::uint32_t TokenShard::operator[](std::uint64_t i) const {
    const std::byte* at =
        file_.bytes().data() + shard_header_bytes + i * static_cast<std::uint64_t>(token_bytes_);
    if (token_bytes_ == 2) {
        std::uint16_t id;
        std::memcpy(&id, at, sizeof id);
        return id;
    }
    std::uint32_t id;
    std::memcpy(&id, at, sizeof id);
    return id;
}

}  // namespace linnet
