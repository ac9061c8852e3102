#include "data/corpus_builder.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "data/batches.h"
#include "data/corpus_progress.h"
#include "data/shards.h"
#include "support.h"

using namespace linnet;

namespace {

/// Byte b is token b (or b << 9 for a large vocabulary); token 256 ends a document.
class Bytes : public Tokenizer {
  public:
    explicit Bytes(TokenId size = 257) : size_(size) {}
    std::string_view kind() const override { return "byte"; }
    TokenId size() const override { return size_; }
    void encode(std::string_view text, std::vector<TokenId>& out, const EncodeOptions&) const override {
        for (char c : text) out.push_back(static_cast<unsigned char>(c) << (size_ > 65536 ? 9 : 0));
    }
    std::size_t cut(std::string_view text, std::size_t from) const override {
        return std::min(from, text.size());
    }
    void decode(TokenId id, bool, std::string& out) const override { out += static_cast<char>(id); }
    std::string_view piece(TokenId) const override { return ""; }
    bool is_control(TokenId id) const override { return id == 256; }
    std::optional<TokenId> bos() const override { return std::nullopt; }
    std::optional<TokenId> eos() const override { return 256; }
    bool add_bos() const override { return false; }
    bool is_end(TokenId id) const override { return id == 256; }
    void write(GgufWriter&) const override {}

  private:
    TokenId size_;
};

std::string make_documents(const std::string& path, std::size_t documents) {
    Rng rng(3, 9);
    std::ofstream file(path);
    std::string all;
    for (std::size_t i = 0; i < documents; i++) {
        std::string text(1 + rng.below(9000, i), static_cast<char>('a' + i % 26));
        file << "{\"text\":\"" << text << "\"}\n";
        all += text;
    }
    return all;
}

CorpusOptions basic(const test::Scratch& s, const std::string& name) {
    CorpusOptions options;
    options.inputs = {s / "in.jsonl"};
    options.folder = s / name;
    options.tokenizer_name = "bytes";
    options.validation_fraction = 0.1;
    options.shard_tokens = 700'000;
    return options;
}

std::string folder_bytes(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    std::string all;
    for (const std::string& name : names) all += name.substr(name.rfind('/')) + "\n" + test::read_text(name);
    return all;
}

}  // namespace

TEST_CASE("a corpus holds every document once, bordered, in llm.c's layout, with true checksums") {
    test::Scratch s;
    std::string all = make_documents(s / "in.jsonl", 900);
    CorpusResult result = build_corpus(Bytes(), basic(s, "out"));
    const CorpusIndex& index = result.index;
    CHECK(index.documents == 900);
    CHECK(index.bytes == all.size());
    CHECK(index.tokens == all.size() + 900);
    std::uint64_t tokens = 0, train_tokens = 0, validation_documents = 0;
    for (const CorpusShard& shard : index.shards) {
        std::string bytes = test::read_text(s / ("out/" + shard.file));
        CHECK(shard.sha256 == sha256(bytes));
        std::int32_t header[3];
        std::memcpy(header, bytes.data(), sizeof header);
        CHECK(header[0] == 20240520);
        CHECK(header[1] == 1);
        CHECK(static_cast<std::uint64_t>(header[2]) == shard.tokens);
        CHECK(bytes.size() == 1024 + 2 * shard.tokens);
        tokens += shard.tokens;
        if (shard.split == "train") train_tokens += shard.tokens;
        if (shard.split == "validation") validation_documents += shard.documents;
    }
    CHECK(index.tokenizer_sha256 == sha256(test::read_text(s / "out/tokenizer.gguf")));
    CHECK(tokens == index.tokens);
    CHECK(validation_documents > 50);
    CHECK(validation_documents < 150);
    TokenSource source = TokenSource::open_files(*find_token_files(s / "out"), Bytes(), 0);
    CHECK(source.size(DataSplit::train) == train_tokens);
    CHECK_FALSE(std::filesystem::exists(s / "out/progress.json"));
    // Each document is a run of one letter, and ends with the border.
    std::vector<std::int32_t> in(train_tokens - 1), out(train_tokens - 1);
    source.window(DataSplit::train, 0, in, out);
    for (std::size_t i = 0; i < in.size(); i++)
        if (in[i] != 256 && out[i] != 256 && in[i] != out[i])
            FAIL("two documents run into each other at " << i);
    CHECK(out.back() == 256);
}

TEST_CASE("large vocabularies have 32-bit shards") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 20);
    CorpusResult result = build_corpus(Bytes(200'000), basic(s, "out"));
    TokenShard shard(s / ("out/" + result.index.shards[0].file));
    CHECK(shard.bytes() == llmc_header_bytes + 4 * shard.size());
    CHECK(shard[0] == 'a' << 9);
}

TEST_CASE("shards are the same bytes for any number of threads") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 900);
    CorpusOptions one = basic(s, "one"), three = basic(s, "three");
    three.threads = 3;
    build_corpus(Bytes(), one);
    build_corpus(Bytes(), three);
    CHECK(folder_bytes(s / "one") == folder_bytes(s / "three"));
}

TEST_CASE("a run that stops anywhere and goes on leaves the bytes of one that did not stop") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 1200);
    build_corpus(Bytes(), basic(s, "whole"));
    for (int stop_after = 1; stop_after < 6; stop_after++) {
        CorpusOptions options = basic(s, "parts");
        options.overwrite = true;
        options.threads = 2;
        int batches = 0;
        options.progress = [&](const CorpusOptions::Progress&) { return ++batches == stop_after; };
        CHECK(build_corpus(Bytes(), options).stopped);
        // Where there is a corpus to replace, the new one grows beside it, and the old one stays whole.
        const bool replaces = stop_after > 1;
        CHECK(std::filesystem::exists(
            s / (replaces ? ".parts.linnet-new/progress.json" : "parts/progress.json")));
        CHECK(std::filesystem::exists(s / "parts/index.json") == replaces);
        options.overwrite = false;
        options.progress = nullptr;
        CHECK_THROWS_AS(build_corpus(Bytes(), options), Error);  // not without being asked to
        options.resume = true;
        CHECK(build_corpus(Bytes(), options).index.documents == 1200);
        CHECK(folder_bytes(s / "whole") == folder_bytes(s / "parts"));
        CHECK(build_corpus(Bytes(), options).was_done);
    }
}

TEST_CASE("a crash between a shard's renaming and the note of it loses nothing") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 1200);
    build_corpus(Bytes(), basic(s, "whole"));
    CorpusOptions options = basic(s, "crash");
    int batches = 0;
    options.progress = [&](const CorpusOptions::Progress&) { return ++batches == 2; };
    build_corpus(Bytes(), options);
    CorpusProgress progress;
    CHECK(read_corpus_progress(s / "crash", progress));
    std::size_t index = progress.splits[0].finished.size();
    CHECK(progress.splits[0].open.tokens > 0);
    std::string name = s / ("crash/train_00000" + std::to_string(index));
    std::filesystem::rename(name + ".part", name + ".bin");
    {  // it was the last shard of that run, whose header says how short it is
        std::fstream shard(name + ".bin", std::ios::in | std::ios::out | std::ios::binary);
        shard.seekp(8).write("\x01\0\0", 4);
    }
    std::ofstream(name + ".bin", std::ios::app) << "tokens of the lost time";
    options.progress = nullptr;
    options.resume = true;
    build_corpus(Bytes(), options);
    CHECK(folder_bytes(s / "whole") == folder_bytes(s / "crash"));
}

TEST_CASE("resuming is refused for other settings and for another input") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 1200);
    CorpusOptions options = basic(s, "out");
    int batches = 0;
    options.progress = [&](const CorpusOptions::Progress&) { return ++batches == 3; };
    build_corpus(Bytes(), options);
    options.progress = nullptr;
    options.resume = true;
    auto refused = [&](const CorpusOptions& with, std::string_view what) {
        try {
            build_corpus(Bytes(), with);
        } catch (const Error& error) {
            return error.exit() == Exit::diverged &&
                   std::string_view(error.what()).find(what) != std::string_view::npos;
        }
        return false;
    };
    CorpusOptions other = options;
    other.shard_tokens = 1000;
    CHECK(refused(other, "shard_tokens"));
    std::string text = test::read_text(s / "in.jsonl");
    std::string changed = text;
    changed[20] = 'Z';
    test::write_text(s / "in.jsonl", changed);
    CHECK(refused(options, "input has changed"));
    test::write_text(s / "in.jsonl", text.substr(0, text.find('\n') + 1));
    CHECK(refused(options, "input has changed"));
}

TEST_CASE("a corpus is not gone on with where its files or its text have not what progress.json says") {
    using nlohmann::json;
    test::Scratch s;
    make_documents(s / "in.jsonl", 1200);
    for (const std::string layout : {"llmc", "nanogpt", "megatron"}) {
        CAPTURE(layout);
        CorpusOptions options = basic(s, "whole-" + layout);
        options.layout = layout;
        build_corpus(Bytes(), options);
        options.folder = s / layout;
        int batches = 0;
        options.progress = [&](const CorpusOptions::Progress&) { return ++batches == 5; };
        REQUIRE(build_corpus(Bytes(), options).stopped);
        options.progress = nullptr, options.resume = true;
        const auto copy = std::filesystem::copy_options::recursive;
        std::filesystem::copy(options.folder, s / ("kept-" + layout), copy);
        auto refused = [&](const std::function<void()>& spoil) -> std::string {
            std::filesystem::remove_all(options.folder);
            std::filesystem::copy(s / ("kept-" + layout), options.folder, copy);
            spoil();
            try {
                build_corpus(Bytes(), options);
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::diverged);
                // Nor was a file made as long as the number says.
                for (const auto& entry : std::filesystem::directory_iterator(options.folder))
                    CHECK(entry.file_size() < 100'000'000);
                return error.what();
            }
            return "accepted";
        };
        const std::string path = options.folder + "/progress.json";
        const json good = json::parse(test::read_text(path));
        auto refused_saying = [&](const json& progress) {
            return refused([&] { test::write_text(path, progress.dump()); });
        };
        for (const std::string place : {"/train/open/documents", "/train/open/tokens", "/train/open/bytes",
                                        "/validation/open/documents", "/batches"})
            for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
                if (number == 0 && place.ends_with("tokens")) continue;  // less, and written again
                json changed = good;
                changed[json::json_pointer(place)] = number;
                const std::string line = refused_saying(changed);
                CHECK_MESSAGE(test::has(line, "begin"), place << " " << number << ": " << line);
            }
        json shards = good;
        shards["train"]["finished"].push_back(good["train"]["open"]);
        CHECK(test::has(refused_saying(shards), "begin again with --overwrite"));
        const std::string file = options.folder + (layout == "llmc"      ? "/train_000000.bin"
                                                   : layout == "nanogpt" ? "/train.part"
                                                                         : "/train_text_document.starts");
        const std::string bytes = test::read_text(file),
                          wanted =
                              file + ": expected at least " + std::to_string(bytes.size()) + " bytes, got ";
        const std::string gone = refused([&] { std::filesystem::remove(file); }),
                          less = refused([&] { test::write_text(file, bytes.substr(8)); });
        CHECK_MESSAGE(gone.starts_with(wanted + "no file (what the first run wrote is gone"), gone);
        CHECK_MESSAGE(less.starts_with(wanted + std::to_string(bytes.size() - 8)), less);
        CHECK(refused([] {}) == "accepted");
        CHECK(folder_bytes(s / ("whole-" + layout)) == folder_bytes(options.folder));
    }
}

TEST_CASE("a bad line stops the run; mended, it goes on from there") {
    test::Scratch s;
    make_documents(s / "in.jsonl", 1200);
    build_corpus(Bytes(), basic(s, "whole"));
    std::string text = test::read_text(s / "in.jsonl"), bad = text;
    std::size_t at = bad.find('{', bad.size() * 3 / 4);
    bad[at] = '(';
    test::write_text(s / "in.jsonl", bad);
    CorpusOptions options = basic(s, "out");
    CHECK_THROWS_AS(build_corpus(Bytes(), options), Error);
    CHECK_FALSE(std::filesystem::exists(s / "out/index.json"));
    test::write_text(s / "in.jsonl", text);
    options.resume = true;
    build_corpus(Bytes(), options);
    CHECK(folder_bytes(s / "whole") == folder_bytes(s / "out"));
}

TEST_CASE(
    "a corpus inside its own input is no part of that, and nine tenths of a single text are trained on") {
    test::Scratch s;
    std::filesystem::create_directories(s / "in");
    test::write_text(s / "in/a.txt", std::string(15, 'a'));
    CorpusOptions options = basic(s, "in/out");
    options.inputs = {s / "in"};
    options.layout = "nanogpt";
    options.end_tokens = false;
    for (bool again : {false, true}) {
        options.overwrite = again;
        const CorpusIndex index = build_corpus(Bytes(), options).index;
        CHECK(index.documents == 1);
        REQUIRE(index.shards.size() == 2);
        CHECK(index.shards[0].tokens + index.shards[1].tokens == 15);
        CHECK(std::max(index.shards[0].tokens, index.shards[1].tokens) == 13);  // int(15 * 0.9)
    }
}

TEST_CASE("an input without documents is an error and leaves nothing behind") {
    test::Scratch s;
    test::write_text(s / "in.jsonl", "\n\n{\"text\":\"\"}\n");
    CHECK_THROWS_AS(build_corpus(Bytes(), basic(s, "out")), Error);
    CHECK_FALSE(std::filesystem::exists(s / "out"));
}
