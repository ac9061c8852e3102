#include "train/confusion.h"

#include <algorithm>

namespace linnet {

void Confusion::add(std::span<const float> logits, std::span<const std::int32_t> targets) {
    if (classes_ == 0) return;
    for (std::size_t row = 0; row < targets.size(); row++) {
        if (targets[row] < 0) continue;
        const auto from = logits.subspan(row * classes_, classes_);
        const auto guess =
            static_cast<std::size_t>(std::max_element(from.begin(), from.end()) - from.begin());
        const auto own = static_cast<std::size_t>(targets[row]);
        if (!counts_.empty()) counts_[own * classes_ + guess]++;
        right_ += guess == own;
        rows_++;
    }
}

double Confusion::accuracy() const {
    return static_cast<double>(right_) / static_cast<double>(std::max<std::int64_t>(rows_, 1));
}

nlohmann::ordered_json Confusion::to_json(const std::vector<std::string>& labels) const {
    auto rows = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < classes_; i++)
        rows.push_back(
            std::vector<std::int64_t>(counts_.begin() + static_cast<std::ptrdiff_t>(i * classes_),
                                      counts_.begin() + static_cast<std::ptrdiff_t>((i + 1) * classes_)));
    return {{"labels", labels}, {"counts", rows}};
}

}  // namespace linnet
