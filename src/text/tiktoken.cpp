#include <array>
#include <charconv>

#include "base/error.h"
#include "text/bpe.h"
#include "text/foreign.h"
#include "text/pipeline.h"
#include "text/pre_names.h"

namespace linnet {
namespace {

constexpr std::array<std::int8_t, 256> base64_digit = [] {
    std::array<std::int8_t, 256> t{};
    for (auto& d : t) d = -1;
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < digits.size(); i++)
        t[static_cast<std::uint8_t>(digits[i])] = static_cast<std::int8_t>(i);
    return t;
}();

/// False where it is no base64 of at least one byte.
bool decode_base64(std::string_view text, std::string& out) {
    out.clear();
    if (text.size() % 4 != 0) return false;
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    std::uint32_t bits = 0;
    int have = 0;
    for (char c : text) {
        const std::int8_t digit = base64_digit[static_cast<std::uint8_t>(c)];
        if (digit < 0) return false;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        if ((have += 6) >= 8) out += static_cast<char>(bits >> (have -= 8) & 0xFF);
    }
    return !out.empty();
}

struct SpecialToken {
    std::string_view spelling;
    TokenId id;
};

/// What the number of ranks says: the published vocabularies, their patterns and special tokens.
struct Published {
    TokenId ranks;
    std::string_view pre;
    SpecialToken special[8];
};
constexpr Published published[] = {
    {50256, "gpt-2", {{"<|endoftext|>", 50256}}},
    {50280, "gpt-2", {{"<|endoftext|>", 50256}}},
    {100256,
     "cl100k",
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {199998, "gpt-4o", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    {128000,
     "llama-bpe",
     {{"<|end_of_text|>", 128001},
      {"<|begin_of_text|>", 128000},
      {"<|start_header_id|>", 128006},
      {"<|end_header_id|>", 128007},
      {"<|eot_id|>", 128009}}},
    {151643, "qwen2", {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}},
};

struct Ranks {
    std::string bytes;                  // all tokens, spelled in byte_alphabet
    std::vector<std::uint32_t> begin;   // by rank
    std::vector<std::uint32_t> length;  // 0: no such rank
    TokenId count = 0;
};

Ranks read_ranks(std::string_view text, const std::string& file) {
    Ranks ranks;
    ranks.bytes.reserve(text.size());
    std::string token;
    std::size_t number = 0;
    while (!text.empty()) {
        number++;
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        auto bad = [&](std::string_view expected) {
            fail_input(file, "line " + std::to_string(number), expected,
                       "'" + std::string(line.substr(0, 60)) + "'");
        };
        const std::size_t blank = line.find(' ');
        if (blank == std::string_view::npos || !decode_base64(line.substr(0, blank), token))
            bad("base64, a blank and a rank");
        std::uint32_t rank = 0;
        auto [stop, error] = std::from_chars(line.data() + blank + 1, line.data() + line.size(), rank);
        if (error != std::errc() || stop != line.data() + line.size() || rank >= (1u << 24))
            bad("a rank below 2^24");
        if (rank >= ranks.begin.size()) {
            if (rank > ranks.begin.size() + (1u << 20)) bad("a rank near the others");
            ranks.begin.resize(rank + 1);
            ranks.length.resize(rank + 1);
        }
        if (ranks.length[rank]) bad("a rank of its own");
        ranks.begin[rank] = static_cast<std::uint32_t>(ranks.bytes.size());
        for (char c : token) ranks.bytes += byte_alphabet::spell(static_cast<std::uint8_t>(c));
        ranks.length[rank] = static_cast<std::uint32_t>(ranks.bytes.size()) - ranks.begin[rank];
        ranks.count++;
    }
    return ranks;
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    const std::size_t blank = line.find(' ');
    std::string token;
    return line.size() < 1000 && blank != std::string_view::npos &&
           decode_base64(line.substr(0, blank), token) &&
           line.find_first_not_of("0123456789\r", blank + 1) == std::string_view::npos;
}

TokenizerPtr tokenizer_from_tiktoken(std::string_view text, const std::string& file) {
    const Ranks ranks = read_ranks(text, file);
    const Published* known = nullptr;
    for (const Published& p : published)
        if (p.ranks == ranks.count) known = &p;
    TokenId size = static_cast<TokenId>(ranks.begin.size());
    if (known)
        for (const SpecialToken& s : known->special)
            if (!s.spelling.empty()) size = std::max(size, s.id + 1);
    Parts parts;
    Vocabulary& vocabulary = *parts.vocabulary;
    vocabulary.reserve(static_cast<std::size_t>(size), ranks.bytes.size() + 1024);
    for (TokenId id = 0; id < size; id++) {
        const std::size_t i = static_cast<std::size_t>(id);
        const SpecialToken* special = nullptr;
        if (known)
            for (const SpecialToken& s : known->special)
                if (!s.spelling.empty() && s.id == id) special = &s;
        if (i < ranks.begin.size() && ranks.length[i]) {
            const std::string_view spelling =
                std::string_view(ranks.bytes).substr(ranks.begin[i], ranks.length[i]);
            if (TokenId other = vocabulary.add(spelling); other >= 0)
                fail_input(file, "rank " + std::to_string(id), "bytes of its own",
                           "those of rank " + std::to_string(other));
        } else if (special) {
            vocabulary.add(special->spelling, TokenType::control);
            AddedToken added;
            added.id = id;
            added.content = special->spelling;
            added.special = true;
            parts.added.push_back(added);
        } else if (known) {
            vocabulary.add("<|unused_" + std::to_string(id) + "|>", TokenType::unused);
        } else {
            fail_input(file, "ranks", "every rank below " + std::to_string(size),
                       "none for " + std::to_string(id));
        }
    }
    for (int b = 0; b < 256; b++)
        if (vocabulary.find(byte_alphabet::spell(static_cast<std::uint8_t>(b))) < 0)
            fail_input(file, "ranks", "a token for every byte",
                       "none for " + spelling_of_byte(static_cast<std::uint8_t>(b)));
    const PreName& pre = find_pre_name(known ? known->pre : "cl100k", file, "pattern");
    if (known) parts.special.eos = known->special[0].id;
    parts.special.bos = known && known->special[1].spelling == "<|begin_of_text|>"
                            ? std::optional(known->special[1].id)
                            : parts.special.eos;
    parts.kind = "bpe";
    parts.ggml_pre = std::string(pre.name);
    parts.pre_tokenizer = pre_tokenizer_of(pre);
    parts.decoder.kind = Decoder::Kind::bytes;
    if (pre.add_bos && parts.special.bos) parts.prefix.push_back(*parts.special.bos);
    BpeOptions options;
    options.ignore_merges = true;  // tiktoken takes a word that is a token as it is
    parts.model = std::make_unique<BpeModel>(
        vocabulary, ranked_merges(vocabulary, static_cast<TokenId>(ranks.begin.size())), options);
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace linnet
