// How often rows of each class were taken for each: of the held-out examples, at an evaluation.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace linnet {

class Confusion {
  public:
    /// Beyond so many classes only the accuracy is told: a table of more is no longer looked at, nor kept.
    static constexpr std::size_t most_shown = 64;

    /// No classes: nothing is counted.
    explicit Confusion(std::size_t classes)
        : classes_(classes), counts_(classes > most_shown ? 0 : classes * classes) {}

    /// Logits [rows, classes], and each row's class; -1: not known.
    void add(std::span<const float> logits, std::span<const std::int32_t> targets);

    bool any() const { return rows_ > 0; }
    double accuracy() const;  // share of rows that were taken for what they are
    bool has_table() const { return any() && !counts_.empty(); }
    /// "labels", and "counts": for each class, in their order, a list of what its rows were taken for. Needs
    /// has_table().
    nlohmann::ordered_json to_json(const std::vector<std::string>& labels) const;

  private:
    std::size_t classes_;
    std::vector<std::int64_t> counts_;  // [class, taken for]
    std::int64_t rows_ = 0, right_ = 0;
};

}  // namespace linnet
