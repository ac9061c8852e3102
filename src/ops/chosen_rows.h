// What ops have in common whose rows are made of some of their input's rows, each as it is: get_rows and
// pool.
#pragma once
#include <algorithm>

#include "ops/op.h"

namespace linnet {

/// The columns of the input's gradient that this member owns, as a row may have been chosen twice; 0 where
/// nothing is to be added to them.
template <class Real>
Range begin_gradient(const Call<Real>& call) {
    const Range columns = call.worker.share(call.width, 16);
    if (!call.accumulate[0])
        for (std::int64_t r = 0; r < call.in_rows[0]; r++)
            std::fill_n(call.din[0] + r * call.width + columns.begin, columns.size(), Real(0));
    return columns;
}

}  // namespace linnet
