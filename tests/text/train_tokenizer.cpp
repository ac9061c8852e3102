#include "support.h"
#include "text/train/make.h"

namespace linnet {

TokenizerPtr train_tokenizer(std::string_view kind, std::string_view text, TokenId vocab_size, int threads) {
    return made_tokenizer(kind, text, vocab_size, false, {}, threads);
}

}  // namespace linnet
