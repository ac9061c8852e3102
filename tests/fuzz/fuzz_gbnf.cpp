// libFuzzer: any bytes as a GBNF grammar are one that can be followed, or an Error.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "generate/grammar/constraint.h"
#include "generate/grammar/gbnf.h"
#include "text/train/make.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static const TokenizerPtr tokenizer = byte_tokenizer();
    static const auto vocabulary = std::make_shared<GrammarVocabulary>(*tokenizer);
    try {
        const Grammar grammar = read_gbnf({reinterpret_cast<const char*>(data), size}, "fuzz");
        GrammarCursor cursor(std::make_shared<TokenConstraint>(grammar, *tokenizer, vocabulary, "fuzz"),
                             true);
        for (int i = 0; i < 4 && !cursor.must_end(); i++) {
            const TokenMask& mask = cursor.mask(false);
            if (mask.count() == 0) std::abort();
            std::string bytes;
            tokenizer->decode(mask.list().front(), false, bytes);
            if (bytes.empty()) break;
            if (!cursor.advance(bytes)) std::abort();
        }
    } catch (const Error&) {
    }
    return 0;
}
