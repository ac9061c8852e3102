// Whether a file's weights are numbers.
#pragma once
#include <functional>

#include "formats/gguf.h"

namespace linnet {

struct Scanned {
    std::int64_t tensors = 0, blocks = 0;  // looked at: of the types that this program computes with
    std::int64_t skipped = 0;              // tensors of other types
};

/// Unpacks every block of the file's tensors. Error(Exit::input) that names tensor, row and block of the
/// first one with a weight that is not finite, which is how a scale that is not shows. `progress` is told of
/// the bytes done and of all.
Scanned scan_weights(const Gguf& file, int threads,
                     const std::function<void(double done, double all)>& progress);

}  // namespace linnet
