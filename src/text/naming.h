// Errors about text that cannot be encoded: a tokenizer knows the place in the part that it was given, its
// callers the text's name and where the part begins.
#pragma once
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace linnet {

/// What keeps a text from being encoded. Who finds it knows neither the text's name nor, given only a part
/// of the text, what stands before that: naming() and behind() fill these in.
struct TextFault {
    std::string name = "text";
    std::optional<std::size_t> byte{};  // where it is
    std::string found_by{};             // where that is not known
    std::string expected{}, got{}, hint{};

    std::string line() const {
        return error_line(name, byte ? "byte " + std::to_string(*byte) : found_by, expected, got, hint);
    }
};

/// Thrown by what encodes: Error(Exit::input) with the fault's line.
class TextError : public Error {
  public:
    explicit TextError(TextFault fault) : Error(Exit::input, fault.line()), fault_(std::move(fault)) {}
    const TextFault& fault() const { return fault_; }

  private:
    TextFault fault_;
};

/// `given`, or what it answers where it can be called.
template <class T>
decltype(auto) asked(const T& given) {
    if constexpr (std::is_invocable_v<const T&>)
        return given();
    else
        return (given);
}

/// act(), which encodes a part of a text that `before` bytes stand before (or as many as that answers, asked
/// when there is a fault).
template <class Before, class Act>
auto behind(const Before& before, const Act& act) {
    try {
        return act();
    } catch (const TextError& error) {
        TextFault fault = error.fault();
        if (fault.byte) *fault.byte += asked(before);
        throw TextError(std::move(fault));
    }
}

/// act(), which encodes the text that errors are to call `name` (or what that answers, asked when there is
/// one).
template <class Name, class Act>
auto naming(const Name& name, const Act& act) {
    try {
        return act();
    } catch (const TextError& error) {
        TextFault fault = error.fault();
        fault.name = asked(name);
        throw Error(Exit::input, fault.line());  // whole: who names a larger text leaves it as it is
    }
}

}  // namespace linnet
