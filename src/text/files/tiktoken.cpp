#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/terminal.h"
#include "text/encode/bpe.h"
#include "text/encode/pipeline.h"
#include "text/files/base64_read.h"
#include "text/files/foreign.h"
#include "text/split/pre_names.h"

namespace linnet {
namespace {

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
     "dbrx",
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {199998, "gpt-4o", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    {200000,
     "llama4",
     {{"<|end_of_text|>", 200001},
      {"<|begin_of_text|>", 200000},
      {"<|header_start|>", 200005},
      {"<|header_end|>", 200006},
      {"<|eom|>", 200007},
      {"<|eot|>", 200008}}},
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
    std::vector<std::string_view> token;  // by rank; empty: no such rank
    TokenId count = 0;
    std::size_t size = 0;  // bytes of all tokens
    std::unique_ptr<char[]> bytes;
};

/// Reads one line; `number` is its own.
void read_line(std::string_view line, std::size_t number, const std::string& file, Ranks& ranks) {
    auto bad = [&](std::string_view expected) {
        fail_input(file, "line " + std::to_string(number), expected,
                   "'" + std::string(line.substr(0, 60)) + "'");
    };
    const std::size_t space = std::min(line.find(' '), line.size());
    char* const bytes = ranks.bytes.get() + ranks.size;
    const std::size_t size = decode_base64(line.substr(0, space), bytes);
    if (size == 0 || space == line.size()) bad("base64, a space and a rank");
    std::uint32_t rank = 0;
    auto [stop, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || stop != line.data() + line.size() || rank >= MergeTable::most_symbols)
        bad("a rank below " + std::to_string(MergeTable::most_symbols));
    if (rank >= ranks.token.size()) {
        if (rank > ranks.token.size() + (1u << 20)) bad("a rank near the others");
        ranks.token.resize(rank + std::size_t{1});
    }
    if (!ranks.token[rank].empty()) bad("a rank of its own");
    ranks.token[rank] = {bytes, size};
    ranks.size += size;
    ranks.count++;
}

Ranks read_ranks(std::string_view text, const std::string& file) {
    Ranks ranks;
    ranks.bytes = std::make_unique_for_overwrite<char[]>(text.size() + 1);
    for (std::size_t number = 1; !text.empty(); number++) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) read_line(line, number, file, ranks);
    }
    return ranks;
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    const std::size_t space = line.find(' ');
    char token[1000];
    return line.size() < 1000 && space != std::string_view::npos &&
           decode_base64(line.substr(0, space), token) > 0 &&
           line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

namespace {

void check_bytes(const Ranks& ranks, const std::string& file) {
    bool there[256] = {};
    for (std::string_view token : ranks.token)
        if (token.size() == 1) there[static_cast<std::uint8_t>(token[0])] = true;
    for (int b = 0; b < 256; b++)
        if (!there[b])
            fail_input(file, "ranks", "a token for every byte",
                       "none for " + spelling_of_byte(static_cast<std::uint8_t>(b)));
}

/// The tokens of all ranks, and the special and unused ones between and behind them.
void add_tokens(const Ranks& ranks, const Published* known, const std::string& file, Parts& parts) {
    std::size_t size = ranks.token.size();
    if (known)
        for (const SpecialToken& s : known->special)
            if (!s.spelling.empty()) size = std::max(size, static_cast<std::size_t>(s.id) + 1);
    Vocabulary& vocabulary = *parts.vocabulary;
    vocabulary.reserve(size, ranks.size * 2 + 1024);
    std::string spelling;
    for (std::size_t i = 0; i < size; i++) {
        const TokenId id = static_cast<TokenId>(i);
        if (i < ranks.token.size() && !ranks.token[i].empty()) {
            spelling.clear();
            byte_alphabet::spell(ranks.token[i], spelling);
            if (TokenId other = vocabulary.add(spelling); other >= 0)
                fail_input(file, "rank " + std::to_string(id), "bytes of its own",
                           "those of rank " + std::to_string(other));
            continue;
        }
        if (!known)
            fail_input(file, "ranks", "every rank below " + std::to_string(size),
                       "none for " + std::to_string(id));
        const SpecialToken* special = nullptr;
        for (const SpecialToken& s : known->special)
            if (!s.spelling.empty() && s.id == id) special = &s;
        if (special) {
            vocabulary.add(special->spelling, TokenType::control);
            AddedToken added;
            added.id = id;
            added.content = special->spelling;
            added.special = true;
            parts.added.push_back(added);
            if (special->spelling.starts_with("<|eot")) parts.special.eot = id;
            if (special->spelling.starts_with("<|eom")) parts.special.eom = id;
        } else {
            vocabulary.add("<|unused_" + std::to_string(id) + "|>", TokenType::unused);
        }
    }
}

}  // namespace

TokenizerPtr tokenizer_from_tiktoken(std::string_view text, const std::string& file) {
    const Ranks ranks = read_ranks(text, file);
    check_bytes(ranks, file);
    const Published* known = nullptr;
    for (const Published& p : published)
        if (p.ranks == ranks.count) known = &p;
    Parts parts;
    add_tokens(ranks, known, file, parts);
    BpeOptions options;
    options.ignore_merges = true;  // tiktoken takes a word that is a token as it is
    parts.model = std::make_unique<BpeModel>(*parts.vocabulary, ranked_merges(ranks.token), options);
    const PreName& pre = find_pre_name(known ? known->pre : "dbrx", file, "pattern");
    if (!known)
        note(
            file + ": " + std::to_string(ranks.count) +
            " ranks are those of no vocabulary that is known here: GPT-4's pattern is taken, and no token is "
            "special");
    if (known) parts.special.eos = known->special[0].id;
    const bool begins = known && known->special[1].spelling == "<|begin_of_text|>";
    parts.special.bos = begins ? std::optional(known->special[1].id) : parts.special.eos;
    parts.kind = "bpe";
    parts.ggml_pre = std::string(pre.name);
    parts.pre_tokenizer = pre_tokenizer_of(pre);
    parts.decoder.kind = Decoder::Kind::bytes;
    if (begins) parts.prefix.push_back(*parts.special.bos);
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace linnet
