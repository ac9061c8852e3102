// The matrix that is nearest to orthogonal in a gradient's direction, for Muon.
#pragma once
#include <cstdint>

#include "base/team.h"
#include "ops/matmul.h"

namespace linnet {

/// Makes the singular values of X [rows, columns] about 1 by Newton–Schulz steps: K. Jordan et al. 2024,
/// "Muon: an optimizer for hidden layers in neural networks", whose quintic a·X + (b·A + c·A²)·X, A = X·Xᵀ,
/// brings values of [0, 1] to about [0.7, 1.2] in five steps. It works on the smaller side: for more rows
/// than columns A = Xᵀ·X.
class Orthogonaliser {
  public:
    static constexpr int steps = 5;
    static constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
    static constexpr int stages = 3 * steps;  // of a team, one after another

    /// Floats of scratch that a matrix needs besides X.
    static std::int64_t scratch(std::int64_t rows, std::int64_t columns) {
        std::int64_t n = rows < columns ? rows : columns;
        return rows * columns + 2 * n * n;
    }

    /// x: [rows, columns] with a Frobenius norm of at most 1. scratch: as many floats as scratch() says, the
    /// same for all stages. (The paper's own products are rounded to bf16.)
    Orthogonaliser(std::int64_t rows, std::int64_t columns, float* x, float* scratch,
                   const PanelProduct<float>& product);

    /// A part of stage `stage`; stages come in order, all parts of one before any of the next. workspace:
    /// the product's.
    void run(int stage, Worker part, void* workspace) const;

    /// Where the result is, after the last stage.
    const float* result() const { return steps % 2 ? other_ : x_; }

  private:
    std::int64_t rows_, columns_, n_;
    float *x_, *other_, *square_, *polynomial_;  // [rows, columns] twice, [n, n] twice
    PanelProduct<float> product_;
};

}  // namespace linnet
