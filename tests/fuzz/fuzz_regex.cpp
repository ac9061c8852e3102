// libFuzzer: the first line as a regular expression of a tokenizer file finds matches in the rest, which lie
// in it, in order and not empty; or it is an Error.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/unicode/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t line = std::min(input.find('\n'), size);
    std::string text;  // expressions are matched against UTF-8 alone
    for (char c : input.substr(std::min(line + 1, size))) text += static_cast<char>(c & 0x7F);
    try {
        const Regex regex(input.substr(0, line), "fuzz", "pattern");
        Regex::Matches matches(regex, text);
        for (std::size_t last = 0, begin = 0, end = 0; matches.next(begin, end); last = end)
            if (begin < last || begin >= end || end > text.size()) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
