// Token files in the layouts of other programs, written and read.
#include "data/token_files.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "data/all_tokens.h"
#include "data/batches.h"
#include "data/megatron_index.h"
#include "data/shards.h"
#include "support.h"
#include "text/train/train.h"

using namespace linnet;
using test::read_all;
using test::Scratch;
using test::write_text;

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::string little(T value) {
    return bytes_of(std::vector<T>{value});
}

/// By the format's own words (megatron/core/datasets/indexed_dataset.py), not by ours.
std::string index_bytes(int code, const std::vector<std::int32_t>& lengths) {
    std::vector<std::int64_t> pointers, documents;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < lengths.size(); i++) {
        pointers.push_back(at);
        at += lengths[i] * (code == 8 ? 2 : 4);
        documents.push_back(static_cast<std::int64_t>(i));
    }
    documents.push_back(static_cast<std::int64_t>(lengths.size()));
    return std::string("MMIDIDX\0\0", 9) + little<std::uint64_t>(1) +
           little<std::uint8_t>(static_cast<std::uint8_t>(code)) + little<std::uint64_t>(lengths.size()) +
           little<std::uint64_t>(documents.size()) + bytes_of(lengths) + bytes_of(pointers) +
           bytes_of(documents);
}

}  // namespace

TEST_CASE("every layout owns the names it gives, and no other's") {
    for (const CorpusLayout& layout : corpus_layouts()) {
        CHECK(find_layout(layout.name) == &layout);
        for (const char* split : {"train", "validation"})
            for (const CorpusLayout& other : corpus_layouts())
                CHECK(other.owns(layout.file(split, 12) + ".bin") == (&other == &layout));
        for (const char* name : {"training.bin", "train.txt", "train_1.bin", "notes", "train", ".bin"})
            CHECK_FALSE(layout.owns(name));
    }
    CHECK(find_layout("webdataset") == nullptr);
    CHECK(find_layout("megatron")->token_bytes(65499) == 2);
    CHECK(find_layout("megatron")->token_bytes(65500) == 4);
    CHECK(test::has(test::refusal([] { (void)find_layout("nanogpt")->token_bytes(65537); }, Exit::usage),
                    "65536"));
}

TEST_CASE("folders and files that nanoGPT, llm.c and Megatron-LM wrote are recognised and read") {
    Scratch s;
    const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
    const Tokenizer& tokenizer = *bytes;
    std::filesystem::create_directories(s / "nano");
    write_text(s / "nano/train.bin", bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4}));
    write_text(s / "nano/val.bin", bytes_of(std::vector<std::uint16_t>{9, 8}));
    write_text(s / "nano/meta.pkl", "whatever");
    const auto nano = find_token_files(s / "nano");
    REQUIRE(nano);
    CHECK(nano->index.layout == "nanogpt");
    CHECK_FALSE(nano->ours);
    const TokenSource source = TokenSource::open_files(*nano, tokenizer, 0.5);
    CHECK(read_all(source, DataSplit::train) == std::vector<std::int32_t>{1, 2, 3, 4});
    CHECK(read_all(source, DataSplit::validation) == std::vector<std::int32_t>{9, 8});
    CHECK(source.bytes(DataSplit::train) == 4);  // each spells one byte

    std::vector<std::int32_t> header(256);
    header[0] = 20240520, header[1] = 1, header[2] = 10;
    const std::vector<std::uint16_t> ten = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    write_text(s / "tiny_train.bin", bytes_of(header) + bytes_of(ten));
    const auto one = find_token_files(s / "tiny_train.bin");
    REQUIRE(one);
    CHECK(one->index.layout == "llmc");
    const TokenSource cut = TokenSource::open_files(*one, tokenizer, 0.2);  // no file for validation
    CHECK(read_all(cut, DataSplit::train) == std::vector<std::int32_t>{10, 11, 12, 13, 14, 15, 16, 17});
    CHECK(read_all(cut, DataSplit::validation) == std::vector<std::int32_t>{18, 19});

    write_text(s / "m_document.bin", bytes_of(std::vector<std::int32_t>{70, 71, 72, 73}));
    write_text(s / "m_document.idx", index_bytes(4, {1, 3}));
    for (const char* name : {"m_document", "m_document.bin"}) {
        const auto megatron = find_token_files(s / name);
        REQUIRE(megatron);
        CHECK(megatron->index.layout == "megatron");
        CHECK(read_all(TokenSource::open_files(*megatron, tokenizer, 0), DataSplit::train) ==
              std::vector<std::int32_t>{70, 71, 72, 73});
    }
    // "val" in a longer word says nothing.
    for (const char* name : {"retrieval_document", "x_valid_document"}) {
        write_text(s / name + std::string(".bin"), bytes_of(std::vector<std::int32_t>{70, 71, 72, 73}));
        write_text(s / name + std::string(".idx"), index_bytes(4, {1, 3}));
        const auto found = find_token_files(s / name);
        REQUIRE(found);
        CHECK(found->index.shards[0].split == (name[0] == 'r' ? "train" : "validation"));
    }
    // Another program's index.json makes no corpus, a damaged one of ours does.
    std::filesystem::create_directories(s / "site");
    write_text(s / "site/index.json", "{\"pages\": []}");
    write_text(s / "site/a.txt", "text");
    CHECK_FALSE(find_token_files(s / "site"));
    write_text(s / "site/index.json", "{\n \"format\": \"linnet-corpus\",");
    CHECK(test::has(test::refusal([&] { find_token_files(s / "site"); }), "site/index.json: expected JSON"));
    CHECK_FALSE(find_token_files(s / "nano/meta.pkl"));
    write_text(s / "text.bin", "not tokens");
    CHECK_FALSE(find_token_files(s / "text.bin"));
    CHECK_FALSE(find_token_files("-"));
}

TEST_CASE("a Megatron-LM index that lies is refused, and the place is named") {
    Scratch s;
    const std::string good = index_bytes(8, {2, 0, 3});
    auto refused = [&](const std::string& index, std::uint64_t bytes = 10) {
        write_text(s / "a.idx", index);
        return test::refusal([&] { read_megatron_index(s / "a.idx", bytes); });
    };
    CHECK(refused(good) == "accepted");
    write_text(s / "a.idx", good);
    CHECK(read_megatron_index(s / "a.idx", 10).sequences == 3);
    auto with = [&](std::size_t at, const std::string& bytes) {
        return std::string(good).replace(at, bytes.size(), bytes);
    };
    CHECK(test::has(refused(good, 12), "12 bytes of tokens"));
    CHECK(test::has(refused(good.substr(0, 20)), "header"));
    CHECK(test::has(refused(with(0, "X")), "header"));
    CHECK(test::has(refused(with(9, "\2")), "version: expected 1, got 2"));
    CHECK(test::has(refused(with(17, "\5")), "type"));
    CHECK(test::has(refused(with(18, std::string(8, '\xFF'))), "12 bytes per sequence"));
    CHECK(test::has(refused(with(26, std::string(8, '\x7F'))), "12 bytes per sequence"));
    CHECK(test::has(refused(with(34, little<std::int32_t>(-2))), "sequence 0"));
    CHECK(test::has(refused(with(34 + 12 + 16, little<std::int64_t>(2))), "sequence 2"));
    for (std::size_t n = 0; n < good.size(); n++) CHECK(refused(good.substr(0, n)) != "accepted");
}

TEST_CASE("an index leaves out documents without tokens") {
    Scratch s;
    write_text(s / "starts", bytes_of(std::vector<std::int64_t>{0, 2, 2}));
    write_megatron_index(s / "a.idx", s / "starts", 5, 2);
    CHECK(test::read_text(s / "a.idx") == index_bytes(8, {2, 3}));
}
