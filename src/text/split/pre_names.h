// The names of tokenizer.ggml.pre: which pre-tokenizer a byte-level vocabulary in a GGUF was trained with.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/split/pre_tokenizer.h"

namespace linnet {

struct PreName {
    std::string_view name;
    Split words;                   // a hand-written splitter, or `whole`: then the patterns below
    std::string_view patterns[6];  // each cuts the pieces of the one before; unmatched stretches stay pieces
    bool ignore_merges = false, add_bos = false;
};

std::span<const PreName> pre_names();
/// Error(exit) with the nearest name where there is none.
const PreName& find_pre_name(std::string_view name, std::string_view file, std::string_view where,
                             Exit exit = Exit::input);
PreTokenizer pre_tokenizer_of(const PreName& name);
/// The name whose steps these are, with the same `ignore_merges` where there is such a name; or an empty one.
std::string_view pre_name_of(const PreTokenizer& pre_tokenizer, bool ignore_merges);

}  // namespace linnet
