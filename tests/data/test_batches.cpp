#include "data/batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "data/corpus_index.h"
#include "data/shards.h"
#include "support.h"

using namespace linnet;
using linnet::test::refusal;

namespace {

/// A vocabulary of bytes, so that tests read ids as text; `size` may be larger than 256.
class Bytes : public Tokenizer {
  public:
    explicit Bytes(TokenId size = 256) : size_(size) {}
    std::string_view kind() const override { return "byte"; }
    TokenId size() const override { return size_; }
    void encode(std::string_view text, std::vector<TokenId>& out, const EncodeOptions&) const override {
        for (char c : text) out.push_back(static_cast<unsigned char>(c));
    }
    void decode(TokenId id, bool, std::string& out) const override { out += static_cast<char>(id); }
    std::string_view piece(TokenId) const override { return ""; }
    bool is_control(TokenId) const override { return false; }
    std::optional<TokenId> bos() const override { return std::nullopt; }
    std::optional<TokenId> eos() const override { return std::nullopt; }
    bool add_bos() const override { return false; }
    bool is_end(TokenId) const override { return false; }
    void write(GgufWriter&) const override {}

  private:
    TokenId size_;
};

TokenSource from_text(const std::string& text, const Tokenizer& tokenizer, double fraction, int threads) {
    Documents one;
    one.text = text;
    one.ends = {text.size()};
    one.hashes = {0};
    return TokenSource::from_documents(split_documents(one, fraction), false, tokenizer, threads);
}

std::string counting_text(std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; i++) text += static_cast<char>(i % 251);
    return text;
}

std::string shard_bytes(std::int32_t magic, std::int32_t version, const std::vector<std::uint32_t>& ids,
                        int width) {
    std::string out(llmc_header_bytes, '\0');
    std::int32_t header[3] = {magic, version, static_cast<std::int32_t>(ids.size())};
    std::memcpy(out.data(), header, sizeof header);
    for (std::uint32_t id : ids)
        out.append(reinterpret_cast<const char*>(&id), static_cast<std::size_t>(width));
    return out;
}

}  // namespace

TEST_CASE("a text's tail is its validation split, cut between characters") {
    Bytes bytes;
    TokenSource source = from_text("aaaaaaa\xC3\xA9zz", bytes, 0.25, 1);  // 11 bytes; 8.25 is inside é
    CHECK(source.size(DataSplit::train) == 7);
    CHECK(source.size(DataSplit::validation) == 4);
    CHECK(source.bytes(DataSplit::validation) == 4);
}

TEST_CASE("targets are the inputs one token later") {
    TokenSource source = from_text(counting_text(1000), Bytes(), 0.1, 1);
    std::vector<std::int32_t> in(16), out(16);
    source.window(DataSplit::train, 300, in, out);
    for (int i = 0; i < 16; i++) {
        CHECK(in[static_cast<std::size_t>(i)] == (300 + i) % 251);
        CHECK(out[static_cast<std::size_t>(i)] == (301 + i) % 251);
    }
}

TEST_CASE("a training window depends on seed and index alone, and reaches both ends of the text") {
    WindowSampler a(from_text(counting_text(40), Bytes(), 0, 1), 7, 8);
    WindowSampler b(from_text(counting_text(40), Bytes(), 0, 1), 7, 8);
    WindowSampler other(from_text(counting_text(40), Bytes(), 0, 1), 8, 8);
    std::vector<std::int32_t> in(8), out(8), in2(8), out2(8);
    std::set<std::int32_t> starts;
    int same = 0;
    for (std::uint64_t i = 1000; i-- > 0;) {
        a.train_window(i, in, out);
        b.train_window(i, in2, out2);
        CHECK(in == in2);
        other.train_window(i, in2, out2);
        same += in == in2;
        starts.insert(in[0]);
    }
    CHECK(starts.size() == 32);  // begins 0 … 31: the last target is the last token
    CHECK(same < 100);
}

TEST_CASE("an epoch's training windows are disjoint, and epochs differ") {
    WindowSampler sampler(from_text(counting_text(250), Bytes(), 0, 1), 3, 8);
    std::vector<std::int32_t> in(8), out(8), orders[2];
    for (int epoch = 0; epoch < 2; epoch++) {
        std::set<std::int32_t> seen;
        for (std::uint64_t i = 0; i < 30; i++) {  // 31 windows fit; one is given up for the offset
            sampler.train_window(static_cast<std::uint64_t>(epoch) * 30 + i, in, out);
            for (std::int32_t id : in) CHECK(seen.insert(id).second);
            orders[epoch].push_back(in[0]);
        }
        const std::int32_t first = *std::min_element(orders[epoch].begin(), orders[epoch].end());
        for (std::int32_t& at : orders[epoch]) at -= first;  // the order alone: the offset differs besides
    }
    CHECK(orders[0] != orders[1]);
}

TEST_CASE("validation windows are disjoint and in order") {
    WindowSampler sampler(from_text(counting_text(100), Bytes(), 0.5, 1), 1, 12);
    CHECK(sampler.validation_windows() == 4);  // 50 tokens hold 4 windows and their last target
    std::vector<std::int32_t> in(12), out(12);
    for (std::uint64_t i = 0; i < 4; i++) {
        sampler.validation_window(i, in, out);
        CHECK(in[0] == 50 + static_cast<int>(i) * 12);
    }
}

TEST_CASE("a text shorter than one window says how many tokens are needed and found") {
    std::string line = refusal([] { WindowSampler(from_text("short", Bytes(), 0, 1), 1, 8); });
    CHECK(line.find("at least 9 tokens") != std::string::npos);
    CHECK(line.find("got 5") != std::string::npos);
}

TEST_CASE("a folder of shards reads as one stream across shard borders") {
    test::Scratch scratch;
    CorpusIndex index;
    index.vocab_size = 100;
    const std::string sum(64, '0');
    index.tokenizer_sha256 = sum;
    index.shards = {{"a.bin", "train", 1, 3, 30, sum},
                    {"b.bin", "validation", 1, 2, 20, sum},
                    {"c.bin", "train", 1, 4, 40, sum}};
    test::write_text(scratch / "index.json", corpus_index_json(index));
    test::write_text(scratch / "a.bin", shard_bytes(20240520, 1, {1, 2, 3}, 2));
    test::write_text(scratch / "b.bin", shard_bytes(20240520, 1, {50, 51}, 2));
    test::write_text(scratch / "c.bin", shard_bytes(20240520, 1, {4, 5, 6, 99}, 2));
    TokenSource source = TokenSource::open_files(*find_token_files(scratch.path), Bytes(100), 0);
    CHECK(source.size(DataSplit::train) == 7);
    CHECK(source.bytes(DataSplit::train) == 70);
    std::vector<std::int32_t> in(4), out(4);
    source.window(DataSplit::train, 1, in, out);
    CHECK(in == std::vector<std::int32_t>{2, 3, 4, 5});
    CHECK(out == std::vector<std::int32_t>{3, 4, 5, 6});
    CHECK(refusal([&] {
              TokenSource::open_files(*find_token_files(scratch.path), Bytes(101), 0);
          }).find("vocab_size") != std::string::npos);

    test::write_text(scratch / "c.bin", shard_bytes(20240520, 1, {4, 5, 6, 100}, 2));
    TokenSource damaged = TokenSource::open_files(*find_token_files(scratch.path), Bytes(100), 0);
    CHECK(refusal([&] { damaged.window(DataSplit::train, 2, in, out); }).find("below 100") !=
          std::string::npos);
}

TEST_CASE("an index whose counts or checksums cannot be is refused, and the key is named") {
    test::Scratch scratch;
    CorpusIndex index;
    index.vocab_size = 100, index.tokenizer_sha256 = std::string(64, '0');
    index.shards = {{"a.bin", "train", 1, 3, 30, std::string(64, 'a')}};
    const std::string good = corpus_index_json(index);
    auto refused = [&](const std::string& what, const std::string& with) {
        std::string text = good;
        REQUIRE(text.find(what) != std::string::npos);
        text.replace(text.find(what), what.size(), with);
        test::write_text(scratch / "index.json", text);
        return refusal([&] { read_corpus_index(scratch.path); }).substr(scratch.path.size() + 1);
    };
    CHECK(refused("\"bytes\": 30", "\"bytes\": 1e300") ==
          "index.json: shards[0].bytes: expected a count, got 1e+300");
    CHECK(refused("\"tokens\": 3,", "\"tokens\": 18446744073709551615,") ==
          "index.json: shards[0].tokens: expected a count, got 18446744073709551615");
    CHECK(refused(std::string(64, 'a'), "") ==
          "index.json: shards[0].sha256: expected 64 hexadecimal digits, got none");
    CHECK(refused(std::string(64, '0'), "0") ==
          "index.json: tokenizer_sha256: expected 64 hexadecimal digits, got 0");
}

TEST_CASE("a damaged shard is refused by name") {
    test::Scratch scratch;
    auto refused = [&](std::string bytes) {
        test::write_text(scratch / "s.bin", bytes);
        return refusal([&] { TokenShard shard(scratch / "s.bin"); }).find("s.bin") != std::string::npos;
    };
    std::string good = shard_bytes(20240801, 7, {1, 70000}, 4);
    CHECK_FALSE(refused(good));
    CHECK(refused(good.substr(0, good.size() - 1)));
    CHECK(refused(good + "x"));
    CHECK(refused(good.substr(0, 100)));
    CHECK(refused(shard_bytes(20240801, 1, {1}, 4)));
    CHECK(refused(std::string(2000, 'x')));
    CHECK(TokenShard((test::write_text(scratch / "s.bin", good), scratch / "s.bin"))[1] == 70000);
}
