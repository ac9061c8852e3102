// Whether a step's gradient norm is far beyond those before it (train.skip_outliers).
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace linnet {

/// Fed every step's norm, in order, skipped steps' too: where large norms come to stay they are soon not
/// outliers any more. Its state lies in checkpoints. After OLMo 2 (Walsh et al. 2025; its SkipStepOptimizer).
class OutlierGate {
  public:
    static constexpr std::size_t window = 128, least = 32;

    /// The norm above which a step is skipped: mean + deviations · standard deviation of the last `window`
    /// norms; infinity while there are fewer than `least`, or where deviations is 0.
    double limit(double deviations) const;
    void observe(double norm);

    const std::vector<double>& norms() const { return norms_; }
    std::int64_t skipped() const { return skipped_; }
    void count_skipped() { skipped_++; }
    nlohmann::json to_json() const;
    /// Error(json::exception) for other JSON.
    static OutlierGate from_json(const nlohmann::json& json);

  private:
    std::vector<double> norms_;  // the oldest first
    std::int64_t skipped_ = 0;
};

}  // namespace linnet
