// libFuzzer: any text as a conversation's file and as a chat template's is read or is an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "chat/messages.h"
#include "text/chat/template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        parse_messages(text, "fuzz");
    } catch (const Error&) {
    }
    try {
        parse_chat_template(text, "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
