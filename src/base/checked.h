// Arithmetic on numbers that came from a file: overflow is an error, never a wrap.
#pragma once
#include <cstdint>
#include <optional>
#include <type_traits>

namespace linnet {

/// a + b, a * b, or nothing where the result does not fit T.
template <class T>
std::optional<T> checked_add(T a, T b) {
    T r;
    if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
    return r;
}

template <class T>
std::optional<T> checked_mul(T a, T b) {
    T r;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}

/// The smallest multiple of `unit` (a positive number) that is at least n; nothing on overflow.
template <class T>
std::optional<T> checked_round_up(T n, T unit) {
    T rest = n % unit;
    return rest == 0 ? std::optional<T>(n) : checked_add<T>(n, unit - rest);
}

}  // namespace linnet
