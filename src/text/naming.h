// Which text a tokenizer did not know.
#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace linnet {

/// act(), which encodes the text that errors are to call `name`: what a tokenizer refuses, it calls "text".
template <class Act>
auto naming(std::string_view name, const Act& act) {
    try {
        return act();
    } catch (const Error& error) {
        constexpr std::string_view nameless = "text: ";
        const std::string_view line = error.what();
        if (!line.starts_with(nameless)) throw;
        throw Error(error.exit(), std::string(name) + ": " + std::string(line.substr(nameless.size())));
    }
}

}  // namespace linnet
