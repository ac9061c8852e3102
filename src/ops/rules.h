// Rules that many ops have.
#pragma once
#include "ops/op.h"

namespace linnet {

/// An output as wide as the first input.
inline std::int64_t input_width(const NodeShape& s) {
    return s.in[0];
}
/// An op that only moves numbers.
inline double no_flops(const NodeShape&, double) {
    return 0;
}

}  // namespace linnet
