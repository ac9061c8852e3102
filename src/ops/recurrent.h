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

/// x or x + y.
template <class Real>
Real put(bool accumulate, Real x, Real y) {
    return accumulate ? x + y : y;
}

}  // namespace linnet
