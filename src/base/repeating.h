// A setting that is one value, or a list that repeats: the layers of a model take theirs in turn.
#pragma once
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace linnet {

template <class T>
class Repeating {
  public:
    using Element = T;

    Repeating() : list_{T()} {}
    template <std::convertible_to<T> U>
    Repeating(const U& one) : list_{T(one)} {}
    /// `list` must not be empty.
    explicit Repeating(std::vector<T> list) : list_(std::move(list)) {}

    /// The value of layer `index` (from 0).
    typename std::vector<T>::const_reference at(std::int64_t index) const {
        return list_[static_cast<std::size_t>(index) % list_.size()];
    }
    bool is_list() const { return list_.size() > 1; }
    const std::vector<T>& list() const { return list_; }

    /// The shortest list that says the same of the first `count` layers (of one value: no list).
    void shorten(std::int64_t count) {
        auto repeats_after = [&](std::int64_t period) {
            for (std::int64_t i = period; i < count; i++)
                if (at(i) != at(i % period)) return false;
            return true;
        };
        std::int64_t period = 1;
        while (static_cast<std::size_t>(period) < list_.size() && !repeats_after(period)) period++;
        list_.resize(static_cast<std::size_t>(period));
    }

    bool operator==(const Repeating&) const = default;

  private:
    std::vector<T> list_;
};

}  // namespace linnet
