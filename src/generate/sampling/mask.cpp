#include "generate/sampling/mask.h"

#include <bit>

namespace linnet {

void TokenMask::finish() {
    count_ = 0;
    for (std::uint64_t word : words_) count_ += static_cast<std::size_t>(std::popcount(word));
    list_.clear();
    if (!listed()) return;
    for (std::size_t i = 0; i < words_.size(); i++)
        for (std::uint64_t rest = words_[i]; rest; rest &= rest - 1)
            list_.push_back(static_cast<TokenId>(i * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
}

}  // namespace linnet
