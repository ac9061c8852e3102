#include "data/layouts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/split.h"

namespace linnet {
namespace {

constexpr std::string_view files_of_splits[2] = {"train", "val"};  // how their names begin

}  // namespace

const std::vector<CorpusLayout>& corpus_layouts() {
    // Megatron-LM takes 16 bits below 65 500 tokens, and files named as its preprocessing names them.
    static const std::vector<CorpusLayout> all = {
        {.name = "llmc", .stem = "_#", .narrow = 65536, .wide = true, .header_bytes = llmc_header_bytes},
        {.name = "nanogpt", .stem = "", .narrow = 65536, .cuts_one_text = true},
        {.name = "megatron", .stem = "_text_document", .narrow = 65499, .wide = true, .index = true},
    };
    return all;
}

std::vector<std::string> layout_names() {
    return names_of(corpus_layouts());
}

const CorpusLayout* find_layout(std::string_view name) {
    for (const CorpusLayout& layout : corpus_layouts())
        if (layout.name == name) return &layout;
    return nullptr;
}

int CorpusLayout::token_bytes(TokenId vocab_size) const {
    if (vocab_size <= narrow) return 2;
    if (!wide)
        fail(Exit::usage, "", "--format " + std::string(name),
             "a vocabulary of at most " + std::to_string(narrow) + " tokens", std::to_string(vocab_size));
    return 4;
}

std::string CorpusLayout::file(std::string_view split, std::size_t number) const {
    std::string out(files_of_splits[split == split_names[0] ? 0 : 1]);
    for (char c : stem) {
        char digits[24];
        std::snprintf(digits, sizeof digits, "%06zu", number);
        if (c == '#')
            out += digits;
        else
            out += c;
    }
    return out;
}

bool CorpusLayout::owns(std::string_view name) const {
    const std::size_t dot = std::min(name.rfind('.'), name.size());
    const std::string_view suffix = name.substr(dot);
    if (suffix != ".bin" && suffix != ".part" && (!index || (suffix != ".idx" && suffix != ".starts")))
        return false;
    for (std::string_view split : files_of_splits) {
        if (!name.starts_with(split)) continue;
        std::string_view rest = name.substr(split.size(), dot - split.size());
        if (!many_shards()) return rest == stem;
        const std::string_view before = stem.substr(0, stem.find('#'));
        if (!rest.starts_with(before)) continue;
        rest.remove_prefix(before.size());
        return rest.size() >= 6 && rest.find_first_not_of("0123456789") == rest.npos;
    }
    return false;
}

void store_tokens(std::span<const TokenId> ids, int token_bytes, char* to) {
    if (token_bytes == 4) {
        std::memcpy(to, ids.data(), ids.size_bytes());
        return;
    }
#pragma omp simd
    for (std::size_t i = 0; i < ids.size(); i++) {
        const auto narrow = static_cast<std::uint16_t>(ids[i]);
        std::memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

}  // namespace linnet
