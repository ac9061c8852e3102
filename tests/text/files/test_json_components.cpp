// tokenizer.json's parts: what is wrong in one is named with its path, what is right works, and is written
// again.
#include <doctest/doctest.h>

#include "base/base64.h"
#include "support.h"
#include "text/files/tokenizer_json.h"

using namespace linnet;
using linnet::test::has;

namespace {

const std::string words = R"({"?": 0, "a": 1, "b": 2, "ab": 3, "c": 4})";

/// A BPE of three letters and a merge, with `rest` as further members of the file and `more` of its model.
std::string file(const std::string& rest, const std::string& more = {}) {
    return R"({"model": {"type": "BPE", "unk_token": "?", "vocab": )" + words +
           R"(, "merges": [["a", "b"]])" + more + "}" + rest + "}";
}

std::string model(const std::string& members) {
    return R"({"model": {)" + members + "}}";
}

TokenizerPtr read(const std::string& json) {
    return tokenizer_from_json(json, "f.json");
}

std::string message_of(const std::string& json) {
    return test::refusal([&] { read(json); });
}

const Parts& parts(const TokenizerPtr& tokenizer) {
    return dynamic_cast<const Pipeline&>(*tokenizer).parts();
}

/// What `json`'s words are, after it went to tokenizer.json and back; the same as before.
std::vector<std::string> words_of(const std::string& json, const std::string& text) {
    const TokenizerPtr t = read(json), again = read(tokenizer_to_json(dynamic_cast<const Pipeline&>(*t)));
    CHECK(again->words(text) == t->words(text));
    CHECK(again->encode(text) == t->encode(text));
    return t->words(text);
}

std::string decoded(const std::string& decoder, const std::vector<std::string>& tokens) {
    std::string vocab;
    std::vector<TokenId> ids;
    for (const std::string& token : tokens) {
        vocab += (ids.empty() ? "" : ", ") + json_quoted(token) + ": " + std::to_string(ids.size());
        ids.push_back(static_cast<TokenId>(ids.size()));
    }
    const TokenizerPtr t = read(R"({"model": {"type": "BPE", "vocab": {)" + vocab +
                                R"(}, "merges": []}, "decoder": )" + decoder + "}");
    const TokenizerPtr again = read(tokenizer_to_json(dynamic_cast<const Pipeline&>(*t)));
    CHECK(again->decode(ids) == t->decode(ids));
    return t->decode(ids);
}

}  // namespace

TEST_CASE("a part of tokenizer.json that is unknown or wrong is refused, and its path says which") {
    struct Fault {
        std::string rest, says;
    };
    const std::string only_split = "only the members pattern, behavior, invert, got 'x'";
    const std::vector<Fault> faults = {
        {R"(, "normalizer": 3)", "normalizer: expected an object, got a number"},
        {R"(, "normalizer": {})", "normalizer.type: expected a string, got null"},
        {R"(, "normalizer": {"type": "NFC", "x": 1})", "normalizer.x: expected no such member, got 'x'"},
        {R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": 3}]})",
         "normalizer.normalizers[1].type: expected a string, got a number"},
        {R"(, "normalizer": {"type": "Strip", "strip_left": 1})",
         "normalizer.strip_left: expected a boolean, got a number"},
        {R"(, "normalizer": {"type": "Prepend", "prepend": null})",
         "normalizer.prepend: expected a string, got null"},
        {R"(, "normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": ""})",
         "normalizer.pattern.String: expected a string, got an empty one"},
        {R"(, "normalizer": {"type": "Replace", "pattern": {}, "content": ""})",
         "normalizer.pattern: expected String or Regex, got neither"},
        {R"(, "normalizer": {"type": "Replace", "pattern": {"Text": ""}, "content": ""})",
         "normalizer.pattern.Text: expected only the members String, Regex, got 'Text'"},
        {R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "A?=="})",
         "normalizer.precompiled_charsmap: expected base64, got 'A?=='"},
        {R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA="})",
         "f.json: normalizer.precompiled_charsmap: expected a character map of at least 4 bytes, got 2"},
        {R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA"})",
         "normalizer.precompiled_charsmap: expected base64, got 'AAAAAA'"},
        {R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA=AAAAA"})",
         "normalizer.precompiled_charsmap: expected base64, got 'AA=AAAAA'"},
        {R"(, "normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""})",
         "f.json: normalizer.pattern.Regex: expected a regular expression, got '('"},
        {R"(, "normalizer": {"type": "Other"})",
         "normalizer.type: expected a normalizer (Sequence NFC NFD NFKC NFKD Nmt Lowercase StripAccents "
         "Strip "
         "Replace Prepend BertNormalizer Precompiled ByteLevel), got 'Other'"},
        {R"(, "pre_tokenizer": {"type": "Other"})",
         "pre_tokenizer.type: expected a pre-tokenizer (Sequence ByteLevel Split Digits Punctuation "
         "Whitespace "
         "WhitespaceSplit BertPreTokenizer Metaspace CharDelimiterSplit), got 'Other'"},
        {R"(, "pre_tokenizer": {"type": "Split", "x": 1})", "pre_tokenizer.x: expected " + only_split},
        {R"(, "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"})",
         "pre_tokenizer.behavior: expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
         "Contiguous, "
         "got Kept"},
        {R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": {}})",
         "pre_tokenizer.pretokenizers: expected an array, got an object"},
        {R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": ""})",
         "pre_tokenizer.replacement: expected one character, got ''"},
        {R"(, "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "last"})",
         "pre_tokenizer.prepend_scheme: expected always, first or never, got last"},
        {R"(, "pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": ""})",
         "pre_tokenizer.delimiter: expected a character, got an empty string"},
        {R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Metaspace"}]})",
         "pre_tokenizer.pretokenizers[1].type: expected no such step behind ByteLevel, got 'Metaspace'"},
        {R"(, "normalizer": {"type": "ByteLevel"}, "pre_tokenizer": {"type": "ByteLevel"})",
         "pre_tokenizer.type: expected no such step behind ByteLevel, got 'ByteLevel'"},
        {R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "ByteLevel"}, {"type": "NFC"}]})",
         "normalizer.normalizers[1].type: expected no such step behind ByteLevel, got 'NFC'"},
        {R"(, "decoder": {"type": "Replace", "pattern": {"Regex": "_"}, "content": " "})",
         "decoder: expected a replacement of a mark by a space, got another"},
        {R"(, "decoder": {"type": "Replace", "pattern": {"String": "_"}, "content": "-"})",
         "decoder: expected a replacement of a mark by a space, got another"},
        {R"(, "decoder": {"type": "Strip", "content": "_", "start": 1, "stop": 0})",
         "decoder: expected a strip of one leading space, got another"},
        {R"(, "decoder": {"type": "Strip", "content": " ", "start": 2, "stop": 0})",
         "decoder: expected a strip of one leading space, got another"},
        {R"(, "decoder": {"type": "Strip", "content": " ", "start": 1, "stop": 1})",
         "decoder: expected a strip of one leading space, got another"},
        {R"(, "decoder": {"type": "Strip", "content": " ", "start": 0.5, "stop": 1})",
         "decoder.start: expected an integer from 0 to 1048576, got 0.5"},
        {R"(, "post_processor": {"type": "Other"})",
         "post_processor.type: expected a post-processor (Sequence TemplateProcessing BertProcessing "
         "RobertaProcessing ByteLevel), got 'Other'"},
        {R"(, "post_processor": {"type": "Sequence", "processors": [{"type": "BertProcessing", "cls": ["a", 5]}]})",
         "post_processor.processors[0].cls[1]: expected an integer from 0 to 4, got 5"},
        {R"(, "post_processor": {"type": "RobertaProcessing", "cls": ["a"]})",
         "post_processor.cls: expected a token and its id, got 1 elements"},
        {R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}],
             "special_tokens": {"y": {"ids": [1]}}})",
         "post_processor.single[0]: expected a name of special_tokens, got 'x'"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.rest);
        const std::string line = message_of(file(fault.rest));
        CHECK_MESSAGE(has(line, fault.says), line);
    }
    std::string items = R"({"Sequence": {"id": "A"}})";
    for (int i = 0; i < 1024; i++) items += R"(,{"Sequence": {}})";
    CHECK(message_of(file(R"(, "post_processor": {"type": "TemplateProcessing", "single": [)" + items +
                          "]}")) == "f.json: post_processor.single: expected at most 1024 parts, got 1025");
}

TEST_CASE("a model of tokenizer.json that is wrong is refused, and its path says where") {
    const std::string bpe = R"("type": "BPE", "vocab": )" + words;
    struct Fault {
        std::string model, says;
    };
    const std::vector<Fault> faults = {
        {R"("type": "BPE")", "model: expected a vocab, got none"},
        {R"("type": "Unigram", "vocab": {"a": 0})", "model.vocab: expected an array, got an object"},
        {R"("type": "Unigram", "vocab": [["a"]])",
         "model.vocab[0]: expected a token and its score, got 1 elements"},
        {R"("vocab": [["a", "b"]])", "model.vocab[0][1]: expected a number, got a string"},
        {R"("type": "Unigram", "unk_id": 1, "vocab": [["a", 0]])",
         "model.unk_id: expected an integer from 0 to 0, got 1"},
        {R"("type": "WordPiece", "unk_token": "?", "vocab": {"a": 0})",
         "model.unk_token: expected a token of the vocabulary, got '?'"},
        {R"("type": "WordPiece", "max_input_chars_per_word": -1, "vocab": {"a": 0})",
         "model.max_input_chars_per_word: expected an integer from 0 to 2147483647, got -1"},
        {bpe + R"(, "dropout": 0.5)", "model.dropout: expected no dropout, got some"},
        {bpe + R"(, "byte_fallback": 1)", "model.byte_fallback: expected a boolean, got a number"},
        {bpe + R"(, "end_of_word_suffix": true)",
         "model.end_of_word_suffix: expected a string, got a boolean"},
        {bpe + R"(, "merges": [" ab"])",
         "model.merges[0]: expected two tokens with a space between, got ' ab'"},
        {bpe + R"(, "merges": ["a b", "ab "])",
         "model.merges[1]: expected two tokens with a space between, got 'ab '"},
        {bpe + R"(, "merges": ["a b c"])",
         "model.merges[0]: expected two tokens with a space between, got 'a b c'"},
        {bpe + R"(, "merges": [["a"]])", "model.merges[0]: expected two tokens, got 1"},
        {bpe + R"(, "merges": [["a", 3]])", "model.merges[0][1]: expected a string, got a number"},
        {bpe + R"(, "merges": [[3, "a"]])", "model.merges[0][0]: expected a string, got a number"},
        {bpe + R"(, "merges": [3])", "model.merges[0]: expected an array, got a number"},
        {bpe + R"(, "merges": [["a", "b"], ["a", "d"]])",
         "model.merges[1]: expected two tokens of the vocabulary, got 'a d'"},
        {bpe + R"(, "merges": [["b", "a"]])",
         "model.merges[0]: expected a merge whose joined spelling is a token, got 'b a'"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.model);
        CHECK(message_of(model(fault.model)) == "f.json: " + fault.says);
    }
    const std::string twice = R"(, "added_tokens": [{"id": 5, "content": "a"}])";
    CHECK(message_of(file(twice)) == "f.json: added_tokens: expected one id for 'a', got 1 and 5");
    // Without a type it is what its members say.
    CHECK(read(model(R"("vocab": [["a", -1]])"))->kind() == "unigram");
    CHECK(read(model(R"("vocab": {"ab": 0, "c": 1}, "merges": [])"))->kind() == "bpe");
    CHECK(read(model(R"("vocab": {"a": 0})"))->kind() == "wordpiece");
    CHECK(read(R"({"model": {"vocab": {"a": 0}}, "pre_tokenizer": {"type": "ByteLevel"}})")->kind() ==
          "wordpiece");
    CHECK(read(model(bpe + R"(, "dropout": 0)"))->kind() == "bpe");
    CHECK(read(model(bpe))->kind() == "bpe");  // ab is a token of two characters
    CHECK(read(model(R"("type": "BPE", "vocab": {"": 0, "a": 1})"))->kind() == "bpe");
    CHECK(read(model(R"("type": "BPE", "vocab": {})"))->kind() == "bpe");
}

TEST_CASE("every pre-tokenizer of tokenizer.json cuts as it says, and is written as it was read") {
    using Words = std::vector<std::string>;
    struct Case {
        std::string pre, text;
        Words words;
    };
    const std::string split = R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")";
    const std::string mark = "\xE2\x96\x81";
    const auto behind = [](const std::string& use_regex, const std::string& steps,
                           const std::string& before = "") {
        return R"({"type": "Sequence", "pretokenizers": [)" + before +
               R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": )" + use_regex + "}, " +
               steps + "]}";
    };
    const std::vector<Case> cases = {
        {split + R"(Removed"})", "a-b--c", {"a", "b", "c"}},
        {split + R"(Isolated"})", "a-b--c", {"a", "-", "b", "-", "-", "c"}},
        {split + R"(MergedWithPrevious"})", "a-b--c", {"a-", "b-", "-", "c"}},
        {split + R"(MergedWithNext"})", "-a-b--c-", {"-a", "-b", "-", "-c", "-"}},
        {split + R"(Contiguous"})", "a-b--c", {"a", "-", "b", "--", "c"}},
        {split + R"(Removed", "invert": true})", "a-b--c", {"-", "-", "-"}},
        {R"({"type": "Split", "pattern": {"Regex": "[0-9]+"}})", "a12b\xFF", {"a", "12", "b\xFF"}},
        {R"({"type": "Digits"})", "a12b", {"a", "12", "b"}},
        {R"({"type": "Digits", "individual_digits": true})", "a12b", {"a", "1", "2", "b"}},
        {R"({"type": "Punctuation"})", "a,!b", {"a", ",", "!", "b"}},
        {R"({"type": "Punctuation", "behavior": "Contiguous"})", "a,!b", {"a", ",!", "b"}},
        {R"({"type": "Whitespace"})", "a b,!c  d\xFF", {"a", "b", ",!", "c", "d", "\xFF"}},
        {R"({"type": "WhitespaceSplit"})", " a b,!  c", {"a", "b,!", "c"}},
        {R"({"type": "BertPreTokenizer"})", "a b,c", {"a", "b", ",", "c"}},
        {R"({"type": "CharDelimiterSplit", "delimiter": "-"})", "a-b", {"a", "b"}},
        {R"({"type": "Metaspace"})", "a b", {mark + "a", mark + "b"}},
        {R"({"type": "Metaspace", "prepend_scheme": "always", "split": false})",
         "a b",
         {mark + "a" + mark + "b"}},
        {R"({"type": "Metaspace", "prepend_scheme": "first"})", " a", {mark + "a"}},
        {R"({"type": "Metaspace", "prepend_scheme": "never"})", "a b", {"a", mark + "b"}},
        {R"({"type": "Metaspace", "add_prefix_space": false, "replacement": "_"})", "a b", {"a", "_b"}},
        {R"({"type": "ByteLevel"})", "a b's", {" a", " b", "'s"}},
        {R"({"type": "ByteLevel", "use_regex": false})", "a b", {" a b"}},
        {R"({"type": "ByteLevel", "add_prefix_space": false})", "a  b1", {"a", " ", " b", "1"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
             {"type": "ByteLevel", "add_prefix_space": false}]})",
         "a 12",
         {"a", " ", "1", "2"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{N}"}},
             {"type": "ByteLevel", "add_prefix_space": false}]})",
         "a 12",
         {"a", " ", "1", "2"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false},
             {"type": "ByteLevel", "add_prefix_space": false}]})",
         "a 12",
         {"a", " ", "12"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{N}"}, "invert": true},
             {"type": "ByteLevel", "add_prefix_space": false}]})",
         "a 12",
         {"a", " ", "1", "2"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{N}"}, "behavior": "Removed"},
             {"type": "ByteLevel", "add_prefix_space": false}]})",
         "a 12",
         {"a", " "}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "use_regex": false}, {"type": "Punctuation"}]})",
         "a,b",
         {" a", ",", "b"}},
        {R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Punctuation"}]})",
         "a,b",
         {" a", ",", "b"}},
        // Behind ByteLevel a space is a letter, and the second byte of U+0432 the number U+00B2.
        {behind("false", R"({"type": "Split", "pattern": {"String": "\u0120"}, "behavior": "Removed"})"),
         "a b  c",
         {"a", "b", "c"}},
        {behind("false", R"({"type": "WhitespaceSplit"})"), "a b", {"a b"}},
        {behind("true", R"({"type": "Digits"})"),
         "\xD0\xB2"
         "1 a",
         {"\xD0", "\xB2", "1", " a"}},
        {behind("false", R"({"type": "Digits"})"),
         "\xD0\xB2"
         "1a",
         {"\xD0",
          "\xB2"
          "1",
          "a"}},
        {behind("true", R"({"type": "Digits"}, {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}})",
                R"({"type": "Punctuation", "behavior": "Contiguous"}, )"),  // Falcon's
         "a,! b12345",
         {"a", ",!", " b", "123", "45"}},
    };
    for (const Case& c : cases) {
        CAPTURE(c.pre);
        CHECK(words_of(file(R"(, "pre_tokenizer": )" + c.pre), c.text) == c.words);
    }
    // The published expressions are hand-written splitters, whether they keep what matches or remove the
    // rest.
    const std::string gpt2 = R"({"type": "Split", "pattern": {"Regex": )" + json_quoted(gpt2_pattern) + "}";
    for (const char* rest : {"}", R"(, "behavior": "Removed", "invert": true})"})
        CHECK(parts(read(file(R"(, "pre_tokenizer": )" + gpt2 + rest))).pre_tokenizer.steps[0].words ==
              Split::gpt2);
    CHECK(words_of(file(R"(, "pre_tokenizer": )" + gpt2 + R"(, "behavior": "Removed"})"), "a b").empty());
}

TEST_CASE("every normalizer of tokenizer.json does what it says, and is written as it was read") {
    std::string map("\x10\0\0\0", 4);  // a map of four units that maps nothing
    map.resize(21);
    const std::string e_acute = "\xC3\xA9", e_marked = "e\xCC\x81";
    struct Case {
        std::string normalizer, text, becomes;
    };
    const std::vector<Case> cases = {
        {R"({"type": "NFC"})", e_marked, e_acute},
        {R"({"type": "NFD"})", e_acute, e_marked},
        {R"({"type": "NFKC"})", "\xEF\xAC\x81", "fi"},
        {R"({"type": "NFKD"})", "\xEF\xAC\x81" + e_acute, "fi" + e_marked},
        {R"({"type": "Nmt"})", "a\x01\tb", "a b"},
        {R"({"type": "Lowercase"})", "AZ\xC3\x89", "az" + e_acute},
        {R"({"type": "StripAccents"})", e_marked + e_acute, "e" + e_acute},
        {R"({"type": "Strip"})", "  a ", "a"},
        {R"({"type": "Strip", "strip_left": false})", "  a ", "  a"},
        {R"({"type": "Strip", "strip_right": false})", "  a ", "a "},
        {R"({"type": "Replace", "pattern": {"String": "a"}, "content": "bb"})", "aca", "bbcbb"},
        {R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"})", "aacaa", "bcb"},
        {R"({"type": "Prepend", "prepend": "a"})", "b", "ab"},
        {R"({"type": "BertNormalizer"})", "A\x01\t" + e_acute + "\xE4\xB8\xAD", "a e \xE4\xB8\xAD "},
        {R"({"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false, "lowercase": false})",
         "A\t" + e_acute, "A\t" + e_acute},
        {R"({"type": "BertNormalizer", "lowercase": false, "strip_accents": true})", "A" + e_acute, "Ae"},
        {R"({"type": "Precompiled", "precompiled_charsmap": ")" + base64(map) + "\"}", "ab", "ab"},
        {R"({"type": "Precompiled", "precompiled_charsmap": ""})", "ab", "ab"},
        {R"({"type": "Precompiled", "precompiled_charsmap": null})", "ab", "ab"},
        {R"({"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "Strip"}]})", " A ", "a"},
        {R"({"type": "ByteLevel"})", "ab", "ab"},
        {"null", "ab", "ab"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.normalizer);
        CHECK(words_of(file(R"(, "normalizer": )" + c.normalizer), c.text) ==
              std::vector<std::string>{c.becomes});
    }
    // SentencePiece's, which is two normalizers there.
    NormalizerStep collapse;
    collapse.kind = NormalizerStep::Kind::collapse_spaces;
    Normalizer normalizer;
    normalizer.steps = {collapse};
    CHECK(words_of(file(R"(, "normalizer": )" + normalizer_to_json(normalizer)), " a  b ") ==
          std::vector<std::string>{"a b"});
}

TEST_CASE("every decoder of tokenizer.json joins tokens as it says, and is written as it was read") {
    const std::string mark = "\xE2\x96\x81";
    const auto metaspace = [](const std::string& more) { return R"({"type": "Metaspace")" + more + "}"; };
    CHECK(decoded("null", {"ab", "c"}) == "abc");
    CHECK(decoded(R"({"type": "Fuse"})", {"ab", "c"}) == "abc");
    CHECK(decoded(R"({"type": "ByteFallback"})", {"ab", "c"}) == "abc");
    CHECK(decoded(R"({"type": "ByteLevel"})", {"\xC4\xA0"
                                               "ab",
                                               "c"}) == " abc");
    CHECK(decoded(R"({"type": "WordPiece"})", {"ab", "##c", "d", "."}) == "abc d.");
    CHECK(decoded(R"({"type": "WordPiece", "prefix": "+", "cleanup": false})", {"ab", "+c", "."}) == "abc .");
    CHECK(decoded(R"({"type": "WordPiece", "prefix": ""})", {"ab", "c"}) == "ab c");
    CHECK(decoded(R"({"type": "BPEDecoder"})", {"ab</w>", "c"}) == "ab c");
    CHECK(decoded(R"({"type": "BPEDecoder", "suffix": "@"})", {"ab@", "c@", "</w>"}) == "ab c </w>");
    CHECK(decoded(R"({"type": "BPEDecoder", "suffix": ""})", {"ab", "c"}) == "abc");
    CHECK(decoded(metaspace(""), {mark + "ab", mark + "c", "<0x21>"}) == "ab c!");
    CHECK(decoded(metaspace(R"(, "prepend_scheme": "never", "replacement": "_")"), {"_ab", "_c"}) == " ab c");
    const std::string strip = R"({"type": "Strip", "content": " ", "stop": 0, "start": )",
                      replace = R"({"type": "Replace", "content": " ", "pattern": {"String": "_"}})";
    const auto sequence = [&](const std::string& start) {
        return R"({"type": "Sequence", "decoders": [)" + replace + ", " + strip + start + "}]}";
    };
    CHECK(decoded(sequence("1"), {"_ab", "_c"}) == "ab c");
    CHECK(decoded(sequence("0"), {"_ab", "_c"}) == " ab c");
}

TEST_CASE("what stands around a text is read from every post-processor, and written as it was read") {
    const auto around = [](const std::string& post) {
        const TokenizerPtr t = read(file(R"(, "post_processor": )" + post));
        EncodeOptions options;
        options.add_special = true;
        const std::vector<TokenId> ids = t->encode("c", options);
        CHECK(read(tokenizer_to_json(dynamic_cast<const Pipeline&>(*t)))->encode("c", options) == ids);
        return ids;
    };
    using Ids = std::vector<TokenId>;
    const std::string named = R"("special_tokens": {"x": {"ids": [1, 2]}, "y": {"ids": [0]}}})";
    const std::string x = R"({"SpecialToken": {"id": "x"}})", y = R"({"SpecialToken": {"id": "y"}})",
                      text = R"({"Sequence": {"id": "A"}})";
    const auto single = [&](const std::string& items) {
        return R"({"type": "TemplateProcessing", "single": [)" + items + "], " + named;
    };
    CHECK(around("null") == Ids{4});
    CHECK(around(R"({"type": "ByteLevel"})") == Ids{4});
    CHECK(around(R"({"type": "BertProcessing", "cls": ["?", 0], "sep": ["b", 2]})") == Ids{0, 4, 2});
    CHECK(around(R"({"type": "RobertaProcessing", "cls": ["?", 0], "sep": ["?", 0]})") == Ids{0, 4, 0});
    CHECK(around(single(x + "," + text)) == Ids{1, 2, 4});
    CHECK(around(single(text + "," + y)) == Ids{4, 0});
    CHECK(around(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )" + single(y + "," + text) +
                 "]}") == Ids{0, 4});
}

TEST_CASE("models of tokenizer.json with unusual settings are written as they were read") {
    for (
        const char* members : {
            R"("type": "BPE", "unk_token": "?", "fuse_unk": true, "end_of_word_suffix": "@", "continuing_subword_prefix": "+",
                "vocab": {"?": 0, "a": 1, "+b@": 2, "ab@": 3}, "merges": [["a", "+b@"]])",
            R"("type": "BPE", "byte_fallback": true, "ignore_merges": true, "vocab": {"a": 0, "<0x62>": 1, "ab": 2}, "merges": [])",
            R"("type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1.25], ["ab", -2.5e-7]])",
            R"("type": "Unigram", "unk_id": null, "byte_fallback": true, "vocab": [["a", -1], ["b", -2]])",
            R"("type": "WordPiece", "unk_token": "?", "max_input_chars_per_word": 0, "vocab": {"?": 0, "a": 1, "##b": 2})",
            R"("type": "WordPiece", "continuing_subword_prefix": "+", "vocab": {"a": 0, "+b": 1, "[UNK]": 2})",
        }) {
        CAPTURE(members);
        const TokenizerPtr t = read(model(members));
        const std::string written = tokenizer_to_json(dynamic_cast<const Pipeline&>(*t));
        const TokenizerPtr again = read(written);
        CHECK(again->kind() == t->kind());
        CHECK(again->encode("ab") == t->encode("ab"));
        for (TokenId id = 0; id < t->size(); id++) CHECK(again->piece(id) == t->piece(id));
        CHECK(tokenizer_to_json(dynamic_cast<const Pipeline&>(*again)) == written);
    }
    CHECK(json_quoted("a\"\\\n\x01\x7F\xFF\xC3\xA9") == "\"a\\\"\\\\\\n\\u0001\\u007f\xEF\xBF\xBD\xC3\xA9\"");
}

TEST_CASE("the roles of tokenizer.json's tokens follow from their spellings, of control tokens alone") {
    const auto eos = [](const std::string& vocab, const std::string& added) {
        const TokenizerPtr t = read(R"({"model": {"type": "BPE", "merges": [], "vocab": {"a": 0)" + vocab +
                                    R"(}}, "added_tokens": [)" + added + "]}");
        return t->eos() ? std::string(t->piece(*t->eos())) : "none";
    };
    const std::string end = R"({"id": 1, "content": "</s>", "special": true})",
                      text = R"({"id": 2, "content": "<|endoftext|>", "special": true})",
                      by_hand = R"({"id": 1, "content": "</s>", "special": false})";
    CHECK(eos("", end) == "</s>");
    CHECK(eos("", end + "," + text) == "<|endoftext|>");
    CHECK(eos("", by_hand) == "none");
    CHECK(eos(R"(, "</s>": 1)", "") == "none");
}

TEST_CASE("a BPE of characters with bytes and marks is SentencePiece's, and its merges' order its scores") {
    const std::string vocab =
        R"("vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "\u2581": 6, "<0x21>": 7},
        "merges": [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "bc"]])";
    const std::string marks =
        R"("normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})";
    const auto made = [&](const std::string& more, const std::string& rest) {
        return read(R"({"model": {"type": "BPE", )" + vocab + more + "}, " + rest + "}");
    };
    const TokenizerPtr spm = made(R"(, "byte_fallback": true)", marks);
    CHECK(spm->kind() == "spm");
    const Vocabulary& v = *parts(spm).vocabulary;
    for (auto [id, score] : {std::pair{3, -1.0f}, {4, -2.0f}, {5, -3.0f}, {0, -5.0f}, {1, -6.0f}})
        CHECK(v.score(id) == score);
    CHECK(made("", marks)->kind() == "bpe");
    CHECK(made(R"(, "byte_fallback": true)", R"("normalizer": null)")->kind() == "bpe");
    CHECK(
        made(R"(, "byte_fallback": true)", marks + R"(, "pre_tokenizer": {"type": "Whitespace"})")->kind() ==
        "bpe");
    for (const char* other :
         {R"({"String": "a"}, "content": "\u2581"})", R"({"String": " "}, "content": "_"})"})
        CHECK(made(R"(, "byte_fallback": true)",
                   R"("normalizer": {"type": "Replace", "pattern": )" + std::string(other))
                  ->kind() == "bpe");
}
