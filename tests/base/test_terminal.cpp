#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <future>

#include "base/terminal.h"
#include "support.h"

using namespace linnet;

TEST_CASE("numbers are told in human units") {
    CHECK(human_bytes(0) == "0 B");
    CHECK(human_bytes(999) == "999 B");
    CHECK(human_bytes(1000) == "1.0 kB");
    CHECK(human_bytes(999960) == "1.0 MB");
    CHECK(human_bytes(1.234e9) == "1.2 GB");
    CHECK(human_bytes(99.96e6) == "100 MB");
    CHECK(human_seconds(0.84) == "0.8s");
    CHECK(human_seconds(9.96) == "10s");
    CHECK(human_seconds(200) == "3m 20s");
    CHECK(human_seconds(59.6) == "1m 00s");
    CHECK(human_seconds(7500) == "2h 05m");
    CHECK(human_seconds(273600) == "3d 04h");
    CHECK(human_seconds(-1) == "?");
    CHECK(human_seconds(1.0 / 0.0) == "?");
    CHECK(human_count(950) == "950");
    CHECK(human_count(12345) == "12.3k");
    CHECK(human_count(1.24e6) == "1.24M");
    CHECK(human_count(99999) == "100k");
    CHECK(human_count(999999) == "1.00M");
    CHECK(human_count(3.14159) == "3.14");
    CHECK(grouped(0) == "0");
    CHECK(grouped(950U) == "950");
    CHECK(grouped(std::int64_t{50257}) == "50 257");
    CHECK(grouped(std::uint64_t{1000000}) == "1 000 000");
    CHECK(grouped(-950) == "-950");
    CHECK(grouped(-50257) == "-50 257");
}

TEST_CASE("what is printable steers no terminal: C0, DEL, C1 and bytes that are no UTF-8 are spelled out") {
    CHECK(printable("café \xE4\xB8\xAD") == "café \xE4\xB8\xAD");
    CHECK(printable("\x1b[2J\x07\x7f") == "\\x1b[2J\\x07\\x7f");
    CHECK(printable("\xC2\x9B"
                    "2J\xC2\xA0") == "\\x9b2J\xC2\xA0");  // U+009B is CSI, U+00A0 a space
    CHECK(printable("a\xFF\xC2") == "a\\xff\\xc2");
    CHECK(printable(std::string_view("\0\n", 2)) == "\\x00\\x0a");
    CHECK(printable("a\tb\nc\rd\n", true) == "a\tb\nc\\x0dd\n");
}

TEST_CASE("a note is folded at its spaces; a longer word has a line of its own") {
    CHECK(folded("one two three", 7) == "one two\nthree");
    CHECK(folded("one two three", 20) == "one two three");
    CHECK(folded("abcdefghij kl", 5) == "abcdefghij\nkl");
    CHECK(folded("one two three", 8, 2, 5) == "one\n  two\n  three");
    CHECK(folded("été là", 6) == "été là");
    CHECK(folded("a\n  b c", 80, 2) == "a\n    b c");
    CHECK(folded("", 5).empty());
}

TEST_CASE("a status line never writes to a stderr that is no terminal unless a log was asked for") {
    test::Scratch scratch;
    auto written = [&](double log_seconds) {
        const int file = ::open((scratch / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                  kept = ::dup(STDERR_FILENO);
        ::dup2(file, STDERR_FILENO);
        const bool colours = stderr_colours();
        {
            StatusLine status(log_seconds);
            for (int i = 0; i < 1000; i++) status.show(std::to_string(i));
        }
        ::dup2(kept, STDERR_FILENO);
        for (int fd : {kept, file}) ::close(fd);
        CHECK(!colours);
        return test::read_text(scratch / "err");
    };
    CHECK(written(0).empty());
    CHECK(written(3600) == "0\n999\n");  // at most one line in this time, and the last text at the end
}

TEST_CASE("a note comes whole to a stderr that does not block and is slowly read") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    const std::string line(std::size_t{1} << 20, 'x');  // more than a pipe holds
    auto read = std::async(std::launch::async, [&] {
        std::string all;
        std::string part(4096, ' ');
        for (ssize_t n; (n = ::read(ends[0], part.data(), part.size())) > 0;)
            all.append(part, 0, static_cast<std::size_t>(n));
        return all;
    });
    const int kept = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    tell(line);
    ::dup2(kept, STDERR_FILENO);
    for (int fd : {kept, ends[1]}) ::close(fd);
    CHECK((read.get() == line + "\n"));  // as one value: neither is to be printed
    ::close(ends[0]);
}
