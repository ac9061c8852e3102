// linnet bench --profile, bench train --profile: where the time goes, op by op.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/engine/profile.h"

namespace linnet {

struct ProfileRow {
    std::string op, kind;  // "linear"; the type of its weights, or "backward"
    double seconds = 0;
    double amount = 0;  // of products, per second: floating-point operations, or bytes; 0 where it is none
    double limit = 0;   // what the machine can at most of that; 0: unknown
};

double seconds_of(const std::vector<ProfileRow>& rows);

/// A line per row: its time and share of all, and of a product the billions of `amount` with `decimals`, and
/// the share of the limit.
std::string profile_table(const std::vector<ProfileRow>& rows, int decimals);

/// An object per row: op, the kind and the amount by these names, ms, share.
nlohmann::ordered_json profile_json(const std::vector<ProfileRow>& rows, const char* kind,
                                    const char* amount);

/// Of several rounds; 0 of none.
double median_of(std::vector<double> rounds);

struct ModelProfile {
    std::vector<OpTime> reading, writing;
    int written = 0;  // tokens
    int rounds = 1;
};

/// Of each op the median of its times in these rounds of the same work, at least one.
ModelProfile median_profile(const std::vector<ModelProfile>& rounds);

/// Two tables, the longest first. Measures the machine's limits for them, with `threads` threads: a few
/// seconds.
std::string profile_text(const ModelProfile& profile, int threads);
/// The same rows as lists "reading" and "writing".
nlohmann::ordered_json profile_json(const ModelProfile& profile);

}  // namespace linnet
