#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "model/convert/new_folder.h"
#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

namespace {

const NewFolder::Names names{
    "config.json", [](std::string_view name) { return name.starts_with("model"); }, {"words", "pooling"}};

void write_all(const std::string& folder, const std::string& text) {
    for (const char* name : {"config.json", "model-1", "words"}) test::write_text(folder + "/" + name, text);
}

bool holds(const std::string& folder, const std::string& text) {
    bool all = true;
    for (const char* name : {"config.json", "model-1", "words"})
        all = all && test::read_text(folder + "/" + name) == text;
    return all;
}

}  // namespace

TEST_CASE("a new folder takes the old one's place as a whole, and other files stay") {
    test::Scratch scratch;
    const std::string path = scratch / "f";
    fs::create_directories(path);
    write_all(path, "old");
    test::write_text(path + "/model-2", "old");
    test::write_text(path + "/mine", "mine");
    CHECK_THROWS_AS(NewFolder(path, Existing::keep, names), Error);
    NewFolder folder(path, Existing::replace, names);
    write_all(folder.path(), "new");
    CHECK(holds(path, "old"));
    folder.finish();
    CHECK(holds(path, "new"));
    CHECK(!fs::exists(path + "/model-2"));
    CHECK(!fs::exists(path + "/.linnet-old"));
    CHECK(test::read_text(path + "/mine") == "mine");
}

TEST_CASE("a folder that is something else already is refused, also where files may be replaced") {
    test::Scratch scratch;
    NewFolder::Names other = names;
    other.foreign = "other.json";
    for (const Existing existing : {Existing::keep, Existing::replace}) {
        const std::string path = scratch / (existing == Existing::keep ? "keep" : "replace");
        fs::create_directories(path);
        NewFolder(path, existing, other);
        test::write_text(path + "/other.json", "mine");
        CHECK_THROWS_WITH_AS(
            NewFolder(path, existing, other),
            (path + ": expected a folder without other.json, got one that has it (a folder is "
                    "a model or an adapter, not both)")
                .c_str(),
            Error);
        CHECK(fs::exists(path + "/other.json"));
        CHECK(!fs::exists(path + "/.linnet-new"));
    }
}

TEST_CASE("where a file of a new folder cannot have its name, the old one is there again") {
    test::Scratch scratch;
    const std::string path = scratch / "f";
    fs::create_directories(path);
    write_all(path, "old");
    {
        NewFolder folder(path, Existing::replace, names);
        write_all(folder.path(), "new");
        // The last but one to be set aside finds a folder in its way.
        fs::create_directories(path + "/.linnet-old/model-1/full");
        CHECK_THROWS_AS(folder.finish(), Error);
    }
    CHECK(holds(path, "old"));
    CHECK(!fs::exists(path + "/.linnet-new"));
}

TEST_CASE("what a killed run had set aside is there again when the next one begins") {
    test::Scratch scratch;
    const std::string path = scratch / "f";
    fs::create_directories(path + "/.linnet-old");
    write_all(path + "/.linnet-old", "old");
    CHECK_THROWS_AS(NewFolder(path, Existing::keep, names), Error);
    CHECK(holds(path, "old"));
}

TEST_CASE("a new folder is not written, and nothing put back or removed, through links") {
    test::Scratch scratch;
    const std::string path = scratch / "f", elsewhere = scratch / "elsewhere";
    fs::create_directories(path);
    fs::create_directories(elsewhere);
    write_all(elsewhere, "mine");
    fs::create_symlink(elsewhere, path + "/.linnet-old");
    fs::create_symlink(elsewhere, path + "/.linnet-new");
    {
        NewFolder folder(path, Existing::keep, names);
        CHECK(names_in(path).size() == 2);  // the lock and what is made
        write_all(folder.path(), "new");
        folder.finish();
    }
    CHECK(holds(path, "new"));
    for (const char* name : {"config.json", "model-1", "words"}) {
        fs::remove(path + "/" + name);
        fs::create_symlink(elsewhere + "/" + name, path + "/" + name);
    }
    NewFolder folder(path, Existing::replace, names);
    write_all(folder.path(), "newer");
    folder.finish();
    CHECK(holds(path, "newer"));
    CHECK(holds(elsewhere, "mine"));
}

TEST_CASE("a folder by the name of a model's file that holds others is not taken for one") {
    for (const char* inside : {"f/pooling/mine", "f/model-mine/config.json"}) {
        test::Scratch scratch;
        fs::create_directories(fs::path(scratch / inside).parent_path());
        test::write_text(scratch / inside, "mine");
        CHECK_THROWS_AS(NewFolder(scratch / "f", Existing::replace, names), Error);
        CHECK(test::read_text(scratch / inside) == "mine");
    }
}
