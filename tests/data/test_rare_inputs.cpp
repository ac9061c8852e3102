// Inputs that are rare: vocabularies with begin and end tokens or of more than 16 bits, many documents, few
// tokens, texts without places to cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/all_tokens.h"
#include "data/batches.h"
#include "data/corpus_builder.h"
#include "data/corpus_check.h"
#include "data/corpus_progress.h"
#include "data/document_reader.h"
#include "data/examples.h"
#include "data/labelled/images.h"
#include "data/labelled/scores.h"
#include "data/packing.h"
#include "data/train_text.h"
#include "support.h"

using namespace linnet;
using namespace std::string_literals;
using nlohmann::json;
using test::read_all;
using test::Scratch;
using test::write_text;

namespace {

/// Byte b is token b + `first`; behind them stand a begin and an end token, where there are some.
class Marked : public Tokenizer {
  public:
    explicit Marked(bool marks, TokenId first = 0) : marks_(marks), first_(first) {}
    std::string_view kind() const override { return "byte"; }
    TokenId size() const override { return first_ + 256 + (marks_ ? 2 : 0); }
    void encode(std::string_view text, std::vector<TokenId>& out, const EncodeOptions&) const override {
        for (char c : text) out.push_back(first_ + static_cast<unsigned char>(c));
    }
    std::size_t cut(std::string_view text, std::size_t from) const override {
        return std::min(from, text.size());
    }
    void decode(TokenId id, bool, std::string& out) const override {
        if (id < first_ + 256) out += static_cast<char>(id - first_);
    }
    std::string_view piece(TokenId) const override { return ""; }
    bool is_control(TokenId id) const override { return id >= first_ + 256; }
    std::optional<TokenId> bos() const override { return mark(0); }
    std::optional<TokenId> eos() const override { return mark(1); }
    bool add_bos() const override { return marks_; }
    bool is_end(TokenId id) const override { return eos() == id; }
    void write(GgufWriter&) const override {}

  private:
    std::optional<TokenId> mark(TokenId n) const {
        return marks_ ? std::optional<TokenId>(first_ + 256 + n) : std::nullopt;
    }
    bool marks_;
    TokenId first_;
};

std::string line_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE(
    "documents stand between begin and end tokens, or else before a newline, for any number of threads") {
    TextSplit split;
    split.train = {"ab", "c\n"};
    auto ids = [&](const Tokenizer& tokenizer, bool mark, int threads = 1) {
        return read_all(TokenSource::from_documents(split, mark, tokenizer, threads), DataSplit::train);
    };
    CHECK(ids(Marked(true), true) == Ids{256, 'a', 'b', 257, 256, 'c', '\n', 257});
    CHECK(ids(Marked(false), true) == Ids{'a', 'b', '\n', 'c', '\n'});
    CHECK(ids(Marked(true), false) == Ids{'a', 'b', 'c', '\n'});
    CHECK(ids(Marked(false, 70000), false) == Ids{70097, 70098, 70099, 70010});  // of more than 16 bits
    split.train.assign(100, "xyz");
    split.train[99] = "w";
    CHECK(ids(Marked(true), true, 3) == ids(Marked(true), true, 1));
    CHECK(ids(Marked(true), true, 3).size() == 99 * 5 + 3);
    const WindowSampler none(TokenSource::from_documents(split, true, Marked(true), 1), 1, 8);
    CHECK(none.validation_windows() == 0);
    // An id that the vocabulary lacks is named by the text's own name.
    class Wrong : public Marked {
      public:
        Wrong() : Marked(false) {}
        TokenId size() const override { return 100; }
    };
    const TokenSource wrong = TokenSource::from_documents(split, false, Wrong(), 1, "t.txt");
    std::int32_t in[1], out[1];
    CHECK(line_of([&] { wrong.window(DataSplit::train, 0, in, out); }) ==
          "t.txt: token 0: expected an id below 100, got 120");
}

TEST_CASE("examples and whole documents end with the end token, which is learned") {
    const Marked marked(true), plain(false);
    CHECK(encode_whole(marked, "ab").ids == std::vector<TokenId>{256, 'a', 'b', 257});
    CHECK(encode_whole(plain, "ab").ids == std::vector<TokenId>{'a', 'b'});
    Example pair;
    pair.prompt = "p", pair.completion = "c";
    const PackedText text = encode_example(marked, pair, nullptr);
    CHECK(text.ids == std::vector<TokenId>{256, 'p', 'c', 257});
    CHECK(std::vector<int>(text.scored.begin(), text.scored.end()) == std::vector<int>{0, 0, 1, 1});
    Examples many;
    many.list.resize(200);
    for (std::size_t i = 0; i < 200; i++) many.list[i].prompt = std::to_string(i);
    for (double fraction : {0.1, 0.5}) {
        const std::vector<bool> held = held_out_examples(many, fraction);
        const auto out = static_cast<double>(std::count(held.begin(), held.end(), true));
        CHECK(out == doctest::Approx(200 * fraction).epsilon(0.35));
        CHECK(held != held_out_examples(many, 1 - fraction / 2));
    }
    CHECK(held_out_examples(many, 1) == held_out_examples(many, 0.999999));  // one is learned
}

TEST_CASE("of a conversation the answers are learned with what ends them, whatever stands around them") {
    struct Row {
        bool marks, trim;
        std::string before, after;  // of an answer
        std::vector<ChatMessage> messages;
        std::string says;  // the ids, what is learned in capitals
    };
    const ChatMessage ask{"user", "q"}, answer{"assistant", " a "};
    const Row rows[] = {
        {false, false, "-", ";", {ask, answer}, "(q)- A ;"},
        {false, true, "-", ";", {ask, answer}, "(q)-A;"},
        {false, false, "- ", ";", {ask, answer}, "(q)- A;"},  // the space is the model's to write
        {false, false, "-", ";", {ask, answer, ask}, "(q)- A ;"},
        {false, false, "-", ";", {ask, answer, ask, {"assistant", ""}}, "(q)- A ;"},
        {false, false, "-", ";", {ask}, ""},
        {false, false, "-", "", {ask, answer}, "(q)- A "},  // nothing could tell the model to stop
        {true, false, "-", "", {ask, answer}, "<(q)- A >"},
        {true, false, "-", "", {ask, answer, ask, answer}, "<(q)- A (q)- A >"},
        {true, false, "-", ";", {ask, answer, ask, answer}, "<(q)- A ;(q)- A ;"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.says);
        ChatTemplate form;
        form.user = {"(", ")"}, form.assistant = {row.before, row.after}, form.trim = row.trim;
        Example example;
        example.messages = row.messages;
        const PackedText text = encode_example(Marked(row.marks), example, &form);
        std::string ids, scored;
        for (std::size_t i = 0; i < text.ids.size(); i++) {
            const TokenId id = text.ids[i];
            const char c = id == 256 ? '<' : id == 257 ? '>' : static_cast<char>(id);
            ids += c == 'a' && text.scored[i] ? 'A' : c;
            if (text.scored[i]) scored += c;
        }
        CHECK(ids == row.says);
        std::string learned;
        for (std::size_t at = row.says.find('-'); at != row.says.npos; at = row.says.find('-', at + 1)) {
            const std::size_t begin = at + 1;
            const std::size_t end = std::min(row.says.find('(', begin), row.says.size());
            learned += row.says.substr(begin, end - begin);
        }
        std::ranges::replace(learned, 'A', 'a');
        CHECK(scored == learned);
    }
}

TEST_CASE("what is shown of a held-out text ends where what is to be learned of it begins") {
    const Marked marked(true);
    std::vector<PackedText> texts[2];
    texts[0] = {encode_whole(marked, "learned")};
    auto beginning = [&] {
        return PackedTexts(texts, false, marked, 1, 64, "test").held_out_beginning(marked);
    };
    CHECK(beginning().empty());
    texts[1] = {encode_whole(marked, std::string(20, 'x'))};  // all of it is: a part is shown
    CHECK(beginning() == std::string(15, 'x'));
    texts[1] = {encode_whole(marked, "xyz")};
    CHECK(beginning() == "xyz");
    Example pair;
    pair.prompt = "prompt", pair.completion = "answer";
    texts[1] = {encode_example(marked, pair, nullptr)};
    CHECK(beginning() == "prompt");
}

TEST_CASE("corpora: a begin token, documents without end tokens, several bad files, long and empty ones") {
    Scratch s;
    CorpusOptions options;
    options.inputs = {s / "a.jsonl"}, options.folder = s / "out", options.tokenizer_name = "t";
    options.validation_fraction = 0;
    auto tokens = [&](const Tokenizer& tokenizer, const std::string& text) {
        write_text(s / "a.jsonl", text);
        options.overwrite = true;
        build_corpus(tokenizer, options);
        return read_all(TokenSource::open_files(*find_token_files(s / "out"), tokenizer, 0),
                        DataSplit::train);
    };
    CHECK(tokens(Marked(true), "{\"text\":\"ab\"}\n{\"text\":\"c\"}\n") ==
          Ids{256, 'a', 'b', 257, 256, 'c', 257});
    CHECK(line_of([&] { tokens(Marked(false), "{\"text\":\"ab\"}\n"); }) ==
          "t: expected a tokenizer with an end-of-text token, got none (--no-end-tokens leaves documents "
          "unmarked)");
    options.end_tokens = false;
    CHECK(tokens(Marked(false), "{\"text\":\"ab\"}\n{\"text\":\"c\"}\n") == Ids{'a', 'b', 'c'});
    // A document of many pieces, and of more than a batch keeps.
    const std::string longest(std::size_t{3} << 20, 'x');
    CHECK(tokens(Marked(false), "{\"text\":\"" + longest + "\"}\n{\"text\":\"y\"}\n").size() ==
          longest.size() + 1);
    options.inputs.push_back(s / "b.jsonl");
    options.folder = s / "bad", options.read.skip_bad = true;
    write_text(s / "b.jsonl", "7\n");
    CHECK(test::has(line_of([&] { tokens(Marked(false), "[]\n"); }),
                    "2 files: expected at least one document, got bad ones alone: "));
    CHECK_FALSE(std::filesystem::exists(s / "bad"));
}

TEST_CASE("a corpus is resumed only with the settings and the shard that the first run left") {
    Scratch s;
    CorpusOptions options;
    options.inputs = {s / "a.jsonl"}, options.folder = s / "out", options.tokenizer_name = "t";
    options.validation_fraction = 0;
    std::string text;
    for (int i = 0; i < 2000; i++) text += "{\"text\":\"" + std::string(500, 'a') + "\"}\n";
    write_text(s / "a.jsonl", text);
    const Marked marked(true);
    int batches = 0;
    options.progress = [&](const CorpusOptions::Progress&) { return ++batches == 2; };
    REQUIRE(build_corpus(marked, options).stopped);
    options.progress = nullptr, options.resume = true;
    const std::string path = s / "out/progress.json", kept = test::read_text(path);
    json progress = json::parse(kept);
    progress["settings"].erase("layout");
    write_text(path, progress.dump());
    CHECK(line_of([&] { build_corpus(marked, options); }) ==
          path +
              ": layout: expected nothing, got llmc (the run to resume had another setting; --overwrite "
              "begins again)");
    write_text(path, kept);
    const std::string part = s / "out/train_000000.part";
    std::filesystem::resize_file(part, 2000);
    const std::string shorter = line_of([&] { build_corpus(marked, options); });
    CHECK_MESSAGE(shorter.starts_with(part + ": expected at least "), shorter);
    const std::string hint = " (what the first run wrote is gone: begin again with --overwrite)";
    CHECK(shorter.ends_with("got 2000" + hint));
    std::filesystem::remove(part);
    const std::string gone = line_of([&] { build_corpus(marked, options); });
    CHECK_MESSAGE(gone.starts_with(part + ": expected at least "), gone);
    CHECK(gone.ends_with(" bytes, got no file" + hint));
}

TEST_CASE("of a corpus larger than the sample the checksums of its last shards are compared") {
    Scratch s;
    CorpusIndex index;
    index.layout = "nanogpt", index.vocab_size = 256, index.tokenizer_sha256 = std::string(64, '0');
    const std::uint64_t bytes = (std::uint64_t{128} << 20) + 2;
    index.shards = {{"train.bin", "train", 1, bytes / 2, 3, std::string(64, 'a')}};
    write_text(s / "index.json", corpus_index_json(index));
    write_text(s / "train.bin", "");
    std::filesystem::resize_file(s / "train.bin", bytes);  // of zeros that take no room
    CHECK(line_of([&] { check_corpus(s.path, false); }) == "accepted");
    write_text(s / "val.bin", "ab");
    index.shards.push_back({"val.bin", "validation", 1, 1, 3, std::string(64, 'b')});
    write_text(s / "index.json", corpus_index_json(index));
    CHECK(test::has(line_of([&] { check_corpus(s.path, false); }), "val.bin: sha256: expected bbb"));
}

TEST_CASE("texts without a place to cut them, or without an end, are read whole or refused") {
    Scratch s;
    auto texts = [&](const ReadOptions& options, const std::string& file) {
        DocumentReader reader({s / file}, options);
        std::vector<std::string> all;
        std::string text;
        for (DocumentPart part; reader.next(text, part);) {
            if (part.first) all.emplace_back();
            all.back() += text.substr(part.begin, part.end - part.begin);
        }
        return all;
    };
    ReadOptions options;
    options.piece = 8;
    const std::string thirty(30, 'x');
    write_text(s / "a.txt", thirty + "|" + thirty + "|" + thirty);
    for (const std::string& separator : {"|"s, ""s}) {
        options.separator = separator;
        const std::size_t documents = separator.empty() ? 1 : 3;
        options.cut = nullptr;
        CHECK(texts(options, "a.txt").size() == documents);
        options.cut = [](std::string_view text, std::size_t) { return text.size(); };  // nowhere
        CHECK(texts(options, "a.txt").size() == documents);
    }
    options.longest = 20;
    CHECK(line_of([&] { texts(options, "a.txt"); }) ==
          (s / "a.txt") +
              ": byte 0: expected a document, or a place to cut it, within 0 MiB, got none (this "
              "tokenizer reads such a text only whole)");
    write_text(s / "a.jsonl", "{\"text\": \"" + std::string(1 << 18, 'x'));
    CHECK(line_of([&] { texts(options, "a.jsonl"); }) ==
          (s / "a.jsonl") + ": line 1: expected at most 0 MiB per line, got more");
    CHECK(line_of([&] { texts({}, "none"); }) == (s / "none") + ": No such file or directory");
    for (const char* name : {"a.ndjson", "a.jsonl.gz", "a.ndjson.zst"}) CHECK(reads_as_jsonl(name, "auto"));
    CHECK_FALSE(reads_as_jsonl("a.jsonl", "text"));
    // A few zeros in much text are text.
    write_text(s / "z.txt", std::string(1000, 'x') + std::string(3, '\0'));
    CHECK(texts({}, "z.txt").at(0).size() == 1003);
}

TEST_CASE("what is held out of many documents: some of them, or where that is none or all, the end of each") {
    auto documents = [](std::size_t count, std::uint64_t step) {
        Documents d;
        for (std::size_t i = 0; i < count; i++) {
            d.text += "0123456789";
            d.ends.push_back(d.text.size());
            d.hashes.push_back(i * step);
        }
        return d;
    };
    const Documents many = documents(200, 1), alike = documents(200, 0);
    CHECK(split_documents(many, 0).validation.empty());
    CHECK(split_documents(many, 0).train.size() == 200);
    const TextSplit half = split_documents(many, 0.5);
    CHECK(half.train.size() + half.validation.size() == 200);
    CHECK(half.train.size() > 50);
    for (double fraction : {0.2, 0.8}) {  // all alike are on one side
        const TextSplit ends = split_documents(alike, fraction);
        CHECK(ends.train.size() == 200);
        CHECK(ends.validation.size() == 200);
    }
    CHECK(split_documents(many, 1).train.empty());
    Scratch s;
    write_text(s / "a.txt", ""), write_text(s / "b.txt", "");
    CHECK(line_of([&] { read_documents({s / "a.txt"}, {}); }) ==
          (s / "a.txt") + ": expected a text, got an empty file");
    CHECK(test::has(line_of([&] {
                        read_documents({s / "a.txt", s / "b.txt"}, {});
                    }),
                    "got files without text"));
    write_text(s / "a.txt", "a\xFF");
    ReadOptions options;
    CHECK(training_text({s / "a.txt"}, options) == "a\xFF");
    options.invalid = "replace";
    CHECK(training_text({s / "a.txt"}, options) == "a\xEF\xBF\xBD");
    options.invalid = "error", options.skip_bad = true;
    CHECK(line_of([&] { training_text({s / "a.txt"}, options); }) != "accepted");
}

TEST_CASE("scores of nothing are 0, and pictures are compared and counted by their shapes") {
    AnswerScores scores;
    scores.add("a", {});
    CHECK(scores.exact() == 0);
    CHECK(scores.chrf() == 0);
    scores.add("abc", {"xyz", "vw"});
    CHECK(scores.chrf() == 0);
    CHECK(scores.word_error() == 1);
    scores.add("", {"a"});
    CHECK(scores.char_error() > 0);
    const PictureShape shape{2, 3, 1};
    CHECK(shape == PictureShape{2, 3, 1});
    for (const PictureShape& other : {PictureShape{3, 3, 1}, {2, 2, 1}, {2, 3, 3}})
        CHECK_FALSE(shape == other);
    CHECK(Pictures().count() == 0);
    const std::uint8_t pixels[] = {255, 0, 0, 255};
    CHECK(patches_of({2, 2, 1}, pixels, 2, false) == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("conversations are held out by their words, wherever they stand") {
    Examples chats;
    chats.list.resize(200), chats.chats = true;
    for (std::size_t i = 0; i < 200; i++)
        chats.list[i].messages = {{"user", std::to_string(i)}, {"assistant", "a"}};
    const std::vector<bool> held = held_out_examples(chats, 0.1);
    CHECK(std::find(held.begin(), held.begin() + 100, true) != held.begin() + 100);
}
