#include <doctest/doctest.h>

#include <filesystem>

#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

namespace {

/// A small source tree with the house's scripts in it; nothing where this program does not stand in a
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
    for (const char* room : {"base", "model"})
        test::write_text((scratch / "src/") + room + "/README.md", "a room\n");
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
    auto check = [&] { return test::run_shell("'" + (scratch / "tools/check_layers.sh'")); };
    CHECK(check().exit == 0);
    test::write_text(scratch / "src/base/a.h", "#pragma once\n#include \"model/b.h\"\n");
    test::write_text(scratch / "src/model/c.cpp", "#include \"b.h\"\n");
    test::write_text(scratch / "src/model/long.cpp", std::string(601, '\n'));
    fs::create_directories(scratch / "src/cellar");
    fs::remove(scratch / "src/model/README.md");
    auto outcome = check();
    CHECK(outcome.exit == 1);
    for (const char* fault : {"src/base/a.cpp: expected nothing above src/base, got src/model/b.h",
                              "src/base/a.h: expected nothing above",
                              "src/model/c.cpp:1:#include \"b.h\": expected an include written from src/",
                              "src/model/long.cpp: expected at most 600 lines, got 601",
                              "src/cellar/: expected one of the rooms", "src/model/README.md: expected"})
        CHECK_MESSAGE(contains(outcome.err, fault), fault << " not in " << outcome.err);
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
