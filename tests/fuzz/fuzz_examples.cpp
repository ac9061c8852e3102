// libFuzzer: any bytes as JSON Lines of prompts or conversations are examples to learn from, or an Error.
#include "base/error.h"
#include "data/examples.h"
#include "folder.h"
#include "input.h"
#include "text/chat/template.h"
#include "text/train/make.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    static const TokenizerPtr tokenizer = byte_tokenizer();
    const std::string path = folder.with("examples.jsonl", fuzz::Input(data, size).rest());
    try {
        are_examples({path}, {});
        const Examples examples = read_examples({path}, {});
        for (const Example& example : examples.list) {
            const PackedText text = encode_example(*tokenizer, example, &chat_templates()[0]);
            if (text.ids.size() != text.scored.size() || example.messages.empty() == examples.chats)
                std::abort();
        }
        if (held_out_examples(examples, 0.1).size() != examples.list.size()) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
