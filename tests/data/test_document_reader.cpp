#include "data/document_reader.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>

#include "base/error.h"
#include "data/byte_source.h"
#include "data/line_reader.h"
#include "data/utf8_check.h"
#include "support.h"
#include "text/unicode/unicode.h"

using namespace linnet;
using test::write_text;

namespace {

std::string gzip(const std::string& text) {
    z_stream z{};
    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&z, text.size()) + 64, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

std::string zstd(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

std::string read_all(const std::string& path) {
    auto source = open_source(path);
    std::string out;
    char buffer[1000];
    while (std::size_t n = source->read(buffer, sizeof buffer)) out.append(buffer, n);
    return out;
}

struct Documents {
    std::vector<std::string> texts;
    std::size_t parts = 0;
    std::uint64_t skipped = 0;
    std::string first_skipped;
};

Documents read_documents(const std::vector<std::string>& files, ReadOptions options = {}) {
    if (!options.cut)
        options.cut = [](std::string_view text, std::size_t from) {
            std::size_t at = text.find(' ', from);
            return at == std::string_view::npos ? text.size() : at;
        };
    DocumentReader reader(expand_inputs(files), options);
    Documents out;
    std::string text;
    DocumentPart part;
    bool open = false;
    std::uint64_t hash = 0;
    while (reader.next(text, part)) {
        CHECK(part.first == !open);
        if (part.first) {
            out.texts.emplace_back();
            hash = part.hash;
        }
        CHECK(part.hash == hash);
        CHECK(part.end == text.size());
        out.texts.back() += text.substr(part.begin, part.end - part.begin);
        out.parts++;
        open = !part.last;
    }
    CHECK_FALSE(open);
    out.skipped = reader.skipped().skipped;
    out.first_skipped = reader.skipped().first_skipped;
    return out;
}

std::string refusal(auto&& call, Exit* exit = nullptr) {
    try {
        call();
    } catch (const Error& error) {
        if (exit) *exit = error.exit();
        return error.what();
    }
    return "";
}

using Texts = std::vector<std::string>;

std::string words(std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; text.size() < bytes; i++) text += "word" + std::to_string(i * i % 9973) + " ";
    return text;
}

}  // namespace

TEST_CASE("plain, gzip and Zstandard files yield their bytes, in one member or many") {
    test::Scratch s;
    std::string a = words(300000), b = "second\n";
    write_text(s / "p", a);
    write_text(s / "g.gz", gzip(a) + gzip(b));
    write_text(s / "z.zst", zstd(a) + zstd("") + zstd(b));
    write_text(s / "g_without_name", gzip(b));
    write_text(s / "empty", "");
    CHECK(read_all(s / "p") == a);
    CHECK(read_all(s / "g.gz") == a + b);
    CHECK(read_all(s / "z.zst") == a + b);
    CHECK(read_all(s / "g_without_name") == b);
    CHECK(read_all(s / "empty").empty());
}

TEST_CASE("every truncation and damage of compressed data is an error that names the file") {
    test::Scratch s;
    std::string text = words(3000), g = gzip(text), z = zstd(text);
    for (const auto& [name, packed] : {std::pair(s / "t.gz", g), std::pair(s / "t.zst", z)}) {
        for (std::size_t n = 0; n < packed.size(); n += 1 + packed.size() / 97) {
            write_text(name, packed.substr(0, n));
            Exit exit{};
            CHECK(refusal([&, &name = name] { read_all(name); }, &exit).starts_with(name));
            CHECK(exit == Exit::input);
        }
        write_text(name, packed + "garbage");
        CHECK(refusal([&, &name = name] { read_all(name); }).find("expected the end of") !=
              std::string::npos);
        std::string damaged = packed;
        damaged[packed.size() / 2] ^= 0x10;
        damaged[packed.size() / 2 + 1] ^= 0x55;
        write_text(name, damaged);
        std::string line = refusal([&, &name = name] { read_all(name); });
        CHECK(line.starts_with(name));
    }
}

TEST_CASE("a decompression bomb streams") {
    test::Scratch s;
    std::string zeros(std::size_t{1} << 20, 'a');
    std::string packed;
    for (int i = 0; i < 8; i++) packed += zstd(zeros) + zstd(" b");
    write_text(s / "bomb.zst", packed);
    ReadOptions options;
    options.piece = 4096;
    options.longest = std::size_t{2} << 20;
    Documents d = read_documents({s / "bomb.zst"}, options);
    CHECK(d.texts.at(0).size() == 8 * (zeros.size() + 2));
    options.longest = std::size_t{1} << 19;  // no place to cut within half a MiB
    CHECK(refusal([&] { read_documents({s / "bomb.zst"}, options); }).find("within 0 MiB") !=
          std::string::npos);
}

TEST_CASE("what is no regular file is refused, and a folder stands for its files in order") {
    test::Scratch s;
    ::mkfifo((s / "fifo").c_str(), 0600);
    CHECK(refusal([&] { read_documents({s / "fifo"}); }).find("a FIFO") != std::string::npos);
    CHECK(refusal([] { read_documents({"/dev/zero"}); }).find("a device") != std::string::npos);
    Exit exit{};
    refusal([&] { read_documents({s / "absent"}); }, &exit);
    CHECK(exit == Exit::io);
    std::filesystem::create_directories(s / "d/e/.hidden");
    CHECK_FALSE(refusal([&] { read_documents({s / "d"}); }).empty());
    write_text(s / "d/b.txt", "two");
    write_text(s / "d/a.txt", "one");
    write_text(s / "d/e/x.jsonl", "{\"text\":\"three\"}\n");
    write_text(s / "d/.no", "hidden");
    write_text(s / "d/e/.hidden/f", "hidden");
    CHECK(read_documents({s / "d"}).texts == Texts{"one", "two", "three"});
    CHECK(expand_inputs({s / "d"}, s / "d/e") == std::vector<std::string>{s / "d/a.txt", s / "d/b.txt"});
    write_text(s / "d/\x1B[31m", "\xFF");
    CHECK(refusal([&] { read_documents({s / "d"}); }).find("\\x1b[31m: byte 0") != std::string::npos);
}

TEST_CASE("a line of more than 1 MiB is refused wherever it stands") {
    test::Scratch s;
    const std::string longest(std::size_t{1} << 20, 'a');
    for (const char* before : {"", "b\n"}) {
        std::string line;
        write_text(s / "lines", before + longest + "\n");
        LineReader lines(s / "lines");
        while (lines.next(line)) {
        }
        CHECK(line == longest);
        write_text(s / "lines", before + longest + "a\n");
        CHECK(refusal([&] {
                  LineReader more(s / "lines");
                  while (more.next(line)) {
                  }
              }).find("expected at most 1 MiB per line") != std::string::npos);
    }
}

TEST_CASE("a file that grows or shrinks while it is read is an error") {
    test::Scratch s;
    write_text(s / "f", std::string(1000, 'x'));
    auto source = open_source(s / "f");
    write_text(s / "f", std::string(2000, 'x'));
    char buffer[4000];
    CHECK(refusal([&] {
              while (source->read(buffer, 300)) {
              }
          }).find("changed") != std::string::npos);
    write_text(s / "g", std::string(600000, 'x'));
    source = open_source(s / "g");
    write_text(s / "g", "");
    CHECK(refusal([&] {
              while (source->read(buffer, sizeof buffer)) {
              }
          }).find("changed") != std::string::npos);
}

TEST_CASE("a text file is a document, or several where a separator is given; pieces join to the same text") {
    test::Scratch s;
    std::string text = words(50000);
    write_text(s / "a.txt", "\xEF\xBB\xBF" + text + "\r\n" + std::string(1, '\0'));
    ReadOptions options;
    CHECK(read_documents({s / "a.txt"}).texts == Texts{text + "\r\n" + std::string(1, '\0')});
    options.piece = 1000;
    Documents pieces = read_documents({s / "a.txt"}, options);
    CHECK(pieces.texts.size() == 1);
    CHECK(pieces.parts > 20);
    CHECK(pieces.texts[0].size() == text.size() + 3);

    options.separator = "<|end|>";
    write_text(s / "b.txt", "<|end|>one<|end|><|end|>" + text + "<|end|>last");
    CHECK(read_documents({s / "b.txt"}, options).texts == Texts{"one", text, "last"});
    write_text(s / "empty.txt", "");
    CHECK(read_documents({s / "empty.txt"}, options).texts.empty());
}

TEST_CASE("text that is not UTF-8 is named; UTF-16 by its name") {
    test::Scratch s;
    auto line = [&](std::string_view bytes) {
        write_text(s / "t.txt", std::string(bytes));
        return refusal([&] { read_documents({s / "t.txt"}); });
    };
    using namespace std::string_view_literals;
    CHECK(line("abc\x80").find("byte 3: expected UTF-8, got a stray continuation byte 0x80") !=
          std::string::npos);
    CHECK(line("\xC0\xAF").find("overlong") != std::string::npos);
    CHECK(line("\xE0\x80\xAF").find("overlong") != std::string::npos);
    CHECK(line("\xED\xA0\x80").find("lone surrogate") != std::string::npos);
    CHECK(line("\xF4\x90\x80\x80").find("beyond") != std::string::npos);
    CHECK(line("ab\xE4\xB8").find("truncated") != std::string::npos);
    CHECK(line("\xFF\xFEh\0i\0"sv).find("UTF-16 (little-endian)") != std::string::npos);
    CHECK(line("\xFE\xFF\0h\0i"sv).find("UTF-16 (big-endian)") != std::string::npos);
    CHECK(line("h\0e\0l\0l\0o\0 \0"sv).find("UTF-16 (little-endian, unmarked)") != std::string::npos);
    CHECK(line("caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80 plain ascii behind it").empty());
    for (std::size_t n = 0; n < 60; n++) {
        std::string text(n, 'a');
        CHECK(valid_utf8_prefix(text + "\xC3\xA9") == n + 2);
        CHECK(valid_utf8_prefix(text + "\xFFzzzzzzzzzzzzzzzzzzzz") == n);
    }
}

TEST_CASE("a bad line is named by file and line; --skip-bad counts instead") {
    test::Scratch s;
    write_text(
        s / "d.jsonl",
        "{\"text\":\"one\"}\r\n\n{\"text\":}\n{\"text\":\"two\"}\n{\"no\":\"x\"}\n{\"text\":\"\xFF\"}\n"
        "{\"text\":\"\"}\n{\"text\":\"three\"}");
    std::string line = refusal([&] { read_documents({s / "d.jsonl"}); });
    CHECK(line.find("d.jsonl: line 3, byte 9: expected a string as \"text\", got '}'") != std::string::npos);
    ReadOptions options;
    options.skip_bad = true;
    Documents d = read_documents({s / "d.jsonl"}, options);
    CHECK(d.texts == Texts{"one", "two", "three"});
    CHECK(d.skipped == 3);
    CHECK(d.first_skipped.find("line 3") != std::string::npos);

    options.separator = "|";
    options.piece = 10;
    write_text(s / "t.txt",
               "good|b\xFF"
               "d|aa bb cc dd ee ff gg hh ii jj\xFF kk ll mm nn oo pp|last");
    Documents t = read_documents({s / "t.txt"}, options);
    CHECK(t.skipped == 2);
    CHECK(t.texts.size() == 3);
    CHECK(t.texts.front() == "good");
    CHECK(std::string("aa bb cc dd ee ff gg hh ii jj").starts_with(t.texts[1]));
    CHECK(t.texts.back() == "last");
}

TEST_CASE("bytes that are no UTF-8 may be replaced or kept") {
    test::Scratch s;
    write_text(s / "t.txt",
               "a\xFF"
               "b\xE4\xB8 c\xC3\xA9");
    write_text(s / "t.jsonl",
               "{\"text\":\"a\xFF"
               "b\"}\n");
    ReadOptions options;
    options.invalid = "replace";
    CHECK(read_documents({s / "t.txt", s / "t.jsonl"}, options).texts ==
          Texts{"a\xEF\xBF\xBD"
                "b\xEF\xBF\xBD\xEF\xBF\xBD c\xC3\xA9",
                "a\xEF\xBF\xBD"
                "b"});
    options.invalid = "keep";
    CHECK(read_documents({s / "t.txt"}, options).texts == Texts{"a\xFF"
                                                                "b\xE4\xB8 c\xC3\xA9"});
    CHECK_THROWS_WITH(read_documents({s / "t.jsonl"}, options),
                      doctest::Contains("line 1, byte 11: expected UTF-8, got "));  // JSON is UTF-8
}
