#include "text/split/pre_names.h"

#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/split.h"
#include "text/unicode/regex.h"

namespace linnet {
namespace {

// Shared stages. The names and what each stands for are those of GGUF's writers and readers; where llama.cpp
// only approximates the tokenizer.json of the model (it cannot say \p{Lu}), the model's own pattern stands
// here.
constexpr std::string_view one_digit = digit_pattern;
constexpr std::string_view three_digits = "[0-9][0-9][0-9]";
constexpr std::string_view up_to_three = "\\p{N}{1,3}";
constexpr std::string_view bloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kana_and_han = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view deepseek_letters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}ℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view deepseek_marks = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view deepseek_han = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view falcon_marks = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view default_marks = R"([\p{P}\$\+<=>\^~\|]+)";

constexpr Split none = Split::whole;
constexpr PreName names[] = {
    // name, hand-written splitter, stages, ignore_merges, add_bos
    {"default", none, {default_marks, gpt2_pattern, "\\p{N}+", three_digits}},
    {"gpt-2", Split::gpt2, {}},
    {"mpt", Split::gpt2, {}},
    {"olmo", Split::gpt2, {}},
    {"jais", Split::gpt2, {}},
    {"phi-2", Split::gpt2, {}},
    {"jina-es", Split::gpt2, {}},
    {"jina-de", Split::gpt2, {}},
    {"jina-v1-en", Split::gpt2, {}},
    {"jina-v2-es", Split::gpt2, {}},
    {"jina-v2-de", Split::gpt2, {}},
    {"jina-v2-code", Split::gpt2, {}},
    {"roberta-bpe", Split::gpt2, {}},
    {"gigachat", Split::gpt2, {}},
    {"modern-bert", Split::gpt2, {}},
    {"exaone4", Split::gpt2, {}},
    {"mellum", Split::gpt2, {}},
    {"a.x-4.0", Split::gpt2, {}},
    {"trillion", Split::gpt2, {}},
    {"granite-docling", Split::gpt2, {}},
    {"starcoder", Split::gpt2_digits, {}},
    {"refact", Split::gpt2_digits, {}},
    {"command-r", Split::gpt2_digits, {}},
    {"smollm", Split::gpt2_digits, {}},
    {"codeshell", Split::gpt2_digits, {}},
    {"exaone", Split::gpt2_digits, {}},
    {"minerva-7b", Split::gpt2_digits, {}},
    {"dbrx", Split::cl100k, {}},  // before cl100k, a name that llama.cpp has not
    {"cl100k", Split::cl100k, {}},
    {"smaug-bpe", Split::cl100k, {}},
    {"chatglm-bpe", Split::cl100k, {}},
    {"glm4", Split::cl100k, {}},
    {"llama-bpe", Split::llama3, {}, true, true},
    {"llama3", Split::llama3, {}, true, true},
    {"llama-v3", Split::llama3, {}, true, true},
    {"falcon3", Split::llama3, {}, true, true},
    {"falcon-h1", Split::llama3, {}, true, true},
    {"pixtral", Split::llama3, {}, true, true},
    {"lfm2", Split::llama3, {}, true, true},
    {"qwen2", Split::qwen2, {}},
    {"stablelm2", Split::qwen2, {}},
    {"deepseek-r1-qwen", Split::qwen2, {}},
    {"megrez", Split::qwen2, {}},
    {"hunyuan", Split::qwen2, {}},
    {"grok-2", Split::qwen2, {}},
    {"gpt-4o", Split::o200k, {}},
    {"o200k", Split::o200k, {}},
    {"llama4", Split::o200k, {}},
    {"kanana2", Split::o200k, {}},
    {"minimax-m2", Split::o200k, {}},
    {"tekken", Split::tekken, {}, true, true},
    {"deepseek-llm", none, {"[\\r\\n]", deepseek_letters, deepseek_marks, "\\s+$", deepseek_han, "\\p{N}+"}},
    {"deepseek-coder", none, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", deepseek_han, one_digit}},
    {"deepseek-v3", none, {up_to_three, kana_and_han, deepseek3}},
    {"hunyuan-dense", none, {up_to_three, kana_and_han, deepseek3}},
    {"falcon", none, {falcon_marks, gpt2_pattern, three_digits}},
    {"bloom", none, {bloom}},
    {"poro-chat", none, {bloom}},
    {"gpt3-finnish", none, {bloom}},
    {"viking", none, {bloom, one_digit}},
};

}  // namespace

std::span<const PreName> pre_names() {
    return names;
}

const PreName& find_pre_name(std::string_view name, std::string_view file, std::string_view where,
                             Exit exit) {
    std::vector<std::string> known;
    for (const PreName& p : names) {
        if (p.name == name) return p;
        known.emplace_back(p.name);
    }
    const auto near = nearest(name, known);
    const std::string expected =
        exit == Exit::usage ? "one of " + joined(known) : std::string("the name of a pre-tokenizer");
    fail(exit, file, where, expected, "'" + std::string(name) + "'",
         near ? "did you mean '" + *near + "'?" : std::string());
}

PreTokenizer pre_tokenizer_of(const PreName& name) {
    PreTokenizer pre;
    auto add_words = [&](Split words) {
        PreTokenizerStep step;
        step.words = words;
        pre.steps.push_back(std::move(step));
    };
    if (name.words != Split::whole) add_words(name.words);
    for (std::string_view pattern : name.patterns) {
        if (pattern.empty()) break;
        if (Split words = split_of_pattern(pattern); words != Split::whole) {
            add_words(words);
            continue;
        }
        PreTokenizerStep step;
        step.kind = PreTokenizerStep::Kind::pattern;
        step.regex = std::make_shared<const Regex>(pattern, "tokenizer.ggml.pre", name.name);
        pre.steps.push_back(std::move(step));
    }
    return pre;
}

std::string_view pre_name_of(const PreTokenizer& pre, bool ignore_merges) {
    if (pre.has_spelled()) return {};
    // An expression does not say which of the two it is of.
    auto one = [](Split words) { return words == Split::llama3 ? Split::cl100k : words; };
    auto same = [&](const PreTokenizerStep& step, Split words, std::string_view pattern) {
        using Kind = PreTokenizerStep::Kind;
        if (words == Split::whole) words = split_of_pattern(pattern);
        if (words != Split::whole) return step.kind == Kind::words && one(step.words) == one(words);
        return step.kind == Kind::pattern && step.regex && step.regex->pattern() == pattern && !step.invert &&
               step.behavior == SplitBehavior::isolated;
    };
    std::string_view close;
    for (const PreName& name : names) {
        std::size_t count = name.words != Split::whole;
        bool all = count == 0 || (!pre.steps.empty() && same(pre.steps[0], name.words, {}));
        for (std::string_view pattern : name.patterns) {
            if (pattern.empty()) break;
            all = all && count < pre.steps.size() && same(pre.steps[count], Split::whole, pattern);
            count++;
        }
        if (!all || count != pre.steps.size()) continue;
        if (name.ignore_merges == ignore_merges) return name.name;
        if (close.empty()) close = name.name;
    }
    return close;
}

}  // namespace linnet
