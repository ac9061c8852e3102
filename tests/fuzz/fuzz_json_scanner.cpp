// libFuzzer: a line of any bytes has the field or has not, whatever the scanner has read before; where it has
// not, the place lies in the line; and where it is refused as JSON, so it is as a tree, but for numbers.
#include <cstdlib>

#include "base/error.h"
#include "text/files/json.h"
#include "text/files/json_scanner.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    static linnet::JsonScanner used(100);
    const std::string line(reinterpret_cast<const char*>(data), size);
    std::string text, again;
    linnet::JsonFault fault;
    const bool is_good = used.extract(line, "text", text, fault);
    if (!is_good && (fault.at > size || fault.expected.empty() || !text.empty())) std::abort();
    if (linnet::JsonScanner(100).extract(line, "text", again, fault) != is_good || again != text)
        std::abort();
    const bool is_json = used.check(line, fault);
    if (is_good && !is_json) std::abort();
    try {
        const linnet::Json json(line, "fuzz");
        if (!is_json) std::abort();
    } catch (
        const linnet::Error&) {  // a repeated key, a number out of range, or what the scanner refuses too
    }
    return 0;
}
