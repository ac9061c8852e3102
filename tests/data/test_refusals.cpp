// What the readers of data refuse: each row is something damaged, and the line that is said of it.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "data/batches.h"
#include "data/byte_source.h"
#include "data/corpus_check.h"
#include "data/corpus_progress.h"
#include "data/document_reader.h"
#include "data/examples.h"
#include "data/labelled/images.h"
#include "data/labelled/lines.h"
#include "data/labelled/png_made.h"
#include "data/line_reader.h"
#include "data/megatron_index.h"
#include "data/shards.h"
#include "data/utf8_check.h"
#include "support.h"
#include "text/train/train.h"

using namespace linnet;
using namespace std::string_literals;
using nlohmann::json;
using test::big_endian;
using test::refusal;
using test::Scratch;
using test::write_text;

namespace {

/// A JSON file with one member changed, and what is said; an empty value takes the member away.
struct Change {
    std::string place, value, says;
};

std::string changed(const json& good, const Change& change) {
    json text = good;
    const json::json_pointer at(change.place);
    if (change.value.empty())
        text.at(at.parent_pointer()).erase(at.back());
    else
        text[at] = json::parse(change.value);
    return text.dump();
}

/// The line without the folder before the file's name.
std::string named(const std::string& folder, const std::function<void()>& act) {
    const std::string line = refusal(act);
    return line.starts_with(folder + "/") ? line.substr(folder.size() + 1) : line;
}

std::string shard_bytes(std::int32_t tokens, const std::string& ids) {
    std::string out(llmc_header_bytes, '\0');
    const std::int32_t header[3] = {20240520, 1, tokens};
    std::memcpy(out.data(), header, sizeof header);
    return out + ids;
}

json shard_json(const std::string& file, int tokens, const std::string& bytes) {
    return {{"file", file},     {"split", "train"}, {"documents", 1},
            {"tokens", tokens}, {"bytes", 3},       {"sha256", sha256(bytes)}};
}

json index_json() {
    return {{"format", "linnet-corpus"},
            {"layout", "llmc"},
            {"vocab_size", 256},
            {"tokenizer", "t"},
            {"tokenizer_sha256", std::string(64, '0')},
            {"validation_fraction", 0.25},
            {"documents", 1},
            {"tokens", 2},
            {"bytes", 3},
            {"skipped", 0},
            {"shards", {shard_json("train_000000.bin", 2, shard_bytes(2, "abcd"))}}};
}

}  // namespace

TEST_CASE("an index.json with a wrong member is refused by file and member") {
    Scratch s;
    const json good = index_json();
    const Change changes[] = {
        {"/format", "", "index.json: format: expected a value, got nothing"},
        {"/format", "7", "index.json: format: expected a string, got number"},
        {"/format", "\"tar\"", "index.json: format: expected linnet-corpus, got tar"},
        {"/layout", "null", "index.json: layout: expected a string, got null"},
        {"/layout", "\"zip\"", "index.json: layout: expected one of llmc, nanogpt, megatron, got zip"},
        {"/vocab_size", "0", "index.json: vocab_size: expected a positive 31-bit number, got 0"},
        {"/vocab_size", "2147483648",
         "index.json: vocab_size: expected a positive 31-bit number, got 2147483648"},
        {"/vocab_size", "-1", "index.json: vocab_size: expected a count, got -1"},
        {"/vocab_size", "\"x\"", "index.json: vocab_size: expected a count, got string"},
        {"/tokenizer_sha256", "\"\"",
         "index.json: tokenizer_sha256: expected 64 hexadecimal digits, got none"},
        {"/documents", "9007199254740993", "index.json: documents: expected a count, got 9007199254740993"},
        {"/validation_fraction", "", "index.json: validation_fraction: expected a value, got nothing"},
        {"/shards", "{}", "index.json: shards: expected an array, got object"},
        {"/shards/0", "7", "index.json: shards[0].file: expected a value, got nothing"},
        {"/shards/0/file", "\"../a.bin\"",
         "index.json: shards[0].file: expected a name inside the folder, got ../a.bin"},
        {"/shards/0/file", "\"\"", "index.json: shards[0].file: expected a name, got none"},
        {"/shards/0/split", "\"test\"",
         "index.json: shards[0].split: expected train or validation, got test"},
        {"/shards/0/sha256", "\"" + std::string(64, 'g') + "\"",
         "index.json: shards[0].sha256: expected 64 hexadecimal digits, got " + std::string(64, 'g')},
    };
    for (const Change& change : changes) {
        write_text(s / "index.json", changed(good, change));
        CHECK(named(s.path, [&] { read_corpus_index(s.path); }) == change.says);
    }
    const std::string deep = "{\"a\":" + std::string(2000, '[') + std::string(2000, ']') + "}";
    for (const std::string& text : {"[]"s, "{"s, deep}) {
        write_text(s / "index.json", text);
        CHECK(named(s.path, [&] { read_corpus_index(s.path); }) ==
              "index.json: expected JSON, got something else (a folder that linnet corpus wrote)");
    }
    // Of a corpus from before there were layouts, and of one that held out nothing that it could say.
    write_text(s / "index.json", changed(good, {"/layout", "", ""}));
    CHECK(read_corpus_index(s.path).layout == "llmc");
    CHECK(read_corpus_index(s.path).validation_fraction == 0.25);
    write_text(s / "index.json", changed(good, {"/validation_fraction", "null", ""}));
    CHECK(read_corpus_index(s.path).validation_fraction == CorpusIndex().validation_fraction);
}

TEST_CASE("a progress.json with a wrong member is refused by file and member") {
    Scratch s;
    CorpusProgress progress;
    CHECK_FALSE(read_corpus_progress(s.path, progress));
    const json open = shard_json("", 0, "");
    const json good = {{"settings", {{"field", "text"}}},
                       {"batches", 3},
                       {"input_hash", 18446744073709551615U},
                       {"train", {{"finished", json::array({open})}, {"open", open}}},
                       {"validation", {{"finished", json::array()}, {"open", open}}}};
    write_text(s / "progress.json", good.dump());
    CHECK(read_corpus_progress(s.path, progress));
    CHECK(progress.batches == 3);
    CHECK(progress.input_hash == 18446744073709551615U);
    CHECK(progress.splits[0].finished.size() == 1);
    CHECK_FALSE(progress.replaces);
    const Change changes[] = {
        {"/settings", "", "progress.json: settings: expected a value, got nothing"},
        {"/settings", "[]", "progress.json: settings: expected an object, got array"},
        {"/settings/field", "7", "progress.json: settings.field: expected a string, got number"},
        {"/batches", "1.5", "progress.json: batches: expected a count, got 1.5"},
        {"/input_hash", "-1", "progress.json: input_hash: expected a count, got number"},
        {"/train", "7", "progress.json: train.finished: expected a value, got nothing"},
        {"/train/finished", "7", "progress.json: train.finished: expected an array, got number"},
        {"/train/finished/0/split", "\"x\"",
         "progress.json: train.finished.split: expected train or validation, got x"},
        {"/validation/open", "", "progress.json: validation.open: expected a value, got nothing"},
        {"/validation/open/tokens", "-1", "progress.json: validation.open.tokens: expected a count, got -1"},
    };
    for (const Change& change : changes) {
        write_text(s / "progress.json", changed(good, change));
        CHECK(named(s.path, [&] { read_corpus_progress(s.path, progress); }) == change.says);
    }
}

TEST_CASE("shards that are not what their headers or the index say are refused by name") {
    Scratch s;
    const json good = index_json();
    const std::string shard = s / "train_000000.bin", whole = shard_bytes(2, "abcd");
    auto check = [&](const json& index, const std::string& bytes, bool all) {
        write_text(s / "index.json", index.dump());
        write_text(shard, bytes);
        return named(s.path, [&] { check_corpus(s.path, all); });
    };
    for (bool all : {false, true}) {
        CHECK(check(good, whole, all) == "accepted");
        CHECK(check(good, shard_bytes(3, "abcdef"), all) ==
              "train_000000.bin: header: expected 2 tokens (index.json), got 3");
        const std::string sum = check(good, shard_bytes(2, "abXd"), all);
        CHECK_MESSAGE(sum.starts_with("train_000000.bin: sha256: expected " + sha256(whole)), sum);
        CHECK(sum.ends_with("(damaged: run linnet corpus again)"));
    }
    struct Row {
        std::string layout, bytes, says;
    };
    const Row rows[] = {
        {"llmc", "abc", "train_000000.bin: header: expected 1024 bytes, got 3"},
        {"llmc", std::string(1024, '\1'),
         "train_000000.bin: header: expected magic 20240520 version 1 or magic 20240801 version 7, got magic "
         "16843009 version 16843009 (not a token shard)"},
        {"llmc", shard_bytes(-1, ""),
         "train_000000.bin: header: expected -1 tokens of 2 bytes, got 0 bytes (truncated, or written by "
         "another run)"},
        {"llmc", shard_bytes(2, "abcde"), "train_000000.bin: header: expected 2 tokens of 2 bytes, got 5"},
        {"nanogpt", "abc", "train_000000.bin: expected ids of 2 bytes, got 3 bytes (truncated)"},
    };
    for (const Row& row : rows) {
        write_text(shard, row.bytes);
        const std::string line = named(s.path, [&] { TokenShard opened(shard, *find_layout(row.layout)); });
        CHECK_MESSAGE(line.starts_with(row.says), line);
    }
    // What training reads: the index against the vocabulary, the shards against the index, ids.
    const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
    auto open = [&](const json& index, const std::string& text) {
        write_text(s / "index.json", index.dump());
        write_text(shard, text);
        return TokenSource::open_files(*find_token_files(s.path), *bytes, 0);
    };
    CHECK(named(s.path, [&] { open(good, shard_bytes(1, "ab")); }) ==
          "train_000000.bin: header: expected 2 tokens (index.json), got 1");
    std::int32_t in[1], out[1];
    const TokenSource source = open(good, shard_bytes(2, "a\0b\1"s));
    CHECK(named(s.path, [&] { source.window(DataSplit::train, 0, in, out); }) ==
          "train_000000.bin: token 1: expected an id below 256, got 354");
}

TEST_CASE("another program's token files: one layout a folder, and ids beyond the vocabulary spell nothing") {
    Scratch s;
    const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
    // The first file that has a layout decides; files of others are left out.
    write_text(s / "a.bin", shard_bytes(2, "a\0\xFF\xFF"s));
    write_text(s / "train.bin", "abcd");
    write_text(s / "b.bin", "no tokens");
    const auto found = find_token_files(s.path);
    REQUIRE(found);
    CHECK(found->index.layout == "llmc");
    CHECK(found->index.shards.size() == 1);
    CHECK(found->tokenizer().empty());
    const TokenSource source = TokenSource::open_files(*found, *bytes, 0);
    CHECK(source.size(DataSplit::train) == 2);
    CHECK(source.bytes(DataSplit::train) == 1);
    const std::string sum = found->sha256();
    write_text(s / "a.bin", shard_bytes(2, "b\0\xFF\xFF"s));
    CHECK(find_token_files(s.path)->sha256() != sum);
    // A file beside the working folder, and a prefix of which one half is missing.
    std::filesystem::create_directories(s / "m");
    write_text(s / "m/p.bin", "abcd");
    CHECK_FALSE(find_token_files(s / "m/p"));
    CHECK_FALSE(find_token_files(s / "m/none"));
    CHECK_FALSE(find_token_files("no-such.bin"));
    write_text(s / "m/p.idx", "no index");
    CHECK(named(s.path, [&] { find_token_files(s / "m/p"); }) ==
          "m/p.idx: header: expected MMIDIDX, as Megatron-LM writes it, got something else");
}

TEST_CASE("an index of Megatron-LM has room for 2^31 - 1 tokens in a document, no more") {
    Scratch s;
    const std::int64_t starts[2] = {0, std::int64_t{1} << 31};
    write_text(s / "starts", {reinterpret_cast<const char*>(starts), sizeof starts});
    CHECK(named(s.path, [&] { write_megatron_index(s / "a.idx", s / "starts", 1ULL << 31, 2); }) ==
          "a.idx: document 0: expected at most 2147483647 tokens, got 2147483648");
    CHECK_FALSE(std::filesystem::exists(s / "a.idx"));
}

TEST_CASE("an index of Megatron-LM is made only of documents that begin one behind the other") {
    Scratch s;
    auto made_of = [&](const std::vector<std::int64_t>& starts) {
        write_text(s / "starts",
                   {reinterpret_cast<const char*>(starts.data()), starts.size() * sizeof(std::int64_t)});
        return named(s.path, [&] { write_megatron_index(s / "a.idx", s / "starts", 9, 2); });
    };
    CHECK(made_of({0, 5, 4}) == "starts: document 1: expected at most 4, where the next one begins, got 5");
    CHECK(made_of({0, 10}) == "starts: document 1: expected at most 9, where the next one begins, got 10");
    CHECK(made_of({0, 5, INT64_MIN}) ==
          "starts: document 1: expected at most -9223372036854775808, where the next one begins, got 5");
    CHECK(made_of({3, 5}) == "starts: document 0: expected 0, where it begins, got 3");
    CHECK_FALSE(std::filesystem::exists(s / "a.idx"));
    CHECK(made_of({0, 5, 5}) == "accepted");
    CHECK(read_megatron_index(s / "a.idx", 18).sequences == 2);
}

TEST_CASE("compressed inputs that are something else are named, with what is wrong") {
    Scratch s;
    struct Row {
        std::string file, bytes, says;
    };
    const Row rows[] = {
        {"a.gz", "", "a.gz: byte 0: expected gzip data (the name ends in .gz), got an empty file"},
        {"a.gz", "text", "a.gz: byte 0: expected gzip data (the name ends in .gz), got something else"},
        {"a.zst", "", "a.zst: byte 0: expected Zstandard data (the name ends in .zst), got an empty file"},
        {"a.zst", "text",
         "a.zst: byte 0: expected Zstandard data (the name ends in .zst), got something else"},
        {"a", "\x1F\x8B\x08\x08", "a: byte 4: expected more gzip data, got the end of the file (truncated)"},
        {"a", "\x1F\x8B\x09\0"s, "expected gzip data, got unknown compression method (corrupt)"},
        {"a", "\x28\xB5\x2F\xFD\0\x90\1\0\0"s,
         "expected a window of at most 128 MiB, got a larger one (recompress without --ultra or --long)"},
        {"a", "\x28\xB5\x2F\xFD\0\x58\7\0\0"s, "expected Zstandard data, got "},
        {"a", "\x28\xB5\x2F\xFD\0"s, "expected more Zstandard data, got the end of the file (truncated)"},
    };
    for (const Row& row : rows) {
        write_text(s / row.file, row.bytes);
        const std::string line = named(s.path, [&] {
            char out[64];
            const auto source = open_source(s / row.file);
            while (source->read(out, sizeof out)) {
            }
        });
        CHECK_MESSAGE(test::has(line, row.says), line);
    }
    // A frame that readers pass over (RFC 8878, section 3.1.2) before the data.
    write_text(s / "skips", "\x5A\x2A\x4D\x18\2\0\0\0xx"s);
    char out[8];
    CHECK(open_source(s / "skips")->read(out, sizeof out) == 0);
    for (const char* no_frame : {"\x5A\x2A\x4D\x19", "\x2A\x2A\x4D\x18", "\x5A"}) {  // plain bytes, then
        write_text(s / "skips", no_frame);
        CHECK(open_source(s / "skips")->read(out, sizeof out) == std::strlen(no_frame));
    }
}

TEST_CASE("every kind of bytes that are no UTF-8 has its name") {
    const std::pair<std::string, std::string> rows[] = {
        {"\xC0\x80", "an overlong form"},
        {"\xC1\x80", "an overlong form"},
        {"\xC1"
         "a",
         "byte 0xC1"},
        {"\xE0\x80\x80", "an overlong form"},
        {"\xE0\xA0", "a truncated character at byte 0xE0"},
        {"\xE0"
         "a",
         "a truncated character at byte 0xE0"},
        {"\xF0\x80\x80\x80", "an overlong form"},
        {"\xF0\x90", "a truncated character at byte 0xF0"},
        {"\xF0"
         "a",
         "a truncated character at byte 0xF0"},
        {"\xED\xA0\x80", "a lone surrogate"},
        {"\xED\x9F", "a truncated character at byte 0xED"},
        {"\xED", "a truncated character at byte 0xED"},
        {"\xF4\x90\x80\x80", "a code point beyond U+10FFFF"},
        {"\xF4\x8F", "a truncated character at byte 0xF4"},
        {"\xF4", "a truncated character at byte 0xF4"},
        {"\x80", "a stray continuation byte 0x80"},
        {"\xC2", "a truncated character at byte 0xC2"},
        {"\xF5", "byte 0xF5"},
        {"\xFF", "byte 0xFF"},
    };
    for (const auto& [bytes, name] : rows) CHECK(utf8_fault_name("ab" + bytes, 2) == name);
    struct Wide {
        std::string head, says;
    };
    const Wide heads[] = {
        {"\xFF\xFE\0\0"s, "f: expected UTF-8 text, got UTF-32 (little-endian) (convert it with iconv)"},
        {"\0\0\xFE\xFF"s, "f: expected UTF-8 text, got UTF-32 (big-endian) (convert it with iconv)"},
        {"\0h\0e\0l\0l\0o"s,
         "f: expected UTF-8 text, got UTF-16 (big-endian, unmarked) (convert it with iconv)"},
        {"\0h\0e\0l"s, "accepted"},             // too few to tell
        {"\0\0\0\0\0\0\0\0\0\0"s, "accepted"},  // zeros on both sides
        {"hello world"s, "accepted"},
    };
    for (const Wide& row : heads) CHECK(refusal([&] { refuse_wide_encoding("f", row.head); }) == row.says);
}

TEST_CASE("lines of any length are read, and one of more than 1 MiB is refused by its number") {
    Scratch s;
    const std::string longest(std::size_t{1} << 20, 'x');
    write_text(s / "a", "\xEF\xBB\xBFone\r\n\n" + longest + "\nlast");
    LineReader lines(s / "a");
    std::string line;
    std::vector<std::size_t> sizes;
    while (lines.next(line)) sizes.push_back(line.size());
    CHECK(sizes == std::vector<std::size_t>{3, 0, longest.size(), 4});
    CHECK(lines.number() == 4);
    write_text(s / "a", "one\n" + longest + std::string(1 << 17, 'x') + "\n");
    CHECK(named(s.path, [&] {
              LineReader more(s / "a");
              while (more.next(line)) {
              }
          }) == "a: line 2: expected at most 1 MiB per line, got more");
}

TEST_CASE("JSON lines that are no labelled examples are refused by line and field") {
    Scratch s;
    LabelledOptions options;
    options.inputs = {s / "a.jsonl"};
    auto says = [&](LabelledKind kind, const std::string& text) {
        write_text(s / "a.jsonl", text);
        return named(s.path, [&] { read_labelled(kind, options); });
    };
    const std::pair<std::string, std::string> rows[] = {
        {"[]", "a.jsonl: line 1: expected a JSON object, got array"},
        {"{\"source\": \"a\"}", "a.jsonl: line 1: expected the field target, got an object without it"},
        {R"({"source": "a", "target": 1.5})",
         "a.jsonl: line 1: expected a string in the field target, got number"},
        {R"({"source": "a", "target": " \t"})",
         "a.jsonl: line 1: expected a text in the field target, got an empty one"},
        {"{", "a.jsonl: line 1, column 2: expected JSON, got the end of the line"},
        {R"({"source": "a", "source": "b"})",
         "a.jsonl: line 1: source: expected each key once, got a second one"},
    };
    for (const auto& [text, line] : rows) CHECK(says(LabelledKind::pairs, text) == line);
    write_text(s / "a.jsonl", R"({"words": "a b", "tags": "X Y"})");
    CHECK(read_labelled(LabelledKind::tags, options).all[0].label == "X Y");
    write_text(s / "a.jsonl", R"({"text": "a b", "label": 7})");
    CHECK(read_labelled(LabelledKind::classes, options).all[0].label == "7");
    options.fields = {"text", "more", "label"};
    write_text(s / "a.jsonl", R"({"text": "a b", "more": "c", "label": "no"})");
    CHECK(read_labelled(LabelledKind::classes, options).all[0].second == "c");
    for (const auto& [kind, expected] :
         {std::pair(LabelledKind::pairs, "2 names"), {LabelledKind::tags, "2 names"}}) {
        CHECK_THROWS_WITH_AS(read_labelled(kind, options),
                             ("--fields: expected "s + expected + ", got 3").c_str(), Error);
    }
    options.fields = {"text"};
    CHECK_THROWS_WITH_AS(read_labelled(LabelledKind::classes, options),
                         "--fields: expected 2 or 3 names, got 1", Error);
    // Bad ones are passed over, files that cannot be read are not; of several the option is named.
    options.fields.clear();
    options.skip_bad = true;
    write_text(s / "a.jsonl", "[]\n[]\n");
    CHECK(refusal([&] { read_labelled(LabelledKind::pairs, options); }) ==
          options.inputs[0] + ": expected at least one example, got bad ones alone: " + options.inputs[0] +
              ": line 1: expected a JSON object, got array");
    options.inputs.push_back(options.inputs[0]);
    CHECK(test::has(refusal([&] { read_labelled(LabelledKind::pairs, options); }),
                    "--data: expected at least one example, got bad ones alone"));
}

TEST_CASE("pictures and labels whose heads lie are refused by the place in them") {
    Scratch s;
    struct Row {
        std::string bytes, says;
    };
    const std::string idx = big_endian(0x803) + big_endian(1);
    const Row pictures[] = {
        {"P5", "p: width: expected 1 to 16384, got nothing"},
        {"P5 # no end", "p: width: expected 1 to 16384, got nothing"},
        {"P5 x", "p: width: expected 1 to 16384, got nothing"},
        {"P5 16385 1 255 a", "p: width: expected 1 to 16384, got 16385"},
        {"P5 99999999999999999999 1 255 a", "p: width: expected 1 to 16384, got 9999999999"},
        {"P5 1 0 255 a", "p: height: expected 1 to 16384, got 0"},
        {"P5 1 1 256 a", "p: largest value: expected 1 to 255, got 256"},
        {"P6 1 1 255", "p: pixels: expected 3 bytes, got 0"},
        {"P6 1 1 255 ab", "p: pixels: expected 3 bytes, got 2"},
        {"P51 1 255 a", "p: head: expected white space behind P5, got '1'"},
        {"P6x 1 1 255 abc", "p: head: expected white space behind P6, got 'x'"},
        {"P5 1 1 255a", "p: head: expected white space before the pixels, got 'a'"},
        {"P5 1 1 255#a", "p: head: expected white space before the pixels, got '#'"},
        {"P5#c\n1#c\n1\t255\nab", "accepted"},
        {idx + big_endian(0) + big_endian(1), "p: dimension 1: expected 1 to 16384, got 0"},
        {idx + big_endian(1) + big_endian(16385), "p: dimension 2: expected 1 to 16384, got 16385"},
        {"P6 1 2 255 abcdef", "p: size: expected 1 x 1 pixels, got 1 x 2 pixels (--resize changes it)"},
    };
    for (const Row& row : pictures) {
        write_text(s / "p", row.bytes);
        const std::string line = named(s.path, [&] { read_pictures_file(s / "p", {1, 1, 1}, false); });
        CHECK_MESSAGE(line == row.says, line);
    }
    const Row labels[] = {
        {big_endian(0x803) + big_endian(1),
         "p: magic number: expected 0x00000801 (IDX, bytes, 1 dimension), got "
         "0x00000803"},
        {big_endian(0x801), "p: head: expected 8 bytes, got 4"},
        {big_endian(0x801) + big_endian(3) + "abc", "p: count: expected 2, as there are pictures, got 3"},
    };
    for (const Row& row : labels) {
        write_text(s / "p", row.bytes);
        CHECK(named(s.path, [&] { read_idx_labels(s / "p", 2); }) == row.says);
    }
    CHECK(labels_beside("a/t10k-images-idx3-ubyte") == "a/t10k-labels-idx1-ubyte");
    CHECK(refusal([] { labels_beside("a/pictures"); }) ==
          "a/pictures: name: expected one with images-idx3 in it, beside one with labels-idx1, got another");
    // Grey becomes three channels, fewer values are spread, and of four channels nothing can be made.
    write_text(s / "p", "P5 1 1 15 \x0F");
    const Pictures colours = read_pictures_file(s / "p", {1, 1, 3}, false);
    CHECK(colours.pixels == std::vector<std::uint8_t>{255, 255, 255});
    write_text(s / "p", "P5 1 1 15 \xFF");  // beyond the largest
    CHECK(read_pictures_file(s / "p", {1, 1, 1}, false).pixels[0] == 255);
    CHECK(named(s.path, [&] {
              read_pictures_file(s / "p", {1, 1, 4}, true);
          }) == "p: size: expected 1 x 1 pixels of 4 channels, got 1 x 1 pixels (--resize changes it)");
    write_text(s / "p", "P6 1 1 255 \1\2\3");
    CHECK(read_pictures_file(s / "p", {1, 1, 3}, false).pixels == std::vector<std::uint8_t>{1, 2, 3});
}

TEST_CASE("JSON Lines are examples by their first object, and others beside them are refused") {
    Scratch s;
    write_text(s / "a.jsonl", "\n \n{\"prompt\": \"p\", \"completion\": \"c\"}\n");
    write_text(s / "t.txt", "text");
    const std::pair<std::string, bool> firsts[] = {
        {R"({"prompt": "p", "completion": "c"})", true},
        {R"({"messages": []})", true},
        {R"({"text": "t", "prompt": "p"})", false},
        {"{}", false},
        {"[]", false},
        {"no JSON", false},
        {"", false},
    };
    for (const auto& [line, are] : firsts) {
        write_text(s / "b.jsonl", line);
        CHECK(are_examples({s / "t.txt", s / "b.jsonl"}, {}) == are);
    }
    write_text(s / "o.jsonl", R"({"other": 1, "answer": "a"})");
    CHECK(named(s.path, [&] { are_examples({s / "o.jsonl"}, {}); }) ==
          "o.jsonl: the first object: expected 'text', or 'prompt' and its completion, or 'messages', got "
          "'answer', 'other' (--field names the text's, --fields those of prompt and completion)");
    CHECK(are_examples({s / "o.jsonl"}, {}, {"other", "answer"}));
    write_text(s / "o.jsonl", R"({"other": "o", "answer": "a", "text": "t"})");
    CHECK(are_examples({s / "o.jsonl"}, {}, {"other", "answer"}));
    CHECK_FALSE(are_examples({s / "o.jsonl"}, {}));
    CHECK_FALSE(are_examples({s / "t.txt"}, {}));
    CHECK(are_examples({s / "a.jsonl"}, {}));  // behind blank lines
    CHECK(named(s.path,
                [&] {
                    read_examples({s / "a.jsonl", s / "t.txt"}, {});
                }) ==
          "t.txt: expected JSON Lines, as the other data are, got another file (with weights, --data "
          "PATH=WEIGHT, they are mixed)");
    write_text(s / "c.jsonl",
               R"({"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]})"
               "\n"
               R"({"prompt": "p", "completion": "c"})");
    CHECK(named(s.path, [&] { read_examples({s / "c.jsonl"}, {}); }) ==
          "c.jsonl: line 2: expected messages, as in the lines before, got prompt and completion");
    write_text(s / "c.jsonl",
               R"({"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": ""}]})");
    CHECK(named(s.path, [&] { read_examples({s / "c.jsonl"}, {}); }) ==
          "c.jsonl: line 1, messages: expected an answer of the assistant, got none");
    const test::Outcome piped = test::run_linnet({"train", "--data", s / "a.jsonl", "--data", "-", "--format",
                                                  "jsonl", "--steps", "1", "--out", s / "run"},
                                                 "{\"prompt\": \"p\"}\n");
    CHECK_MESSAGE(test::has(piped.err, "error: stdin: line 1, completion: expected a string, got nothing"),
                  piped.err);
    Examples few;
    few.list.resize(4);
    CHECK(held_out_examples(few, 0.5) == std::vector<bool>{false, false, true, true});
    CHECK(held_out_examples(few, 1) == std::vector<bool>{false, true, true, true});  // one is learned
    Examples alike;  // of a hundred alike none, or all, are chosen by their hash: the last ones are, then
    alike.list.resize(100);
    const std::vector<bool> held = held_out_examples(alike, 0.1);
    CHECK(std::count(held.begin(), held.end(), true) == 10);
    CHECK(held[90]);
}
