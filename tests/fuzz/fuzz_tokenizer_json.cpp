// libFuzzer: a file of any bytes is a tokenizer or an Error.
#include "base/error.h"
#include "input.h"
#include "text/files/tokenizer_json.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view text = fuzz::Input(data, size).rest();
    try {
        fuzz::walk(*tokenizer_from_json(text, "fuzz"), text);
    } catch (const Error&) {
    }
    return 0;
}
