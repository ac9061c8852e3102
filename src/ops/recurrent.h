// What the ops with a state that holds all positions at once have in common.
#pragma once
#include <stdexcept>

#include "ops/op.h"

namespace linnet {

/// A sequence's state, to be taken up and left behind; null where the plan has none: it begins as 0.
template <class Real>
Real* carried(const Call<Real>& call, const Segment& s) {
    if (!call.writes) return nullptr;
    if (call.writes.type != kernel_type<Real>) throw std::logic_error("a state of another type");
    return call.writes.template slot<Real>(s.slot);
}

/// Calls visit(segment, head) for this member's share of all heads (or blocks of channels) of all sequences
/// that have rows.
template <class Real, class Visit>
void each_head(const Call<Real>& call, std::int64_t heads, const Visit& visit) {
    const auto& segments = call.space->segments;
    Range work = call.worker.share(static_cast<std::int64_t>(segments.size()) * heads);
    for (std::int64_t i = work.begin; i < work.end; i++) {
        const Segment& s = segments[static_cast<std::size_t>(i / heads)];
        if (s.length > 0) visit(s, i % heads);
    }
}

}  // namespace linnet
