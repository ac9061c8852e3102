// The folder of a corpus, and the one beside it where a new corpus is built: what may be begun in which
// state.
#include "data/corpus_folder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/corpus_builder.h"
#include "data/corpus_index.h"
#include "support.h"
#include "text/tokenizer.h"

using namespace linnet;
using test::read_text;
using test::Scratch;
using test::write_text;

namespace {

namespace fs = std::filesystem;

std::string said(const std::string& folder, CorpusStart start) {
    return test::refusal([&] { CorpusFolder at(folder, start); }, Exit::usage);
}

/// A folder with a corpus, and beside it a new one that was broken off.
struct Replacing {
    Scratch s;
    std::string out = s / "out", beside = s / ".out.linnet-new", progress = beside + "/progress.json";

    Replacing() {
        const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
        CorpusOptions options;
        options.inputs = {s / "a.jsonl"}, options.folder = out, options.tokenizer_name = "bytes";
        options.end_tokens = false, options.validation_fraction = 0;
        std::string text;
        for (int i = 0; i < 2000; i++) text += "{\"text\":\"" + std::string(500, 'a') + "\"}\n";
        write_text(s / "a.jsonl", text);
        build_corpus(*bytes, options);
        int batches = 0;
        options.progress = [&](const CorpusOptions::Progress&) { return ++batches == 2; };
        options.overwrite = true;
        REQUIRE(build_corpus(*bytes, options).stopped);
        REQUIRE(fs::exists(progress));
    }
};

}  // namespace

TEST_CASE("a corpus that replaces one and was broken off is gone on with, begun again or cleared away") {
    const Replacing r;
    const std::string whole = r.out + ": expected a new or empty folder, got one with a corpus ";
    CHECK(said(r.out, CorpusStart::fresh) == whole + "(--resume goes on with it, --overwrite begins again)");
    CHECK(fs::exists(r.progress));
    {
        const CorpusFolder on(r.out + "/", CorpusStart::resume);
        CHECK(on.path() == r.beside);
        CHECK(!on.finished());
    }
    fs::rename(r.out + "/index.json", r.s / "index.json");  // the old one went
    CHECK(said(r.out, CorpusStart::resume) == "accepted");
    fs::rename(r.s / "index.json", r.out + "/index.json");
    // Another's progress is none of a corpus that replaces this one; files that are the user's are kept.
    nlohmann::json progress = nlohmann::json::parse(read_text(r.progress));
    progress.erase("replaces");
    write_text(r.progress, progress.dump());
    for (const char* name : {"both", "mine"}) write_text(r.beside + "/" + name, "beside");
    write_text(r.out + "/both", "here");
    CHECK(said(r.out, CorpusStart::fresh) == whole + "(--overwrite replaces it)");
    CHECK(!fs::exists(r.progress));
    CHECK(read_text(r.out + "/both") == "here");
    CHECK(read_text(r.beside + "/both") == "beside");
    CHECK(read_text(r.out + "/mine") == "beside");
    CHECK(!fs::exists(r.beside + "/mine"));
}

TEST_CASE("what a refused corpus finds in its folder stays, and an old one beside it is cleared away") {
    Scratch s;
    fs::create_directories(s / "out");
    for (const char* name : {"index.json", "progress.json"})
        write_text(s / (std::string("out/") + name), "{}");
    CHECK(said(s / "out", CorpusStart::fresh).find("one with a corpus") != std::string::npos);
    CHECK(fs::exists(s / "out/progress.json"));
    // A process that was killed between the last two renames of three leaves the old folder.
    fs::create_directories(s / ".out.linnet-old");
    write_text(s / ".out.linnet-old/mine", "mine");
    CHECK(said(s / "out", CorpusStart::fresh).find("one with a corpus") != std::string::npos);
    CHECK(read_text(s / "out/mine") == "mine");
    CHECK(!fs::exists(s / ".out.linnet-old"));
}

TEST_CASE("a corpus that is given up leaves the user's files, and the tokenizer that lay there") {
    Scratch s;
    fs::create_directories(s / "out");
    for (const char* name : {"notes.txt", corpus_tokenizer, "train_000000.part"})
        write_text(s / (std::string("out/") + name), name);
    CorpusFolder folder(s / "out", CorpusStart::overwrite);
    CHECK(folder.beside());
    const CorpusFolder other(s / "new", CorpusStart::fresh);
    for (const char* name : {"notes.txt", corpus_tokenizer, "train_000000.part", "progress.json"})
        write_text(s / (std::string("new/") + name), name);
    other.abandon();
    CHECK(fs::exists(s / "new/notes.txt"));
    CHECK(fs::exists(s / "new/tokenizer.gguf"));
    CHECK(!fs::exists(s / "new/train_000000.part"));
    CHECK(!fs::exists(s / "new/progress.json"));
}
