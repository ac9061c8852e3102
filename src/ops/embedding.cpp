// The row of a table that each token, or each position, names.
#include <cmath>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

template <class Real>
void gather_row(const Call<Real>& call, std::int64_t index, Real* out) {
    const Tensor& table = call.parameter[0];
    call.kernels->load(call.width, table.type, table.row(index), out);
}

/// Adds every row of dy to the row of `grad` that `index` names; a member owns a range of columns and walks
/// the rows in order, so that the sums do not depend on the team.
template <class Real>
void scatter_rows(const Call<Real>& call, std::span<const std::int32_t> index) {
    if (!call.parameter_grad[0]) return;
    Range columns = call.worker.share(call.width, 16);
    for (std::int64_t r = 0; r < call.rows; r++) {
        Real* to = call.parameter_grad[0] + index[static_cast<std::size_t>(r)] * call.width + columns.begin;
        call.kernels->add(columns.size(), to, call.dout + r * call.width + columns.begin, to);
    }
}

// Tokens: y[r] = E[token r].  E [V,C].
std::int64_t table_width(const NodeShape& s) {
    return s.parameters[0].dim[1];
}

template <class Real>
void embed(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        gather_row(call, call.ids[static_cast<std::size_t>(r)], call.out + r * call.width);
}

template <class Real>
void embed_backward(Call<Real>& call) {
    scatter_rows(call, call.ids);
}

// Learned positions: y[r] = x[r] + P[position r].  P [T,C].
std::int64_t position_width(const NodeShape& s) {
    if (s.parameters[0].dim[1] != s.in[0])
        throw std::logic_error("position_embedding: table does not fit its input");
    return s.in[0];
}

template <class Real>
void add_position(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Real* out = call.out + r * call.width;
        gather_row(call, call.space->positions[static_cast<std::size_t>(r)], out);
        call.kernels->add(call.width, call.in[0] + r * call.width, out, out);
    }
}

template <class Real>
void add_position_backward(Call<Real>& call) {
    scatter_rows(call, call.space->positions);
}

/// entry(position, column) for all columns of some positions.
template <class Entry>
std::vector<double> table_of(std::int64_t width, Range positions, Entry entry) {
    std::vector<double> table;
    table.reserve(static_cast<std::size_t>(positions.size() * width));
    for (std::int64_t t = positions.begin; t < positions.end; t++)
        for (std::int64_t c = 0; c < width; c++) table.push_back(entry(t, c));
    return table;
}

// Sinusoids (Vaswani et al. 2017, section 3.5): PE(t, 2i) = sin(t / 10000^(2i/C)), PE(t, 2i+1) = cos of the
// same.
std::vector<double> sinusoids(const NodeShape& s, std::int64_t, Range positions) {
    return table_of(s.in[0], positions, [&](std::int64_t t, std::int64_t c) {
        const double angle = static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(c / 2 * 2) /
                                                                            static_cast<double>(s.in[0]));
        return c % 2 ? std::cos(angle) : std::sin(angle);
    });
}

// The position in binary: its k-th bit, 0 or 1, for column k, and 0 for columns beyond.
std::vector<double> position_bits(const NodeShape& s, std::int64_t, Range positions) {
    return table_of(s.in[0], positions, [](std::int64_t t, std::int64_t c) {
        return c < 63 ? static_cast<double>(t >> c & 1) : 0.0;
    });
}

template <class Real>
void add_table_row(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        call.kernels->add(call.width, call.in[0] + r * call.width,
                          call.constants + call.space->positions[static_cast<std::size_t>(r)] * call.width,
                          call.out + r * call.width);
}

template <class Real>
void nothing(Call<Real>&) {}

/// The input plus a row of a table that is not trained.
constexpr Op adds_table(std::string_view name, decltype(Op::position_table) table) {
    return {
        .name = name,
        .inputs = 1,
        .width = input_width,
        .flops = no_flops,
        .forward = [](auto& call) { add_table_row(call); },
        .backward = [](auto& call) { nothing(call); },
        .passes_gradient = true,
        .position_table = table,
    };
}

}  // namespace

const Op embedding_op = {
    .name = "embedding",
    .inputs = 0,
    .parameters = 1,
    .width = table_width,
    .flops = no_flops,
    .forward = [](auto& call) { embed(call); },
    .backward = [](auto& call) { embed_backward(call); },
    .stream = true,
};

const Op position_embedding_op = {
    .name = "position_embedding",
    .inputs = 1,
    .parameters = 1,
    .width = position_width,
    .flops = no_flops,
    .forward = [](auto& call) { add_position(call); },
    .backward = [](auto& call) { add_position_backward(call); },
    .passes_gradient = true,
};

constinit const Op sinusoidal_op = adds_table("sinusoidal", sinusoids);
constinit const Op position_bits_op = adds_table("position_bits", position_bits);

}  // namespace linnet
