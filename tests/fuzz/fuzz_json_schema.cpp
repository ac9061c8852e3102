// libFuzzer: any bytes as a JSON schema are a grammar that can be compiled, or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generate/grammar/json_schema.h"
#include "generate/grammar/program.h"
#include "text/train/make.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static const TokenizerPtr tokenizer = byte_tokenizer();
    static const GrammarVocabulary vocabulary(*tokenizer);
    try {
        const Grammar grammar = read_json_schema({reinterpret_cast<const char*>(data), size}, "fuzz");
        const GrammarProgram program(grammar, vocabulary, "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
