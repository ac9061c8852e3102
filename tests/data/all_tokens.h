// All tokens of a source.
#pragma once
#include <cstdint>
#include <vector>

#include "data/batches.h"

namespace linnet::test {

inline std::vector<std::int32_t> read_all(const TokenSource& source, DataSplit split) {
    const std::uint64_t size = source.size(split);
    if (size < 2) return {};
    std::vector<std::int32_t> in(size - 1), out(size - 1);
    source.window(split, 0, in, out);
    in.push_back(out.back());
    return in;
}

}  // namespace linnet::test
