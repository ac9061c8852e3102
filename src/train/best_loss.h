// Which evaluation of a run was the best, and whether the model is overfitting.
#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace linnet {

/// Fed the validation loss of every regular evaluation, in order. Its state lies in checkpoints, so that a
/// resumed run decides as one that was never stopped.
class BestLoss {
  public:
    /// Whether this is the best so far.
    bool observe(std::int64_t step, double loss);
    bool beats_best(double loss) const { return loss < best_loss_; }
    /// Validation has been above its best for several evaluations, and clearly so.
    bool overfitting() const;

    bool any() const { return best_step_ >= 0; }
    std::int64_t best_step() const { return best_step_; }

    nlohmann::json to_json() const;
    /// Error(json::exception) for other JSON.
    static BestLoss from_json(const nlohmann::json& json);

  private:
    std::int64_t best_step_ = -1;
    double best_loss_ = std::numeric_limits<double>::infinity();
    double last_loss_ = 0;
    std::int64_t since_ = 0;  // evaluations since the best
};

}  // namespace linnet
