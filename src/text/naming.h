// Which text a tokenizer cannot encode, and from which byte on: it calls it "text", its callers know its
// name.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace linnet {

/// What cannot be encoded at a byte of a text, as Error(Exit::input): "text: byte AT: expected …". Who was
/// given only a part of the text counts within that; behind() mends it.
class TextFault : public Error {
  public:
    TextFault(std::size_t at, std::string_view expected, std::string_view got, std::string_view hint = {})
        : TextFault(at, rest_of(expected, got, hint)) {}
    /// The same where `before` bytes of the text stand before the part.
    TextFault behind(std::size_t before) const { return {before + at_, rest_}; }

  private:
    TextFault(std::size_t at, const std::string& rest)
        : Error(Exit::input, "text: byte " + std::to_string(at) + ": " + rest), at_(at), rest_(rest) {}
    static std::string rest_of(std::string_view expected, std::string_view got, std::string_view hint) {
        try {
            fail_input("", "", expected, got, hint);
        } catch (const Error& error) {
            return error.what();
        }
    }
    std::size_t at_;
    std::string rest_;
};

/// act(), which encodes a part of a text that `before` bytes stand before (or as many as that answers, asked
/// when there is a fault).
template <class Before, class Act>
auto behind(const Before& before, const Act& act) {
    try {
        return act();
    } catch (const TextFault& fault) {
        if constexpr (std::is_invocable_v<const Before&>)
            throw fault.behind(before());
        else
            throw fault.behind(before);
    }
}

/// act(), which encodes the text that errors are to call `name` (or what that answers, asked when there is
/// one): what a tokenizer refuses, it calls "text".
template <class Name, class Act>
auto naming(const Name& name, const Act& act) {
    try {
        return act();
    } catch (const Error& error) {
        constexpr std::string_view nameless = "text: ";
        const std::string_view line = error.what();
        if (!line.starts_with(nameless)) throw;
        std::string named;
        if constexpr (std::is_invocable_v<const Name&>)
            named = name();
        else
            named = name;
        throw Error(error.exit(), named + ": " + std::string(line.substr(nameless.size())));
    }
}

}  // namespace linnet
