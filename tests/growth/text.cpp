// Vocabularies, and texts that they encode.
#include <cstdlib>
#include <memory>

#include "formats/gguf.h"
#include "fuzz/folder.h"
#include "growth.h"
#include "text/files/foreign.h"
#include "text/files/rwkv_vocabulary.h"
#include "text/files/tokenizer_json.h"
#include "text/train/make.h"

namespace linnet::growth {
namespace {

std::string repeated(std::string_view unit, std::size_t n) {
    std::string text;
    while (n-- > 0) text += unit;
    return text;
}

/// a, b … z, aa, ab …
std::string word(std::size_t i) {
    std::string text;
    for (i++; i > 0; i = (i - 1) / 26) text.insert(text.begin(), static_cast<char>('a' + (i - 1) % 26));
    return text;
}

/// 1000 letters a, then bb (tokens may have 1024 bytes): a text of a's alone begins like this token
/// everywhere and never matches it.
const std::string near = std::string(1000, 'a') + "bb";

std::string in_quotes(const std::string& text) {
    return "\"" + text + "\"";
}

/// Words and their ids: `first`, then n of the words above.
std::string vocabulary(std::size_t n, std::vector<std::string> first = {}) {
    for (std::size_t i = 0; i < n; i++) first.push_back(word(i));
    std::string text;
    for (std::size_t i = 0; i < first.size(); i++)
        text += (i ? "," : "") + in_quotes(first[i]) + ":" + std::to_string(i);
    return "{" + text + "}";
}

/// A tokenizer.json: what its model says, and other members.
std::string file(const std::string& model, const std::string& rest = {}) {
    return "{\"model\":{" + model + "}" + (rest.empty() ? "" : ",") + rest + "}";
}

/// Every word but letters is made of two.
std::string bpe(std::size_t words) {
    std::string merges;
    for (std::size_t i = 26; i < words; i++)
        merges += (i > 26 ? ",\"" : "\"") + word(i / 26 - 1) + " " + word(i % 26) + "\"";
    return R"("type":"BPE","vocab":)" + vocabulary(words) + ",\"merges\":[" + merges + "]";
}

std::string letters() {
    return R"("type":"BPE","vocab":)" + vocabulary(26, {"\\u2581"}) + R"(,"merges":[])";
}

/// Words of a, twice as long each: the longest has `longest` letters.
std::string doubling(std::size_t longest) {
    std::vector<std::string> words{"a"};
    std::string merges;
    for (std::size_t size = 1; size < longest; size *= 2) {
        merges += (size > 1 ? ",\"" : "\"") + words.back() + " " + words.back() + "\"";
        words.push_back(words.back() + words.back());
    }
    return R"("type":"BPE","vocab":)" + vocabulary(0, words) + ",\"merges\":[" + merges + "]";
}

Act loading(const std::string& text) {
    return [text] { tokenizer_from_json(text, "growth"); };
}

/// Encodes `text` with the tokenizer of `vocabulary_file`; loading it is not counted.
Act encoding(const std::string& vocabulary_file, const std::string& text) {
    return [tokenizer = tokenizer_from_json(vocabulary_file, "growth"), text] {
        if (tokenizer->encode(text).empty()) std::abort();
    };
}

Act load_bpe(std::size_t n) {
    return loading(file(bpe(26 + n)));
}

/// Added tokens behind `words` others.
std::string added(std::size_t words, const std::vector<std::string>& tokens) {
    std::string list;
    for (const std::string& token : tokens)
        list += (list.empty() ? "" : ",") + std::string("{\"id\":") + std::to_string(words++) +
                ",\"content\":" + in_quotes(token) + ",\"special\":true}";
    return "\"added_tokens\":[" + list + "]";
}

std::vector<std::string> marks(std::size_t n) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < n; i++) all.push_back("<" + word(i) + ">");
    return all;
}

Act load_added(std::size_t n) {
    return loading(file(letters(), added(27, marks(n))));
}

Act encode_added(std::size_t n) {
    std::string text;
    for (const std::string& mark : marks(n)) text += mark + "a<";
    const std::string parts = R"("vocab":)" + vocabulary(26, {"<", ">"}) + R"(,"merges":[])";
    return encoding(file(R"("type":"BPE",)" + parts, added(28, marks(n))), text);
}

Act encode_near_long_added(std::size_t n) {
    return encoding(file(letters(), added(27, {near})), std::string(n, 'a'));
}

Act encode_one_word(std::size_t n) {
    return encoding(file(doubling(64)), std::string(n, 'a'));
}

Act encode_words_apart(std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; i++) text += word(i * 7919 % 18278);
    return encoding(file(bpe(702)), text);
}

std::string unigram(const std::string& pieces) {
    return R"("type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1])" + pieces + "]";
}

Act load_unigram(std::size_t n) {
    std::string pieces;
    for (std::size_t i = 1; i < n; i++)
        pieces += ",[" + in_quotes(word(i)) + ",-" + std::to_string(i % 17) + ".5]";
    return loading(file(unigram(pieces)));
}

Act encode_unigram(std::size_t n) {
    return encoding(file(unigram(R"(,["aa",-1.5],["aaaa",-2])")), std::string(n, 'a'));
}

Act encode_unigram_near_long(std::size_t n) {
    return encoding(file(unigram(",[\"" + near + "\",-2]")), std::string(n, 'a'));
}

std::string wordpiece(std::size_t n) {
    return R"("type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,)"
           R"("vocab":)" +
           vocabulary(n, {"[UNK]", ".", "'"});
}

Act load_wordpiece(std::size_t n) {
    return loading(file(wordpiece(n)));
}

const std::string bert_steps =
    R"("pre_tokenizer":{"type":"BertPreTokenizer"},"normalizer":{"type":"BertNormalizer"})";

Act encode_wordpiece(std::size_t n) {
    return encoding(file(wordpiece(702), bert_steps), repeated("Ab\u00e9 it's. ", n));
}

Act encode_wordpiece_long(std::size_t n) {
    return encoding(file(wordpiece(702), bert_steps), std::string(n, 'a'));
}

Act decode_wordpiece(std::size_t n) {
    const TokenizerPtr tokenizer = tokenizer_from_json(
        file(wordpiece(26), bert_steps + R"(,"decoder":{"type":"WordPiece","prefix":"##","cleanup":true})"),
        "growth");
    return [tokenizer, ids = tokenizer->encode(repeated("a ' . ", n))] {
        if (tokenizer->decode(ids).empty()) std::abort();
    };
}

Act encode_spaces(std::size_t n) {
    const std::string steps =
        R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always"})";
    return encoding(file(letters(), steps), repeated(" a", n / 2) + std::string(n, ' '));
}

Act encode_replaced(std::size_t n) {
    std::string chain;
    for (char c = 'a'; c < 'k'; c++)
        chain += (c > 'a' ? "," : "") + std::string(R"({"type":"Replace","pattern":{"String":")") + c +
                 R"("},"content":")" + static_cast<char>(c + 1) + "\"}";
    return encoding(file(letters(), R"("normalizer":{"type":"Sequence","normalizers":[)" + chain + "]}"),
                    repeated("ab", n));
}

Act encode_rwkv(std::size_t n) {
    const fuzz::Folder folder;
    test::write_rwkv_vocabulary(folder.path() + "/x.gguf", {&near, 1});
    const TokenizerPtr tokenizer = tokenizer_from_gguf(Gguf(folder.path() + "/x.gguf"));
    return [tokenizer, text = std::string(n, 'a')] { tokenizer->encode(text); };
}

std::string base64(std::string_view bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned group = 0;
        for (std::size_t j = i; j < i + 3; j++)
            group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0);
        for (unsigned j = 0; j < 4; j++)
            text += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & 63];
    }
    return text;
}

Act load_tiktoken(std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < 256; i++)
        text += base64(std::string(1, static_cast<char>(i))) + " " + std::to_string(i) + "\n";
    for (std::size_t i = 0; i < n; i++) text += base64(word(26 + i)) + " " + std::to_string(256 + i) + "\n";
    return [text] { tokenizer_from_tiktoken(text, "growth"); };
}

Act load_sentencepiece(std::size_t n) {
    std::string bytes;
    auto piece = [&](const std::string& spelling, char type) {
        std::string one = std::string("\x0a") + static_cast<char>(spelling.size()) + spelling;
        one += std::string("\x15\0\0\x80\xbf\x18", 6) + type;
        bytes += std::string("\x0a") + static_cast<char>(one.size()) + one;
    };
    piece("<unk>", 2);
    for (std::size_t i = 0; i < n; i++) piece(word(i), 1);
    return [bytes] { tokenizer_from_sentencepiece(bytes, "growth"); };
}

Act train_bpe(std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; i++) text += word(i * 7919 % 18278) + " ";
    return [text] { made_tokenizer("bpe", text, 300, false, {}, 1); };
}

Act encode_characters(std::size_t n) {
    return [text = repeated("a\u00e9\u4e16", n)] { char_tokenizer(text)->encode(text); };
}

}  // namespace

std::vector<Row> text_rows() {
    return {{"tokenizer.json: words and merges", 2000, load_bpe},
            {"tokenizer.json: added tokens", 1000, load_added},
            {"tokenizer.json: pieces of a unigram model", 2000, load_unigram},
            {"tokenizer.json: words of WordPiece", 2000, load_wordpiece},
            {"tiktoken: lines", 2000, load_tiktoken},
            {"SentencePiece: pieces", 2000, load_sentencepiece},
            {"encode: added tokens, and what begins as they do", 1000, encode_added},
            {"encode: nearly one long added token", 4000, encode_near_long_added},
            {"encode: one word by BPE, all of one letter", 4000, encode_one_word},
            {"encode: one word by BPE, of many tokens", 1000, encode_words_apart},
            {"encode: one word by a unigram model", 4000, encode_unigram},
            {"encode: nearly one long piece of a unigram model", 4000, encode_unigram_near_long},
            {"encode: words by WordPiece", 1000, encode_wordpiece},
            {"encode: one word by WordPiece", 4000, encode_wordpiece_long},
            {"encode: spaces by Metaspace", 2000, encode_spaces},
            {"encode: a chain of replacements", 2000, encode_replaced},
            {"encode: nearly one long token of rwkv", 4000, encode_rwkv},
            {"encode: characters", 2000, encode_characters},
            {"decode: WordPiece's clean-up", 2000, decode_wordpiece},
            {"train: words of a BPE vocabulary", 4000, train_bpe}};
}

}  // namespace linnet::growth
