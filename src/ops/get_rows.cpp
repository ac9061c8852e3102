// Chosen rows (a stream of row numbers), in a space of their own: a prompt of 500 tokens needs the logits of
// one; a classifier looks at the first row of each sequence.   x [R,C], ids [S], y [S,C].
#include <algorithm>

#include "ops/chosen_rows.h"
#include "ops/rules.h"

namespace linnet {
namespace {

template <class Real>
void forward(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        std::copy_n(call.in[0] + call.ids[static_cast<std::size_t>(r)] * call.width, call.width,
                    call.out + r * call.width);
}

template <class Real>
void backward(Call<Real>& call) {
    const Range columns = begin_gradient(call);
    for (std::int64_t r = 0; r < call.rows; r++) {
        Real* to = call.din[0] + call.ids[static_cast<std::size_t>(r)] * call.width + columns.begin;
        call.kernels->add(columns.size(), to, call.dout + r * call.width + columns.begin, to);
    }
}

}  // namespace

const Op get_rows_op = {
    .name = "get_rows",
    .inputs = 1,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stream = true,
};

}  // namespace linnet
