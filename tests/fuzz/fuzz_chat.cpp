// libFuzzer: any text as a conversation's file is read, as a chat template's lays a conversation out, and as
// a model file's own template is recognised; or it is an Error.
#include <optional>

#include "base/error.h"
#include "chat/messages.h"
#include "input.h"
#include "text/chat/template.h"
#include "text/train/make.h"

namespace {

using namespace linnet;

void lay_out(const ChatTemplate& form) {
    static const TokenizerPtr tokenizer = byte_tokenizer();
    const ChatTurn turns[] = {{"Who is there?", ChatTurn::Answer{"Nobody.", {}}}, {" Ok ", {}}};
    encode_chat(*tokenizer, chat_parts(form, "Be short.", turns));
    end_tokens(*tokenizer, form);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = fuzz::Input(data, size).rest();
    try {
        for (const ChatMessage& message : parse_messages(text, "fuzz"))
            if (message.role.empty()) std::abort();
    } catch (const Error&) {
    }
    std::optional<ChatTemplate> form;
    try {
        form = parse_chat_template(text, "fuzz");
    } catch (const Error&) {
    }
    if (form) lay_out(*form);
    try {
        recognise_chat_template(text, chat_templates(), "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
