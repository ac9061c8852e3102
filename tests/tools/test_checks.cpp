#include <doctest/doctest.h>

#include <filesystem>

#include "instrumented.h"
#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

namespace {

/// A small source tree with the project's scripts in it; nothing where this program does not stand in a
/// checkout.
bool make_tree(const test::Scratch& scratch) {
    fs::path tools = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tools";
    if (!fs::exists(tools / "check_layers.sh")) {
        test::skip("needs the checkout's tools/");
        return false;
    }
    for (const char* folder : {"tools", "tests", "src/base", "src/model"})
        fs::create_directories(scratch / folder);
    for (const char* script : {"check_layers.sh", "check_kernel_symbols.sh"})
        fs::copy_file(tools / script, (scratch / "tools/") + script);
    for (const char* folder : {"base", "model"})
        test::write_text((scratch / "src/") + folder + "/README.md", "a folder\n");
    test::write_text(scratch / "src/base/a.h", "#pragma once\n");
    test::write_text(scratch / "src/base/a.cpp", "#include \"base/a.h\"\n");
    test::write_text(scratch / "src/model/b.h", "#pragma once\n#include \"base/a.h\"\n");
    return true;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the layer check passes a good tree and names each fault of a bad one") {
    test::Scratch scratch;
    if (!make_tree(scratch)) return;
    // A compiler may be two words, as "ccache g++" is.
    auto check = [&] {
        return test::run_shell("CXX=\"env ${CXX:-g++}\" '" + (scratch / "tools/check_layers.sh'"));
    };
    CHECK(check().exit == 0);
    test::write_text(scratch / "src/base/a.h", "#pragma once\n#include \"model/b.h\"\n");
    test::write_text(scratch / "src/model/c.cpp", "#include \"b.h\"\n");
    test::write_text(scratch / "src/model/long.cpp", std::string(601, '\n'));
    fs::create_directories(scratch / "src/cellar");
    fs::create_directories(scratch / "src/text/unicode");
    test::write_text(scratch / "src/text/unicode/low.cpp", "#include \"text/files/high.h\"\n");
    fs::create_directories(scratch / "src/text/files");
    test::write_text(scratch / "src/text/files/high.h", "#include \"text/tokenizer.h\"\n");
    test::write_text(scratch / "src/text/tokenizer.h", "#pragma once\n");
    for (int i = 0; i < 7; i++)
        test::write_text(scratch / "src/text/files/half" + std::to_string(i) + ".cpp",
                         std::string(600, '\n'));
    test::write_text(scratch / "src/text/one.h",
                     "namespace linnet {\nstruct Late;\nclass Same {\n};\nenum class Kind { a };\n"
                     "namespace inner {\nstruct Apart {};\n}  // namespace inner\n}  // namespace linnet\n");
    test::write_text(
        scratch / "src/text/two.h",
        "namespace linnet {\nstruct Late {};\nnamespace {\nenum class Kind { a };\n}  // namespace\n"
        "struct Apart {};\nstruct Same : Late {\n};\n}  // namespace linnet\n");
    fs::remove(scratch / "src/model/README.md");
    auto outcome = check();
    CHECK(outcome.exit == 1);
    for (const char* fault :
         {"src/base/a.cpp: expected nothing above src/base, got src/model/b.h",
          "src/base/a.h: expected nothing above",
          "src/model/c.cpp:1:#include \"b.h\": expected an include written from src/",
          "src/model/long.cpp: expected at most 600 lines, got 601",
          "src/cellar/: expected one of the folders", "src/model/README.md: expected",
          "src/text/unicode/low.cpp: expected nothing above src/text/unicode, got src/text/files/high.h",
          "src/text/unicode/README.md: expected",
          "src/text/files/: expected at most 4000 lines of its own, got 4201"})
        CHECK_MESSAGE(contains(outcome.err, fault), fault << " not in " << outcome.err);
    CHECK_MESSAGE(contains(outcome.err, "expected a name of its own, got linnet::Same, which src/text/"),
                  outcome.err);
    for (const char* other : {"::Late", "::Kind", "Apart"}) CHECK_FALSE(contains(outcome.err, other));
}

TEST_CASE(
    "the kernel-symbol check wants the table and refuses all else, shared code and initialisers above all") {
    test::Scratch scratch;
    if (!make_tree(scratch)) return;
    auto check = [&](const std::string& source) {
        test::write_text(scratch / "isa_x.cpp", source);
        return test::run_shell(
            "cd '" + scratch.path +
            "' && g++ -std=c++20 -O1 -c isa_x.cpp && tools/check_kernel_symbols.sh isa_x.o");
    };
    const std::string table = "namespace linnet { extern const int x_kernels; const int x_kernels = 1; }\n";
    CHECK(check(table + "namespace { int f() { return 1; } }\nstatic int g() { return f(); }\n").exit == 0);
    CHECK(contains(check("int f();\n").err, "expected the table linnet::x_kernels, got none"));
    CHECK(contains(check(table + "int shown() { return 1; }\n").err, "T shown()"));
    CHECK(contains(check(table + "inline int twin() { return 1; }\nstatic int (*volatile p)() = twin;\n"
                                 "namespace { [[gnu::used]] int g() { return p(); } }\n")
                       .err,
                   "W twin()"));
    CHECK(contains(check(table + "int seed(); namespace { [[gnu::used]] int s = seed(); }\n").err,
                   "expected no dynamic initialisers"));
}

TEST_CASE("every test and fuzz target that tests/PROMISES.md names as a promise's is there") {
    const fs::path build = fs::read_symlink("/proc/self/exe").parent_path(), root = build.parent_path();
    if (!fs::exists(root / "tests/PROMISES.md")) return test::skip("needs the checkout's tests/");
    const std::string promises = test::read_text((root / "tests/PROMISES.md").string());
    const std::string tests = test::run_shell("'" + (build / "tests").string() + "' --list-test-cases").out;
    const std::size_t begin = promises.find("| promise | test |");
    REQUIRE(begin != promises.npos);
    const std::string table = promises.substr(begin, promises.find("\n\n", begin) - begin);
    int names = 0;
    for (std::size_t at = table.find('`'); at != table.npos; at = table.find('`', at + 1)) {
        const std::size_t end = table.find('`', at + 1);
        const std::string name = table.substr(at + 1, end - at - 1);
        const bool target = name.starts_with("fuzz_");
        if (target)
            CHECK_MESSAGE(fs::exists(root / "tests/fuzz" / (name + ".cpp")), name);
        else if (!test::instrumented)  // such builds leave some out
            CHECK_MESSAGE(contains(tests, name + "\n"), name);
        names++;
        at = end;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "tests/fuzz"))
        if (const std::string name = entry.path().stem().string(); name.starts_with("fuzz_"))
            CHECK_MESSAGE(contains(table, "`" + name + "`"), name);
    CHECK(names > 10);
}
