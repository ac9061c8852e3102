// linnet bench --profile: where a model's time goes, op by op.
#pragma once
#include <string>
#include <vector>

#include "model/engine/profile.h"

namespace linnet {

struct ModelProfile {
    std::vector<OpTime> reading, writing;
    int written = 0;  // tokens
};

/// Two tables, the longest first. Measures the machine's limits for them, with `threads` threads: a few
/// seconds.
std::string profile_text(ModelProfile profile, int threads);

}  // namespace linnet
