// A vector whose places are ids: numbers that are -1 where there is none, and therefore signed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace linnet {

/// A std::vector that takes an id as an index, too. The id is in range: nothing is checked.
template <class T>
class ById : public std::vector<T> {
  public:
    using Base = std::vector<T>;
    using Base::Base;
    ById(Base other) : Base(std::move(other)) {}

    using Base::operator[];
    decltype(auto) operator[](std::int32_t id) { return Base::operator[](static_cast<std::size_t>(id)); }
    decltype(auto) operator[](std::int32_t id) const {
        return Base::operator[](static_cast<std::size_t>(id));
    }
};

}  // namespace linnet
