#include "train/outliers.h"

#include <cmath>
#include <limits>

namespace linnet {

double OutlierGate::limit(double deviations) const {
    if (deviations == 0 || norms_.size() < least) return std::numeric_limits<double>::infinity();
    const auto n = static_cast<double>(norms_.size());
    double mean = 0, square = 0;
    for (double norm : norms_) mean += norm / n;
    for (double norm : norms_) square += (norm - mean) * (norm - mean) / (n - 1);
    return mean + deviations * std::sqrt(square);
}

void OutlierGate::observe(double norm) {
    norms_.push_back(norm);
    if (norms_.size() > window) norms_.erase(norms_.begin());
}

nlohmann::json OutlierGate::to_json() const {
    return {{"last", norms_}, {"skipped", skipped_}};
}

OutlierGate OutlierGate::from_json(const nlohmann::json& json) {
    OutlierGate gate;
    gate.norms_ = json.at("last").get<std::vector<double>>();
    if (gate.norms_.size() > window)
        gate.norms_.erase(gate.norms_.begin(), gate.norms_.end() - static_cast<std::ptrdiff_t>(window));
    gate.skipped_ = json.at("skipped").get<std::int64_t>();
    return gate;
}

}  // namespace linnet
