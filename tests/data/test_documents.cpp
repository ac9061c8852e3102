#include "data/documents.h"

#include <doctest/doctest.h>

#include <set>

#include "base/error.h"
#include "base/sha256.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::string refusal(const std::vector<std::string>& inputs) {
    return test::refusal([&] { read_documents(inputs, {}); });
}

}  // namespace

TEST_CASE("one text is one document, whose tail is held out, and its sum is the file's") {
    Scratch s;
    std::string text = "aaaaaaa\xC3\xA9zz";
    write_text(s / "one.txt", text);
    Documents documents = read_documents({s / "one.txt"}, {});
    REQUIRE(documents.count() == 1);
    CHECK(documents[0] == text);
    CHECK(documents.sha256() == sha256(text));
    TextSplit split = split_documents(documents, 0.25);
    CHECK(split.train == std::vector<std::string_view>{"aaaaaaa"});
    CHECK(split.validation == std::vector<std::string_view>{"\xC3\xA9zz"});
    CHECK(split_documents(documents, 0).validation.empty());
}

TEST_CASE("of a few documents each one's tail is held out, of many some whole ones") {
    Scratch s;
    for (int i = 0; i < 3; i++)
        write_text(s / ("text" + std::to_string(i) + ".txt"), std::string(100, static_cast<char>('a' + i)));
    Documents few = read_documents({s.path}, {});
    CHECK(few.files == 3);
    TextSplit split = split_documents(few, 0.1);
    REQUIRE(split.train.size() == 3);
    REQUIRE(split.validation.size() == 3);
    CHECK(split.validation[2] == std::string(10, 'c'));

    std::string lines;
    for (int i = 0; i < 1000; i++) lines += "{\"text\": \"document " + std::to_string(i) + "\"}\n";
    write_text(s / "many.jsonl", lines);
    Documents many = read_documents({s / "many.jsonl"}, {});
    CHECK(many.count() == 1000);
    split = split_documents(many, 0.1);
    CHECK(split.train.size() + split.validation.size() == 1000);
    CHECK(split.validation.size() > 60);
    CHECK(split.validation.size() < 140);
    std::set<std::string_view> train(split.train.begin(), split.train.end());
    for (std::string_view document : split.validation) CHECK(train.count(document) == 0);
    // Others in the same place give another sum.
    write_text(s / "other.jsonl", "{\"text\": \"documen\"}\n" + lines.substr(lines.find('\n') + 1));
    CHECK(read_documents({s / "other.jsonl"}, {}).sha256() != many.sha256());
}

TEST_CASE("a part of a text is known by its document, counted with the bad ones, and by its place in that") {
    Scratch s;
    write_text(s / "a.jsonl", "{\"text\": \"aaaaaaaaaa\"}\n7\n{\"text\": \"bbbbbbbbbb\"}\n");
    write_text(s / "b.txt", "cccccccccc;;dd\xFF;;eeeeeeeeee");
    ReadOptions options;
    options.skip_bad = true;
    options.separator = ";;";
    const Documents documents = read_documents({s / "a.jsonl", s / "b.txt"}, options);
    CHECK(documents.skipped == 2);
    CHECK(documents.numbers == std::vector<std::uint64_t>{1, 3, 4, 6});
    const TextSplit split = split_documents(documents, 0.2);
    REQUIRE(split.validation.size() == 4);
    for (std::size_t i = 0; i < 4; i++) {
        CHECK(documents.place(split.train[i]).number == documents.numbers[i]);
        CHECK(documents.place(split.train[i]).before == 0);
        CHECK(documents.place(split.validation[i]).number == documents.numbers[i]);
        CHECK(documents.place(split.validation[i]).before == 8);
    }
}

TEST_CASE("equal documents are all trained on, or their tails held out, but never lost") {
    Scratch s;
    std::string lines;
    for (int i = 0; i < 200; i++) lines += "{\"text\": \"always the same\"}\n";
    write_text(s / "same.jsonl", lines);
    TextSplit split = split_documents(read_documents({s / "same.jsonl"}, {}), 0.1);
    CHECK(split.train.size() == 200);
    CHECK(split.validation.size() == 200);
}

TEST_CASE("a file that is no text is refused by what it is") {
    Scratch s;
    using namespace std::string_literals;
    write_text(s / "a.png", "\x89PNG\r\n\x1a\n and more");
    write_text(s / "b.gguf", "GGUF\x03\0\0\0"s);
    write_text(s / "c.bin", "some\0\0\0\0\0zeros"s);
    write_text(s / "d.pdf", "%PDF-1.7");
    write_text(s / "empty.txt", "");
    CHECK(refusal({s / "a.png"}).find("a.png: expected UTF-8 text, got a PNG picture") != std::string::npos);
    CHECK(refusal({s / "b.gguf"}).find("a GGUF model file") != std::string::npos);
    CHECK(refusal({s / "c.bin"}).find("a binary file") != std::string::npos);
    for (const char* head : {"P5\n4 2\n255\nlettersx", "P5 # a comment\n4 2 255\nlettersx"}) {
        write_text(s / "e", head);
        CHECK(refusal({s / "e"}).find("e: expected UTF-8 text, got a PGM picture") != std::string::npos);
    }
    write_text(s / "e", "P6\n1 1\n255\nrgb");
    CHECK(refusal({s / "e"}).find("a PPM picture") != std::string::npos);
    write_text(s / "e", "\0\0\x08\x03\0\0\0\1"s);
    CHECK(refusal({s / "e"}).find("an IDX file of pictures") != std::string::npos);
    for (const char* words : {"P5 is a paper size", "P6\n4 words", "P5", "P545 3 2"}) {
        write_text(s / "e", words);
        CHECK(read_documents({s / "e"}, {}).count() == 1);
    }
    write_text(s / "e", "P5\n4 2\n255\nletters");
    CHECK(refusal({s / "d.pdf"}).find("a PDF file") != std::string::npos);
    CHECK(refusal({s / "empty.txt"}).find("an empty file") != std::string::npos);
    write_text(s / "text.txt", "words");
    write_text(s / "wide.txt", "\xFF\xFEh\0i\0"s);
    ReadOptions skip;
    skip.skip_bad = true;
    Documents documents = read_documents({s.path}, skip);
    CHECK(documents.text == "words");
    CHECK(documents.skipped == 6);
    // Letters that a signature begins with are a text's, too, where nothing else is no text.
    for (const char* letters : {"ID3 is an algorithm", "GGUF is a format", "The ftyp box", "BZh91AY&SY"}) {
        write_text(s / "text.txt", letters);
        CHECK(read_documents({s / "text.txt"}, {}).text == letters);
        write_text(s / "text.txt", std::string(letters) + "\xFF\xFB");
        CHECK(refusal({s / "text.txt"}).find("got a") != std::string::npos);
    }
}
