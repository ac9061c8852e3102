// The rows whose logits are wanted (Batch::outputs): a prompt of 500 tokens needs the vocabulary product of
// one.
#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    return s.in[0];
}
double flops(const NodeShape&) {
    return 0;
}

template <class Real>
void forward(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        std::copy_n(call.in[0] + call.batch->outputs[static_cast<std::size_t>(r)] * call.width, call.width,
                    call.out + r * call.width);
}

}  // namespace

const Op take_rows_op = {
    .name = "take_rows",
    .inputs = 1,
    .parameters = 0,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .space = RowSpace::outputs,
};

}  // namespace linnet
