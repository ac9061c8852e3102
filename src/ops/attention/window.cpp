// Pictures in windows (Liu et al. 2021, "Swin Transformer", section 3): rows are patches, `width` × `height`
// of them one picture, line by line. Attributes of windows and merge: "width", "height" (in patches).
//
//   windows      x [R,C] -> y [R,C]: the rows of a window of "window" × "window" patches stand together, so
//                that a window is a sequence of its own; "back" turns that round. With "shift" s windows
//                begin s patches further right and down; those at the far edges go on at the near ones.
//   merge        x [R,C] -> y [R/4,4C]: of 2 × 2 patches the upper left, lower left, upper right and lower
//                right one.
//   window_bias  W [(2M-1)²,H] -> [H,N]: what the scores of a window's places get, by how far these are
//                apart; tables of M² × "bias_keys": one, and with a shift three more for windows at the
//                right, at the lower and at both edges, whose parts do not see each other.
#include <algorithm>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

constexpr double unseen = -1e30;  // a score that no softmax sees

/// The patches of a picture and the windows that lie over them.
struct Grid {
    std::int64_t width, height, window, shift;
    explicit Grid(const Attributes& a)
        : width(a.integer("width")),
          height(a.integer("height")),
          window(a.integer("window")),
          shift(a.integer("shift")) {}
    std::int64_t patches() const { return width * height; }
    /// Where the patch that is the i-th in the order of windows stands in its picture.
    std::int64_t place(std::int64_t i) const {
        const std::int64_t area = window * window, across = width / window, w = i / area, in = i % area;
        const std::int64_t y = w / across * window + in / window + shift;
        const std::int64_t x = w % across * window + in % window + shift;
        return y % height * width + x % width;
    }
};

/// Calls visit(row in the order of windows, the same patch's in the order of lines) for this member's share.
template <class Real, class Visit>
void each_row(const Call<Real>& call, const Visit& visit) {
    const Grid grid(*call.attributes);
    const Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        visit(r, r / grid.patches() * grid.patches() + grid.place(r % grid.patches()));
}

template <class Real>
void move_rows(const Call<Real>& call, bool into_windows, bool accumulate, const Real* from, Real* to) {
    const std::int64_t n = call.width;
    each_row(call, [&](std::int64_t in_windows, std::int64_t in_lines) {
        if (into_windows)
            put_row(call, accumulate, n, from + in_lines * n, to + in_windows * n);
        else
            put_row(call, accumulate, n, from + in_windows * n, to + in_lines * n);
    });
}

template <class Real>
void windows_forward(Call<Real>& call) {
    move_rows(call, !call.attributes->flag("back"), false, call.in[0], call.out);
}
template <class Real>
void windows_backward(Call<Real>& call) {
    move_rows(call, call.attributes->flag("back"), call.accumulate[0], call.dout, call.din[0]);
}

std::int64_t merged_width(const NodeShape& s) {
    return 4 * s.in[0];
}
/// Calls visit(element of a quarter of y, the first element of its row in x) for this member's share.
template <class Real, class Visit>
void each_quarter(const Call<Real>& call, const Visit& visit) {
    const std::int64_t width = call.attributes->integer("width"), height = call.attributes->integer("height");
    const std::int64_t n = call.width / 4, across = width / 2, merged = across * (height / 2);
    const Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const std::int64_t first = r / merged * width * height, y = r % merged / across * 2,
                           x = r % across * 2;
        for (std::int64_t q = 0; q < 4; q++)
            visit((r * 4 + q) * n, (first + (y + q % 2) * width + x + q / 2) * n, n);
    }
}
template <class Real>
void merge_forward(Call<Real>& call) {
    each_quarter(call, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
        std::copy_n(call.in[0] + from, n, call.out + to);
    });
}
template <class Real>
void merge_backward(Call<Real>& call) {
    each_quarter(call, [&](std::int64_t from, std::int64_t to, std::int64_t n) {
        put_row(call, call.accumulate[0], n, call.dout + from, call.din[0] + to);
    });
}

std::int64_t tables(const Attributes& a) {
    return a.flag("shift") ? 4 : 1;
}
std::int64_t bias_width(const NodeShape& s) {
    const std::int64_t side = s.attributes.integer("window"), places = side * side;
    if (s.parameters[0].dim[0] != (2 * side - 1) * (2 * side - 1) ||
        s.attributes.integer("bias_keys") < places)
        throw std::logic_error("window_bias: a table of another size");
    return tables(s.attributes) * places * s.attributes.integer("bias_keys");
}
std::int64_t bias_scratch(const NodeShape& s, std::int64_t) {
    return s.parameters[0].count();
}

/// Calls visit(column of the result, row of W) for all places that see each other, and hide(column) for those
/// that do not.
template <class Visit, class Hide>
void each_bias(const Attributes& a, const Visit& visit, const Hide& hide) {
    const std::int64_t side = a.integer("window"), shift = a.integer("shift"), keys = a.integer("bias_keys");
    const std::int64_t places = side * side, near = side - shift;  // of a line that is not at the near edge
    for (std::int64_t table = 0; table < tables(a); table++)
        for (std::int64_t i = 0; i < places; i++)
            for (std::int64_t j = 0; j < places; j++) {
                const std::int64_t column = (table * places + i) * keys + j;
                const std::int64_t yi = i / side, xi = i % side, yj = j / side, xj = j % side;
                const bool apart = (table / 2 == 1 && (yi < near) != (yj < near)) ||
                                   (table % 2 == 1 && (xi < near) != (xj < near));
                if (apart)
                    hide(column);
                else
                    visit(column, (yi - yj + side - 1) * (2 * side - 1) + xi - xj + side - 1);
            }
}

template <class Real>
void bias_forward(Call<Real>& call) {
    const Tensor& w = call.parameter[0];
    const std::int64_t heads = w.shape.dim[1], distances = w.shape.dim[0];
    if (call.round == 0) {
        const Range rows = call.worker.share(distances);
        for (std::int64_t d = rows.begin; d < rows.end; d++)
            call.kernels->load(heads, w.type, w.row(d), call.scratch + d * heads);
        return;
    }
    const Range rows = call.worker.share(call.rows);
    for (std::int64_t h = rows.begin; h < rows.end; h++) {
        Real* to = call.out + h * call.width;
        std::fill_n(to, call.width, Real(0));
        each_bias(
            *call.attributes,
            [&](std::int64_t column, std::int64_t d) { to[column] = call.scratch[d * heads + h]; },
            [&](std::int64_t column) { to[column] = static_cast<Real>(unseen); });
    }
}
template <class Real>
void bias_backward(Call<Real>& call) {
    if (!call.parameter_grad[0]) return;
    const std::int64_t heads = call.rows;
    const Range rows = call.worker.share(heads);
    for (std::int64_t h = rows.begin; h < rows.end; h++)
        each_bias(
            *call.attributes,
            [&](std::int64_t column, std::int64_t d) {
                call.parameter_grad[0][d * heads + h] += call.dout[h * call.width + column];
            },
            [](std::int64_t) {});
}

}  // namespace

const Op windows_op = {
    .name = "windows",
    .inputs = 1,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { windows_forward(call); },
    .backward = [](auto& call) { windows_backward(call); },
};

const Op merge_op = {
    .name = "merge",
    .inputs = 1,
    .width = merged_width,
    .flops = no_flops,
    .forward = [](auto& call) { merge_forward(call); },
    .backward = [](auto& call) { merge_backward(call); },
};

const Op window_bias_op = {
    .name = "window_bias",
    .inputs = 0,
    .parameters = 1,
    .width = bias_width,
    .flops = no_flops,
    .forward = [](auto& call) { bias_forward(call); },
    .backward = [](auto& call) { bias_backward(call); },
    .forward_rounds = [](const auto&) { return std::int64_t{2}; },
    .scratch = bias_scratch,
};

}  // namespace linnet
