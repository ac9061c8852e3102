#include "text/pre_names.h"

#include "base/error.h"
#include "base/nearest.h"

namespace linnet {
namespace {

constexpr PreName names[] = {
    {"gpt-2", Split::gpt2, {}, false, false},
    {"starcoder", Split::gpt2_digits, {}, false, false},
};

}  // namespace

std::span<const PreName> pre_names() {
    return names;
}

const PreName& find_pre_name(std::string_view name, std::string_view file, std::string_view where) {
    for (const PreName& p : names)
        if (p.name == name) return p;
    fail_input(file, where, "a known pre-tokenizer", "'" + std::string(name) + "'");
}

PreTokenizer pre_tokenizer_of(const PreName& name) {
    PreTokenizer pre;
    if (name.words != Split::whole) {
        PreTokenizerStep step;
        step.words = name.words;
        pre.steps.push_back(step);
    }
    return pre;
}

}  // namespace linnet
