// linnet bench --profile: where a model's time goes, op by op.
#pragma once
#include <string>
#include <vector>

#include "model/engine/profile.h"

namespace linnet {

/// Of a list of ops' times.
template <class Op>
double seconds_of(const std::vector<Op>& ops) {
    double sum = 0;
    for (const Op& op : ops) sum += op.seconds;
    return sum;
}

struct ModelProfile {
    std::vector<OpTime> reading, writing;
    int written = 0;  // tokens
};

/// Two tables, the longest first. Measures the machine's limits for them, with `threads` threads: a few
/// seconds.
std::string profile_text(ModelProfile profile, int threads);

}  // namespace linnet
