#include "base/stream_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "support.h"

using namespace linnet;

namespace {

std::string noise(std::size_t size) {
    Rng rng(5, 0);
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(rng.below(256, i));
    return bytes;
}

std::string read_back(const std::string& path) {
    std::string all;
    read_stream(path, [&](std::string_view bytes) { all += bytes; });
    return all;
}

constexpr std::size_t block = std::size_t{2} << 20;  // AppendFile's

}  // namespace

TEST_CASE("what is appended in pieces of any size is in the file after sync(), and goes on from any size") {
    test::Scratch scratch;
    const std::string path = scratch / "f", bytes = noise(3 * block + 12345);
    for (std::size_t piece : {std::size_t{777}, std::size_t{65536}, block - 1, bytes.size()}) {
        for (std::size_t begin :
             {std::size_t{0}, std::size_t{1}, std::size_t{4096}, block - 1, block, 2 * block + 4097}) {
            write_file(path, bytes.substr(0, begin) + "what follows is cut off");
            AppendFile file(path, begin);
            for (std::size_t at = begin; at < bytes.size(); at += piece) {
                if (at == begin + 2 * piece) {
                    file.sync().get();
                    CHECK(read_file(path) == bytes.substr(0, at));
                }
                file.append(std::string_view(bytes).substr(at, piece));
            }
            CHECK(file.size() == bytes.size());
            file.sync().get();
            CHECK(read_file(path) == bytes);
            CHECK(read_back(path) == bytes);
        }
    }
}

TEST_CASE("the head of a file is replaced whether it is on the disk already or not") {
    test::Scratch scratch;
    const std::string path = scratch / "f", bytes = noise(block + 5000), head(1024, 'h');
    for (std::size_t size : {std::size_t{1024}, std::size_t{5000}, block, bytes.size()}) {
        for (bool synced : {false, true}) {
            std::string expected = bytes.substr(0, size);
            {
                AppendFile file(path, 0);
                file.append(expected);
                if (synced) file.sync().get();
                file.replace_head(head);
                file.append("more");
                file.sync().get();
            }
            expected.replace(0, head.size(), head);
            CHECK(read_back(path) == expected + "more");
        }
    }
}

TEST_CASE("a full disk is an error that names the file, and it stays") {
    if (geteuid() != 0) return test::skip("needs root to mount a 4 MiB tmpfs");
    test::Scratch scratch;
    test::Outcome mounted = test::run_shell("mount -t tmpfs -o size=4M none '" + scratch.path + "'");
    if (mounted.exit != 0) return test::skip("needs the right to mount a 4 MiB tmpfs");
    const std::string path = scratch / "f", bytes = noise(block);
    std::vector<std::string> lines;
    {
        AppendFile file(path, 0);
        for (int i = 0; i < 12; i++) try {
                if (i < 9)
                    file.append(bytes);
                else
                    file.sync().get();
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::io);
                lines.push_back(error.what());
            }
    }
    test::run_shell("umount '" + scratch.path + "'");
    CHECK(lines.size() >= 3);  // each sync() says it
    for (const std::string& line : lines) CHECK(line == path + ": writing: No space left on device");
}

TEST_CASE("a file that cannot be opened is named") {
    test::Scratch scratch;
    const std::string path = scratch / "none/f";
    CHECK_THROWS_WITH_AS(AppendFile(path, 0), (path + ": No such file or directory").c_str(), Error);
    CHECK_THROWS_WITH_AS(read_back(path), (path + ": No such file or directory").c_str(), Error);
    write_file(scratch / "empty", "");
    CHECK(read_back(scratch / "empty").empty());
}
