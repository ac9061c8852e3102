// How a matrix product is divided over threads.
#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace linnet {
namespace {

/// The part `index` of [begin, end) in `count` parts cut at multiples of tile.
void cut_range(std::int64_t& begin, std::int64_t& end, std::int64_t tile, int index, int count) {
    std::int64_t first = begin, last = end, tiles = (last - first + tile - 1) / tile;
    begin = std::min(last, first + tiles * index / count * tile);
    end = std::min(last, first + tiles * (index + 1) / count * tile);
}

}  // namespace

template <class Real>
Gemm<Real> gemm_share(const ProductCut& cut, const Gemm<Real>& whole, int index, int count) {
    double m = static_cast<double>(whole.m_end - whole.m_begin),
           n = static_cast<double>(whole.n_end - whole.n_begin);
    auto tiles_of = [](double size, std::int64_t tile, int parts) {  // in the largest part, in elements
        double tiles =
            std::max(1.0, static_cast<double>((static_cast<std::int64_t>(size) + tile - 1) / tile));
        return static_cast<double>((static_cast<std::int64_t>(tiles) + parts - 1) / parts * tile);
    };
    int best_rows = 1;
    double best_cost = 0;
    for (int rows = 1; rows <= count; rows++) {
        if (count % rows) continue;
        double part_m = tiles_of(m, cut.tile_m, rows), part_n = tiles_of(n, cut.tile_n, count / rows);
        double blocks = std::ceil(part_m / static_cast<double>(cut.block_m));
        double cost = part_m * part_n + cut.packing_a * part_m + cut.packing_b * part_n * blocks;
        if (rows == 1 || cost < best_cost) best_rows = rows, best_cost = cost;
    }
    Gemm<Real> part = whole;
    int columns = count / best_rows;
    cut_range(part.m_begin, part.m_end, cut.tile_m, index / columns, best_rows);
    cut_range(part.n_begin, part.n_end, cut.tile_n, index % columns, columns);
    if (part.n_begin >= part.n_end) part.m_end = part.m_begin;
    return part;
}

template Gemm<float> gemm_share(const ProductCut&, const Gemm<float>&, int, int);
template Gemm<double> gemm_share(const ProductCut&, const Gemm<double>&, int, int);

}  // namespace linnet
