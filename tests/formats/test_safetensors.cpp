// safetensors: what is written is read, and what breaks a rule of the format is refused in one line.
#include "formats/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "base/memory_use.h"
#include "base/rng.h"
#include "instrumented.h"
#include "support.h"

using namespace linnet;

namespace {

/// A file of this header, padded or not, and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
    const std::uint64_t size = header.size();
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += header;
    for (std::size_t i = 0; i < data; i++) bytes += static_cast<char>(i);
    return bytes;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}";
}

/// What reading these bytes says: the error without the path, or "".
std::string reading(const std::string& bytes) {
    try {
        Safetensors file(MappedFile::view(std::as_bytes(std::span(bytes)), "x.safetensors"));
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        const std::string line = error.what();
        CHECK(line.starts_with("x.safetensors: "));
        CHECK(line.find('\n') == line.npos);
        return line.substr(15);
    }
    return "";
}

std::function<void(const SafetensorsWriter::Sink&)> emit(std::string bytes) {
    return [bytes](const SafetensorsWriter::Sink& sink) { sink(bytes.data(), bytes.size()); };
}

struct Attack {
    const char* name;
    std::string bytes, says;
};

std::string nested(int depth) {
    return "{\"a\":" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
}

std::string with_length(std::uint64_t length, const std::string& rest) {
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}

std::vector<Attack> structure_attacks() {
    const std::string good = entry("a", "F32", "[2]", "[0,8]");
    return {
        {"empty", "", "header length: expected 8 bytes, got 0"},
        {"seven bytes", "1234567", "header length: expected 8 bytes, got 7"},
        {"length past the file", with_length(100, "{}"), "header length: expected at most the 2 bytes"},
        {"length of 2^64 - 1", with_length(UINT64_MAX, "{}"), "expected at most 100000000 bytes"},
        {"length beyond the limit", with_length(100'000'001, "{}"), "expected at most 100000000 bytes"},
        {"a length of 0", file_of("", 0), "expected an object"},
        {"a pickle", std::string("\x80\x02}q\x01(U\x05model", 14), "header length"},
        {"no object", file_of("[1,2]", 0), "expected an object"},
        {"text", file_of("hello world", 0), "expected an object"},
        {"a number", file_of("7", 0), "expected an object"},
        {"truncated header", file_of("{" + good, 8), "expected ','"},
        {"two objects", file_of("{}{}", 0), "expected the end of the JSON"},
        {"bytes behind the header", file_of("{" + good + "} x", 8), "expected the end of the JSON"},
        {"a NUL behind the header", file_of(std::string("{}\0", 3), 0), "expected the end of the JSON"},
        {"a comma too many", file_of("{" + good + ",}", 8), "a value behind the comma"},
        {"nested arrays", file_of(nested(100000), 0), "expected an object"},
        {"nested objects in metadata", file_of(R"({"__metadata__":{"a":{"b":1}}})", 0), "expected a string"},
        {"a number in metadata", file_of(R"({"__metadata__":{"a":1}})", 0), "expected a string"},
        {"metadata twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' once"},
        {"no UTF-8", file_of("{" + entry("\xff", "F32", "[2]", "[0,8]") + "}", 8), "expected UTF-8"},
        {"overlong UTF-8", file_of("{" + entry("\xc0\xaf", "F32", "[2]", "[0,8]") + "}", 8),
         "expected UTF-8"},
        {"half a surrogate pair", file_of("{" + entry("\\ud800", "F32", "[2]", "[0,8]") + "}", 8),
         "half of a"},
        {"a control character", file_of("{" + entry("a\nb", "F32", "[2]", "[0,8]") + "}", 8), "control"},
        {"an unknown escape", file_of("{" + entry("\\x41", "F32", "[2]", "[0,8]") + "}", 8), "an escape"},
        {"a space before the header", file_of(" {}", 0), "expected '{' as its first byte"},
        {"a line end behind the header", file_of("{}\n", 0), "expected nothing but spaces behind it"},
        {"an empty name", file_of("{" + entry("", "F32", "[2]", "[0,8]") + "}", 8), "an empty one"},
    };
}

std::vector<Attack> tensor_attacks() {
    const std::string good = entry("a", "F32", "[2]", "[0,8]");
    auto one = [](const std::string& tensor, std::size_t data) { return file_of("{" + tensor + "}", data); };
    return {
        {"names twice", one(good + "," + entry("a", "F32", "[2]", "[8,16]"), 16), "it once, got it twice"},
        {"names twice by an escape", one(good + "," + entry("\\u0061", "F32", "[2]", "[8,16]"), 16),
         "it twice"},
        {"overlap", one(good + "," + entry("b", "F32", "[2]", "[4,12]"), 12), "tensors overlap"},
        {"the same bytes", one(good + "," + entry("b", "F32", "[2]", "[0,8]"), 8), "tensors overlap"},
        {"a hole", one(good + "," + entry("b", "F32", "[2]", "[12,20]"), 20), "a hole in the data"},
        {"a hole at the beginning", one(entry("a", "F32", "[2]", "[4,12]"), 12), "a hole in the data"},
        {"bytes behind", one(good, 9), "bytes follow the last tensor"},
        {"data without tensors", file_of("{}", 1), "bytes follow the last tensor"},
        {"past the end", one(entry("a", "F32", "[4]", "[0,16]"), 8), "is the file truncated?"},
        {"offsets turned round", one(entry("a", "F32", "[2]", "[8,0]"), 8), "an end at or behind 8"},
        {"one offset", one(entry("a", "F32", "[2]", "[8]"), 8), "two data_offsets, got 1"},
        {"three offsets", one(entry("a", "F32", "[2]", "[0,8,8]"), 8), "two data_offsets, got 3"},
        {"a negative offset", one(entry("a", "F32", "[2]", "[-8,0]"), 8), "a whole number from 0"},
        {"a fraction", one(entry("a", "F32", "[2.0]", "[0,8]"), 8), "a whole number"},
        {"an exponent", one(entry("a", "F32", "[2e0]", "[0,8]"), 8), "a whole number"},
        {"a leading zero", one(entry("a", "F32", "[02]", "[0,8]"), 8), "a whole number"},
        {"a number beyond 2^64", one(entry("a", "F32", "[18446744073709551616]", "[0,8]"), 8), "below 2^64"},
        {"another size", one(entry("a", "F32", "[3]", "[0,8]"), 8),
         "12 bytes, as shape and dtype say, got 8"},
        {"a shape that wraps", one(entry("a", "F32", "[4294967296,4294967296]", "[0,0]"), 0),
         "2^63 elements"},
        {"bytes that wrap", one(entry("a", "F32", "[4611686018427387904]", "[0,0]"), 0),
         "whole number of bytes"},
        {"a dimension of 2^63", one(entry("a", "U8", "[9223372036854775808]", "[0,0]"), 0), "2^63 elements"},
        {"half a byte", one(entry("a", "F4", "[3]", "[0,1]"), 1), "a whole number of bytes"},
        {"an unknown dtype", one(entry("a", "F31", "[2]", "[0,8]"), 8), "a dtype of the format, got 'F31'"},
        {"no dtype", one(R"("a":{"shape":[2],"data_offsets":[0,8]})", 8), "not all of them"},
        {"no shape", one(R"("a":{"dtype":"F32","data_offsets":[0,8]})", 8), "not all of them"},
        {"no offsets", one(R"("a":{"dtype":"F32","shape":[2]})", 8), "not all of them"},
        {"an unknown key", one(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})", 8),
         "got 'x'"},
        {"shape twice", one(R"("a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})", 8),
         "it twice"},
        {"a shape of text", one(entry("a", "F32", "\"2\"", "[0,8]"), 8), "expected an array"},
        {"33 dimensions",
         one(entry("a", "U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"),
             1),
         "32 dimensions at most"},
        {"an array as a tensor", one("\"a\":[1]", 0), "expected an object"},
    };
}

}  // namespace

TEST_CASE("safetensors that break a rule of the format are refused in one line: 58 attacks") {
    std::vector<Attack> attacks = structure_attacks();
    for (Attack& attack : tensor_attacks()) attacks.push_back(std::move(attack));
    CHECK(attacks.size() >= 40);
    for (const Attack& attack : attacks) {
        CAPTURE(attack.name);
        const std::string line = reading(attack.bytes);
        CHECK_MESSAGE(test::has(line, attack.says), line);
    }
}

TEST_CASE("safetensors are read: any order, scalars, empty tensors, five dimensions, spaces, any byte") {
    const std::string header =
        "{" + entry("b", "F32", "[1,2]", "[1,9]") + ", " + entry("a", "U8", "[]", "[0,1]") + "," +
        entry("e", "F16", "[0,4]", "[9,9]") + "," + entry("five", "I8", "[1,1,1,2,2]", "[9,13]") + "," +
        entry("none", "I8", "[1,0,1,2,2]", "[13,13]") + ",\"__metadata__\":{\"a\":\"b\"}}   ";
    const std::string bytes = file_of(header, 13);
    const Safetensors file(MappedFile::view(std::as_bytes(std::span(bytes)), "x"));
    REQUIRE(file.tensors().size() == 5);
    const SafetensorsTensor* b = file.tensor("b");
    REQUIRE(b);
    CHECK(b->shape == Shape(1, 2));
    CHECK(b->type->type == DType::f32);
    CHECK(b->bytes.size() == 8);
    CHECK(std::to_integer<int>(b->bytes[0]) == 1);
    CHECK(file.tensor("a")->rank == 0);
    CHECK(file.tensor("e")->bytes.empty());
    CHECK(file.tensor("five")->rank == 5);
    CHECK(file.tensor("five")->shape.count() == 4);
    CHECK(file.tensor("none")->shape.count() == 0);
    CHECK(!file.tensor("c"));
    CHECK(reading(file_of("{}", 0)).empty());
}

TEST_CASE("written safetensors are read back, one file or parts with their index") {
    test::Scratch scratch;
    SafetensorsWriter writer;
    writer.add_tensor("a.weight", DType::f32, Shape(2, 3), emit(std::string(24, 'a')));
    writer.add_tensor("b.weight", DType::bf16, Shape(5), emit(std::string(10, 'b')));
    writer.add_tensor("c.weight", DType::f16, Shape(4), emit(std::string(8, 'c')));
    writer.write(scratch.path, "model");
    const Safetensors one = Safetensors::open(scratch / "model.safetensors");
    REQUIRE(one.tensors().size() == 3);
    CHECK(one.tensor("b.weight")->shape == Shape(5));
    CHECK(one.tensor("c.weight")->type->name == "F16");
    std::uint64_t header;
    std::memcpy(&header, test::read_text(scratch / "model.safetensors").data(), 8);
    CHECK(header % 8 == 0);

    std::filesystem::create_directory(scratch / "parts");
    writer.write(scratch / "parts", "model", 20);
    CHECK(std::filesystem::exists(scratch / "parts/model-00002-of-00002.safetensors"));
    const Safetensors parts = Safetensors::open(scratch / "parts/model.safetensors.index.json");
    REQUIRE(parts.tensors().size() == 3);
    for (const SafetensorsTensor& t : one.tensors()) {
        const SafetensorsTensor* same = parts.tensor(t.name);
        REQUIRE(same);
        CHECK(std::ranges::equal(same->bytes, t.bytes));
        CHECK(same->shape == t.shape);
    }
    CHECK_THROWS_AS(writer.add_tensor("a.weight", DType::f32, Shape(1), emit("1234")), std::logic_error);
    CHECK_THROWS_AS(writer.add_tensor("q", DType::q8_0, Shape(32), emit("")), std::logic_error);
    writer.add_tensor("d", DType::f32, Shape(2), emit("1234"));
    CHECK_THROWS_AS(writer.write(scratch.path, "other"), std::logic_error);
    CHECK(!std::filesystem::exists(scratch / "other.safetensors"));
    SafetensorsWriter longer;
    longer.add_tensor("d", DType::f32, Shape(1), emit("12345678"));
    CHECK_THROWS_AS(longer.write(scratch.path, "other"), std::logic_error);
    CHECK(!std::filesystem::exists(scratch / "other.safetensors"));
}

TEST_CASE("tensors take other names by what theirs begin with, and two never become one") {
    test::Scratch scratch;
    SafetensorsWriter writer;
    for (const char* name : {"b.x", "a.x", "a.a.x", "c.x"})
        writer.add_tensor(name, DType::f32, Shape(1), emit(std::string(4, name[0])));
    writer.write(scratch.path, "model");
    const auto open = [&] { return Safetensors::open(scratch / "model.safetensors"); };
    const std::vector<std::pair<std::string, std::string>> pairs = {{"a.", "z."}, {"b.", "y."}};
    Safetensors all = open(), some = open(), twins = open();
    CHECK(all.rename({}, true) == 0);
    CHECK(all.rename(pairs, false) == 0);
    REQUIRE(all.tensors().size() == 4);
    for (const char* name : {"z.x", "z.a.x", "y.x", "c.x"}) CHECK(all.tensor(name));
    CHECK(!all.tensor("a.x"));
    CHECK(all.tensor("z.x")->bytes[0] == std::byte{'a'});
    CHECK(some.rename(pairs, true) == 1);
    CHECK(some.tensors().size() == 3);
    CHECK(!some.tensor("c.x"));
    CHECK(test::has(test::refusal([&] {
                        twins.rename(std::vector<std::pair<std::string, std::string>>{{"a.a.", "c."}}, false);
                    }),
                    "tensor 'c.x': expected it once, got it twice"));
}

TEST_CASE("an index that names missing parts, leaves its folder or contradicts its parts is refused") {
    test::Scratch scratch;
    SafetensorsWriter one, two;
    one.add_tensor("a", DType::f32, Shape(1), emit("aaaa"));
    two.add_tensor("b", DType::f32, Shape(1), emit("bbbb"));
    one.write(scratch.path, "one"), two.write(scratch.path, "two");
    const std::string path = scratch / "model.safetensors.index.json";
    auto says = [&](const std::string& index, const std::string& part) {
        test::write_text(path, index);
        try {
            Safetensors::open(path);
            CHECK_MESSAGE(part.empty(), index);
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::input);
            CHECK_MESSAGE((!part.empty() && test::has(error.what(), part)), error.what());
        }
    };
    auto map = [](const std::string& a, const std::string& b) {
        return R"({"metadata":{"total_size":8.0,"x":[{"y":null}]},"weight_map":{"a":")" + a + R"(","b":")" +
               b + "\"}}";
    };
    says(map("one.safetensors", "two.safetensors"), "");
    says(map("one.safetensors", "three.safetensors"), "no such file");
    says(map("one.safetensors", "one.safetensors"),
         "tensor 'b': expected it in one.safetensors, got it in no part");
    says(map("two.safetensors", "one.safetensors"), "tensor 'a'");
    says(map("../one.safetensors", "two.safetensors"), "names of files in the index's folder");
    says(map("/etc/passwd", "two.safetensors"), "names of files in the index's folder");
    says(map("..", "two.safetensors"), "names of files in the index's folder");
    says(map("one.safetensors\\u0000", "two.safetensors"), "names of files in the index's folder");
    says(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})",
         "it in one file alone, got it twice");
    says(R"({"weight_map":{"b":"two.safetensors","a":"one.safetensors","c":"two.safetensors"}})",
         "it in no part");
    says(R"({"weight_map":{}})", "expected tensors");
    says(R"({"weight_map":{},"weight_map":{}})", "expected 'weight_map' once, got it twice");
    for (const char* bad : {"", ".", "a\\\\b"})
        says(map(bad, "two.safetensors"), "names of files in the index's folder");
    std::string parts, names;
    for (int i = 0; i <= 4096; i++)
        parts += (i ? ",\"" : "\"") + std::to_string(i) + R"(":"p)" + std::to_string(i) + "\"";
    says("{\"weight_map\":{" + parts + "}}", "weight_map: expected at most 4096 files, got 4097");
    for (int i = 0; i <= 256; i++)
        names += (i ? ",\"" : "\"") + std::to_string(i) + std::string(65'530, 'n') + R"(":"p")";
    says("{\"weight_map\":{" + names + "}}", "expected names of at most 16777216 bytes together, got more");
    says(R"({"metadata":{}})", "weight_map: expected an object");
    says(R"({"weight_map":["a"]})", "expected an object");
    says("", "expected an object");
    says("{\"metadata\":" + nested(100000) + "}", "values at most 32 deep");
    std::filesystem::copy(scratch / "one.safetensors", scratch / "twin.safetensors");
    says(map("one.safetensors", "twin.safetensors"), "tensor 'a': expected it once");
    one.add_tensor("extra", DType::f32, Shape(1), emit("eeee"));
    one.write(scratch.path, "one");
    says(map("one.safetensors", "two.safetensors"), "tensor 'extra'");
    test::write_text(path, "{");
    std::filesystem::resize_file(path, 100'000'001);
    CHECK(test::has(test::refusal([&] { Safetensors::open(path); }),
                    "expected an index of at most 100000000 bytes, got 100000001"));
}

TEST_CASE("every truncation of a safetensors file is refused, and flipped bytes are refused or read") {
    test::Scratch scratch;
    SafetensorsWriter writer;
    writer.add_tensor("a.weight", DType::f32, Shape(2, 3), emit(std::string(24, 'a')));
    writer.add_tensor("b.weight", DType::bf16, Shape(5), emit(std::string(10, 'b')));
    writer.write(scratch.path, "model");
    const std::string whole = test::read_text(scratch / "model.safetensors");
    CHECK(reading(whole).empty());
    for (std::size_t size = 0; size < whole.size(); size++)
        if (reading(whole.substr(0, size)).empty()) FAIL("truncated at " << size);
    Rng rng(3, 1);
    std::uint64_t counter = 0;
    int refused = 0;
    for (int round = 0; round < 3000; round++) {
        std::string bytes = whole;
        for (int flips = 1 + round % 3; flips > 0; flips--) {
            auto& byte = bytes[rng.below(bytes.size(), counter++)];
            byte = static_cast<char>(byte ^ (1 + rng.below(255, counter++)));
        }
        refused += !reading(bytes).empty();
    }
    CHECK(refused > 1000);
}

TEST_CASE("a hostile header of 100 MB takes no memory to speak of") {
    if (test::instrumented) return test::skip("what this build takes says nothing");
    const auto takes_little = [](const std::string& header, const char* says) {
        const std::string file = file_of(header, 0);
        const std::size_t held = peak_memory();
        const std::string line = reading(file);
        CHECK_MESSAGE(test::has(line, says), line.substr(0, 300));
        CHECK(line.size() < 1000);
        CHECK(held > 0);
        CHECK(peak_memory() - held < std::size_t{64} << 20);
    };
    const std::string empty = R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
    std::string many = "{", long_names = "{";
    for (int i = 0; i <= 1 << 18; i++) many += "\"blk." + std::to_string(i) + empty;
    takes_little(many, "expected at most 262144 tensors, got more");
    for (int i = 0; i < 200; i++) long_names += "\"" + std::to_string(i) + std::string(60'000, 'n') + empty;
    takes_little(long_names, "expected names of at most 8388608 bytes together, got more");
    takes_little("{" + std::string(99'999'999, ' '), "expected a string");
    const std::string name(99'000'000, 'n');
    takes_little("{\"" + name + "\":{}}", "expected a string of at most 65536 bytes, got a longer one");
    takes_little("{\"__metadata__\":{\"a\":\"" + name + "\"}}", "expected a string of at most 16777216");
}
