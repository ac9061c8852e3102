// A short list that lives where its owner lives: no allocation, a fixed capacity.
#pragma once
#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>

namespace linnet {

/// At most N elements. More than that is a bug of ours: std::logic_error.
template <class T, std::size_t N>
class Small {
  public:
    constexpr Small() = default;
    constexpr Small(std::initializer_list<T> values) {
        for (const T& value : values) push_back(value);
    }
    constexpr explicit Small(std::size_t count, const T& value) {
        for (std::size_t i = 0; i < count; i++) push_back(value);
    }

    constexpr void push_back(const T& value) {
        if (size_ == N) throw std::logic_error("a short list has no room for another element");
        items_[size_++] = value;
    }
    constexpr std::size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    static constexpr std::size_t capacity() { return N; }
    constexpr T& operator[](std::size_t i) { return items_[i]; }
    constexpr const T& operator[](std::size_t i) const { return items_[i]; }
    constexpr T* begin() { return items_.data(); }
    constexpr T* end() { return items_.data() + size_; }
    constexpr const T* begin() const { return items_.data(); }
    constexpr const T* end() const { return items_.data() + size_; }

  private:
    std::array<T, N> items_{};
    std::size_t size_ = 0;
};

}  // namespace linnet
