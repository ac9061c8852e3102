#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;

namespace {

/// A GGUF file put together by hand, so that any part of it can be wrong.
struct Raw {
    std::string bytes;

    template <class T>
    Raw& put(T value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    Raw& u32(std::uint32_t value) { return put(value); }
    Raw& u64(std::uint64_t value) { return put(value); }
    Raw& text(std::string_view value) {
        u64(value.size());
        bytes += value;
        return *this;
    }
    Raw& head(std::uint64_t tensors, std::uint64_t values, std::uint32_t version = 3) {
        bytes += "GGUF";
        return u32(version).u64(tensors).u64(values);
    }
    Raw& tensor(std::string_view name, std::initializer_list<std::uint64_t> dims, std::uint32_t type,
                std::uint64_t offset) {
        text(name).u32(static_cast<std::uint32_t>(dims.size()));
        for (auto dim : dims) u64(dim);
        return u32(type).u64(offset);
    }
    Raw& pad(std::size_t data, std::size_t alignment = 32) {
        bytes.resize((bytes.size() + alignment - 1) / alignment * alignment + data);
        return *this;
    }
};

/// What reading these bytes says: the error without the path, or "".
std::string reading(const std::string& bytes) {
    test::Scratch scratch;
    std::string path = scratch / "x.gguf";
    test::write_text(path, bytes);
    try {
        Gguf file(path);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        std::string line = error.what();
        CHECK(line.substr(0, path.size() + 2) == path + ": ");
        return line.substr(path.size() + 2);
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

template <class T>
std::function<void(const GgufWriter::Sink&)> emit(std::vector<T> values) {
    return [values](const GgufWriter::Sink& sink) { sink(values.data(), values.size() * sizeof(T)); };
}

/// A small file with every kind of value that the writer has.
GgufWriter sample() {
    GgufWriter writer;
    writer.add("general.architecture", "test");
    writer.add("a.u32", std::uint32_t{7});
    writer.add("a.i32", std::int32_t{-7});
    writer.add("a.u64", std::uint64_t{1} << 40);
    writer.add("a.f32", 0.5f);
    writer.add("a.bool", true);
    std::vector<std::string> words{"", "one", "zwei"};
    std::vector<std::int32_t> ints{1, -2, 3};
    std::vector<float> floats{0.25f, -1.0f};
    writer.add("a.words", words.size(), [&](std::size_t i) -> std::string_view { return words[i]; });
    writer.add("a.ints", ints);
    writer.add("a.floats", floats);
    writer.add("a.bools", std::vector<bool>{true, false});
    writer.add_tensor("w", DType::f32, Shape(2, 3), emit<float>({1, 2, 3, 4, 5, 6}));
    writer.add_tensor("h", DType::f16, Shape(5), emit<std::uint16_t>({1, 2, 3, 4, 5}));
    return writer;
}

}  // namespace

TEST_CASE("what is written is read back: every kind of value, shapes in row order, bytes, checksum") {
    test::Scratch scratch;
    std::string path = scratch / "x.gguf";
    std::string digest = sample().write(path);
    CHECK(digest == sha256(test::read_text(path)));
    Gguf file(path);
    CHECK(file.values().size() == 10);
    CHECK(file.values()[0].first == "general.architecture");
    CHECK(file.string("general.architecture") == "test");
    CHECK(file.integer("a.u32") == 7u);
    CHECK(file.number("a.i32") == -7);
    CHECK(file.integer("a.u64") == std::uint64_t{1} << 40);
    CHECK(file.number("a.f32") == 0.5);
    CHECK(file.boolean("a.bool") == true);
    CHECK(*file.strings("a.words") == std::vector<std::string_view>{"", "one", "zwei"});
    CHECK(*file.integers("a.ints") == std::vector<std::int64_t>{1, -2, 3});
    CHECK(*file.numbers("a.floats") == std::vector<double>{0.25, -1});
    CHECK(*file.numbers("a.ints") == std::vector<double>{1, -2, 3});
    CHECK(*file.booleans("a.bools") == std::vector<bool>{true, false});
    REQUIRE(file.tensors().size() == 2);
    const GgufTensor* w = file.tensor("w");
    REQUIRE(w);
    CHECK(w->shape == Shape(2, 3));
    CHECK(w->type == DType::f32);
    REQUIRE(w->bytes.size() == 24);
    float last;
    std::memcpy(&last, w->bytes.data() + 20, 4);
    CHECK(last == 6);
    CHECK(file.tensor("h")->bytes.size() == 10);
    CHECK(!file.tensor("nope"));
    Gguf moved(std::move(file));
    CHECK(moved.string("general.architecture") == "test");
    CHECK(sample().write(scratch / "y.gguf", Existing::replace, false) == "");  // not hashed, and the same
    CHECK(test::read_text(scratch / "y.gguf") == test::read_text(path));
}

TEST_CASE("an absent key is nothing; a wrong kind or range is an error that says what stands there") {
    test::Scratch scratch;
    std::string path = scratch / "x.gguf";
    sample().write(path);
    Gguf file(path);
    CHECK(!file.find("none"));
    CHECK(!file.integer("none"));
    CHECK(!file.number("none"));
    CHECK(!file.boolean("none"));
    CHECK(!file.string("none"));
    CHECK(!file.strings("none"));
    CHECK(!file.numbers("none"));
    CHECK(!file.integers("none"));
    auto refusal = [&](auto work) -> std::string {
        try {
            work();
        } catch (const Error& error) {
            return std::string(error.what()).substr(path.size() + 2);
        }
        return "no error";
    };
    CHECK(refusal([&] { file.integer("a.i32"); }) == "key 'a.i32': expected an integer from 0, got -7");
    CHECK(refusal([&] { file.integer("a.u32", 6); }) ==
          "key 'a.u32': expected an integer from 0 to 6, got 7");
    CHECK(refusal([&] { file.integer("a.words"); }) ==
          "key 'a.words': expected an integer from 0, got an array of 3 string");
    CHECK(refusal([&] { file.string("a.bool"); }) == "key 'a.bool': expected a string, got true");
    CHECK(refusal([&] { file.number("general.architecture"); }) ==
          "key 'general.architecture': expected a number, got the string 'test'");
    CHECK(contains(refusal([&] { file.boolean("a.u32"); }), "expected true or false, got 7"));
    CHECK(contains(refusal([&] { file.strings("a.ints"); }), "expected an array of strings"));
    CHECK(contains(refusal([&] { file.integers("a.floats"); }), "expected an array of integers"));
    CHECK(contains(refusal([&] { file.numbers("a.words"); }), "expected an array of numbers"));
}

TEST_CASE("the writer refuses twins and emitters that give other bytes, and then leaves no file") {
    test::Scratch scratch;
    GgufWriter writer;
    writer.add("k", true);
    CHECK_THROWS_AS(writer.add("k", false), std::logic_error);
    writer.add_tensor("t", DType::f32, Shape(4), emit<float>({1, 2, 3}));
    CHECK_THROWS_AS(writer.add_tensor("t", DType::f32, Shape(4), emit<float>({})), std::logic_error);
    CHECK_THROWS_AS(writer.add_stored("k", {}), std::logic_error);
    CHECK_THROWS_AS(writer.add_tensor("none", DType::unknown, Shape(4), emit<float>({})), std::logic_error);
    CHECK_THROWS_AS(writer.add_tensor("scalar", DType::f32, Shape(), emit<float>({})), std::logic_error);
    CHECK_THROWS_AS(writer.add_tensor("part", DType::q8_0, Shape(33), emit<float>({})), std::logic_error);
    CHECK_THROWS_AS(writer.write(scratch / "x"), std::logic_error);
    CHECK_THROWS_AS(read_file(scratch / "x"), Error);
    GgufWriter longer;
    longer.add_tensor("t", DType::f32, Shape(1), emit<float>({1, 2}));
    CHECK_THROWS_AS(longer.write(scratch / "x"), std::logic_error);
    CHECK_THROWS_AS(read_file(scratch / "x"), Error);
    CHECK_THROWS_AS(sample().write(scratch / "no/x"), Error);
}

TEST_CASE("every truncation of a file is refused") {
    test::Scratch scratch;
    sample().write(scratch / "x");
    std::string whole = test::read_text(scratch / "x");
    CHECK(reading(whole) == "");
    // Padding behind the last tensor may be missing: its 10 bytes end 22 before the end.
    for (std::size_t size = 0; size < whole.size() - 22; size++)
        if (reading(whole.substr(0, size)) == "") FAIL("truncated at " << size);
    CHECK(reading(whole.substr(0, whole.size() - 22)) == "");
    CHECK(contains(reading(whole + "x"), "bytes follow the last tensor"));
}

TEST_CASE("thousands of flipped bytes are refused or read, never anything else") {
    test::Scratch scratch;
    sample().write(scratch / "x");
    const std::string whole = test::read_text(scratch / "x");
    std::string path = scratch / "y";
    Rng rng(1, 1);
    int refused = 0;
    std::uint64_t counter = 0;
    for (int round = 0; round < 4000; round++) {
        std::string bytes = whole;
        for (int flips = 1 + round % 3; flips > 0; flips--) {
            auto& byte = bytes[rng.below(bytes.size(), counter++)];
            byte = static_cast<char>(byte ^ (1 + rng.below(255, counter++)));
        }
        test::write_text(path, bytes);
        try {
            Gguf file(path);
            std::uint64_t sum = 0;  // touch every byte handed out
            for (const GgufTensor& tensor : file.tensors())
                for (std::byte byte : tensor.bytes) sum += static_cast<std::uint64_t>(byte);
            for (const auto& [key, value] : file.values()) {
                sum += file.find(key) == &value;
                if (const auto* array = std::get_if<GgufArray>(&value))
                    for (std::string_view text : array->strings) sum += text.size();
            }
            CHECK(sum > 0);
        } catch (const Error& error) {
            refused += error.exit() == Exit::input;
        }
    }
    CHECK(refused > 1000);
}

TEST_CASE(
    "every kind of value that GGUF has is read, alone and in arrays, and one that does not fit is named") {
    test::Scratch scratch;
    const std::string path = scratch / "x.gguf";
    Raw raw;
    raw.head(0, 24);
    auto one = [&](std::string_view key, std::uint32_t of, auto value) { raw.text(key).u32(of).put(value); };
    one("u8", 0, std::uint8_t{200}), one("i8", 1, std::int8_t{-100}), one("u16", 2, std::uint16_t{60000});
    one("i16", 3, std::int16_t{-30000}), one("u32", 4, UINT32_MAX), one("i32", 5, INT32_MIN);
    one("f32", 6, -0.5f), one("no", 7, char{0}), one("u64", 10, UINT64_MAX), one("i64", 11, INT64_MIN);
    one("f64", 12, 1e300), one("plus", 11, std::int64_t{9});
    auto list = [&](std::string_view key, std::uint32_t of, auto a, auto b) {
        raw.text(key).u32(9).u32(of).u64(2).put(a).put(b);
    };
    list("[u8]", 0, std::uint8_t{1}, std::uint8_t{255}), list("[i8]", 1, std::int8_t{1}, std::int8_t{-128});
    list("[u16]", 2, std::uint16_t{1}, std::uint16_t{65535}),
        list("[i16]", 3, std::int16_t{1}, std::int16_t{-32768});
    list("[u32]", 4, std::uint32_t{1}, UINT32_MAX), list("[u64]", 10, std::uint64_t{1}, UINT64_MAX);
    list("[i64]", 11, std::int64_t{1}, std::int64_t{INT64_MIN}), list("[f64]", 12, 1.0, 1e300);
    list("[bool]", 7, char{1}, char{0}), list("[no bool]", 7, char{1}, char{2});
    list("[i32]", 5, std::int32_t{1}, std::int32_t{INT32_MIN}), list("[f32]", 6, 1.0f, -0.5f);
    test::write_text(path, raw.bytes);
    const Gguf file(path);
    CHECK(file.integer("u8") == 200U);
    CHECK(file.number("i8") == -100);
    CHECK(file.integer("u16", 60000) == 60000U);
    CHECK(file.number("i16") == -30000);
    CHECK(file.integer("u32") == UINT32_MAX);
    CHECK(file.number("i32") == INT32_MIN);
    CHECK(file.number("f32") == -0.5);
    CHECK(file.boolean("no") == false);
    CHECK(file.integer("u64") == UINT64_MAX);
    CHECK(file.number("u64") == 18446744073709551616.0);
    CHECK(file.number("i64") == -9223372036854775808.0);
    CHECK(file.number("f64") == 1e300);
    CHECK(file.integer("plus", 9) == 9U);
    const std::vector<std::pair<const char*, std::int64_t>> arrays = {
        {"[u8]", 255},         {"[i8]", -128},       {"[u16]", 65535},    {"[i16]", INT16_MIN},
        {"[u32]", UINT32_MAX}, {"[i64]", INT64_MIN}, {"[i32]", INT32_MIN}};
    for (const auto& [key, last] : arrays) {
        const auto& of_key = key;
        CAPTURE(of_key);
        CHECK(*file.integers(key) == std::vector<std::int64_t>{1, last});
        CHECK(*file.numbers(key) == std::vector<double>{1, static_cast<double>(last)});
    }
    CHECK(*file.numbers("[u64]") == std::vector<double>{1, 18446744073709551616.0});
    CHECK(*file.numbers("[f64]") == std::vector<double>{1, 1e300});
    CHECK(*file.numbers("[f32]") == std::vector<double>{1, -0.5});
    CHECK(*file.booleans("[bool]") == std::vector<bool>{true, false});
    CHECK(!file.booleans("none"));
    struct Wrong {
        std::function<void()> act;
        std::string says;
    };
    const std::vector<Wrong> wrong = {
        {[&] { file.integer("plus", 8); }, "key 'plus': expected an integer from 0 to 8, got 9"},
        {[&] { file.integer("f32"); }, "key 'f32': expected an integer from 0, got -0.500000"},
        {[&] { file.string("no"); }, "key 'no': expected a string, got false"},
        {[&] { file.strings("no"); }, "key 'no': expected an array of strings, got false"},
        {[&] { file.integers("u64"); }, "key 'u64': expected an array of integers, got 18446744073709551615"},
        {[&] { file.integers("[u64]"); },
         "key '[u64]': expected an array of integers, got an array of 2 u64"},
        {[&] { file.integers("[f64]"); },
         "key '[f64]': expected an array of integers, got an array of 2 f64"},
        {[&] { file.numbers("u8"); }, "key 'u8': expected an array of numbers, got 200"},
        {[&] { file.numbers("[bool]"); },
         "key '[bool]': expected an array of numbers, got an array of 2 bool"},
        {[&] { file.booleans("no"); }, "key 'no': expected an array of true and false, got false"},
        {[&] { file.booleans("[u8]"); },
         "key '[u8]': expected an array of true and false, got an array of 2 u8"},
        {[&] { file.booleans("[no bool]"); }, "key '[no bool]': expected 0 or 1 for each, got 2"},
    };
    for (const Wrong& w : wrong) CHECK(test::refusal(w.act) == path + ": " + w.says);
}

TEST_CASE("what is no GGUF file, or of another version or byte order, is named") {
    CHECK(reading("") == "expected a GGUF file, got an empty file");
    CHECK(reading("GG") == "magic: expected 'GGUF', got 'GG' (not a GGUF file)");
    CHECK(reading("\x7f"
                  "ELF") == "magic: expected 'GGUF', got '\\x7fELF' (not a GGUF file)");
    CHECK(contains(reading(Raw().head(0, 0, 1).bytes), "version: expected 2 or 3, got 1"));
    CHECK(contains(reading(Raw().head(0, 0, 4).bytes), "version: expected 2 or 3, got 4"));
    CHECK(contains(reading(Raw().head(0, 0, 0x03000000).bytes),
                   "expected a little-endian file, got a big-endian one"));
    CHECK(contains(reading(Raw().head(0, 0, 0x01000003).bytes), "version: expected 2 or 3, got 16777219"));
    CHECK(reading(Raw().head(0, 0, 2).bytes) == "");
    CHECK(reading(Raw().head(0, 0, 3).bytes) == "");
}

TEST_CASE("counts beyond the bytes that are there are refused before anything is allocated") {
    for (std::uint64_t huge : {std::uint64_t{1000}, std::uint64_t{1} << 40, UINT64_MAX}) {
        CHECK(contains(reading(Raw().head(huge, 0).bytes), "tensor count: expected at most 0"));
        CHECK(contains(reading(Raw().head(0, huge).bytes), "metadata count: expected at most 0"));
        CHECK(contains(reading(Raw().head(0, 1).u64(huge).put('k').pad(64).bytes), "key: expected"));
        CHECK(contains(reading(Raw().head(0, 1).text("k").u32(8).u64(huge).pad(64).bytes),
                       "key 'k': expected"));
        for (std::uint32_t kind : {0u, 5u, 8u, 12u})
            CHECK(contains(reading(Raw().head(0, 1).text("k").u32(9).u32(kind).u64(huge).pad(64).bytes),
                           "key 'k': expected at most"));
    }
}

TEST_CASE("malformed values are refused: kinds, nested arrays, bools, names, twins, alignment") {
    auto value = [](std::string_view key, std::uint32_t kind) {
        return Raw().head(0, 1).text(key).u32(kind);
    };
    CHECK(reading(value("k", 13).u64(0).bytes) == "key 'k': expected a value kind from 0 to 12, got 13");
    CHECK(contains(reading(value("k", 9).u32(9).u64(0).bytes), "got an array of arrays"));
    CHECK(contains(reading(value("k", 9).u32(99).u64(0).bytes), "got 99"));
    CHECK(reading(value("k", 7).put(char{2}).bytes) == "key 'k': expected a bool of 0 or 1, got 2");
    CHECK(contains(reading(value("", 4).u64(0).bytes), "expected a name, got an empty one"));
    CHECK(contains(reading(value("a\nb", 4).u32(0).bytes),
                   "expected a name in UTF-8 without control characters, got 'a\\x0ab'"));
    CHECK(contains(reading(value("\xff", 4).u32(0).bytes), "expected a name in UTF-8"));
    // Truncated, stray, overlong, a surrogate, beyond U+10FFFF, and controls: DEL, U+0080 and U+009B.
    for (const char* bad : {"\xc3", "\xc3z", "a\x80", "\xc1\x80", "\x7f", "\xe4\xb8", "\xf5\x80\x80\x80",
                            "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc2\x80",
                            "\xc2\x9b"
                            "2J"})
        CHECK(contains(reading(value(bad, 4).u32(0).bytes), "expected a name in UTF-8"));
    for (const char* good : {"é", "中", "😀", "~", "\xc2\xa0", "\\x0a"})
        CHECK(reading(value(good, 4).u32(0).bytes) == "");
    CHECK(contains(reading(value(std::string(70000, 'k'), 4).u32(0).bytes), "at most 65535 bytes"));
    CHECK(reading(Raw().head(0, 2).text("k").u32(4).u32(1).text("k").u32(4).u32(2).bytes) ==
          "key 'k': expected once, got twice");
    for (std::uint32_t bad : {0u, 1u, 4u, 12u, 48u})
        CHECK(contains(reading(value("general.alignment", 4).u32(bad).bytes), "expected a power of two"));
    CHECK(contains(reading(value("general.alignment", 8).text("32").bytes), "expected an integer"));
    CHECK(reading(value("general.alignment", 4).u32(64).bytes) == "");
}

TEST_CASE("a file with types that have no row is opened where asked; such a tensor reaches to the next one") {
    test::Scratch scratch;
    const std::uint32_t f32 = 0, strange = 4000;
    auto lengths = [&](std::uint64_t first, std::uint64_t second, std::size_t data) {
        test::write_text(scratch / "m.gguf", Raw()
                                                 .head(2, 0)
                                                 .tensor("a", {16}, strange, first)
                                                 .tensor("b", {16}, f32, second)
                                                 .pad(data)
                                                 .bytes);
        const Gguf file(scratch / "m.gguf", UnknownTypes::kept);
        CHECK(file.tensor("a")->type == DType::unknown);
        CHECK(file.tensor("a")->type_name() == "4000");
        CHECK(file.tensor("b")->bytes.size() == 64);
        return file.tensor("a")->bytes.size();
    };
    CHECK(lengths(0, 64, 128) == 64);
    CHECK(lengths(0, 32, 96) == 32);
    CHECK(lengths(64, 0, 128) == 64);
    CHECK(lengths(64, 0, 64) == 0);  // nothing is left for it
    auto refused = [&](std::initializer_list<std::uint64_t> dims, std::uint64_t first, std::uint64_t second) {
        test::write_text(scratch / "m.gguf", Raw()
                                                 .head(2, 0)
                                                 .tensor("a", dims, strange, first)
                                                 .tensor("b", dims, strange, second)
                                                 .pad(128)
                                                 .bytes);
        return test::refusal([&] { Gguf(scratch / "m.gguf", UnknownTypes::kept); });
    };
    CHECK(contains(refused({16}, 32, 32), "expected data of its own, got data shared with"));
    CHECK(contains(refused({16}, 0, 1024), "tensor 'b': expected "));
    CHECK(contains(refused({std::uint64_t{1} << 62}, 0, 64),
                   "tensor 'b': expected fewer than 2^63 elements in all, got more"));
}

TEST_CASE("tensors that cannot be are refused: shapes, types, offsets, overlaps, twins") {
    const std::uint32_t f32 = 0;
    auto one = [&](std::initializer_list<std::uint64_t> dims, std::uint32_t type, std::uint64_t offset,
                   std::size_t data = 64) {
        return reading(Raw().head(1, 0).tensor("t", dims, type, offset).pad(data).bytes);
    };
    CHECK(one({4, 4}, f32, 0) == "");
    CHECK(contains(one({}, f32, 0), "tensor 't': expected 1 to 4 dimensions, got 0"));
    CHECK(contains(one({1, 1, 1, 1, 1}, f32, 0), "expected 1 to 4 dimensions, got 5"));
    CHECK(contains(one({4, 0}, f32, 0), "expected dimensions of at least 1, got 0"));
    CHECK(contains(one({UINT64_MAX, 1}, f32, 0), "dimensions of at least 1"));
    CHECK(
        contains(one({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, f32, 0), "fewer than 2^63 elements"));
    CHECK(contains(one({std::uint64_t{1} << 62}, f32, 0), "fewer than 2^63 bytes"));
    CHECK(one({32}, 12, 0) == "tensor 't': expected rows of whole blocks of 256, got 32");
    CHECK(one({32}, 4, 0) == "tensor 't': expected a tensor type of ggml, got type 4");  // q4_2, removed
    CHECK(contains(one({32}, 4000, 0), "got type 4000"));
    CHECK(contains(one({16}, f32, 16), "an offset that is a multiple of 32"));
    CHECK(contains(one({16}, f32, 32), "is the file truncated?"));
    CHECK(contains(one({16}, f32, std::uint64_t(0) - 32),
                   "is the file truncated?"));  // offset + size wraps to 32
    CHECK(contains(one({16}, f32, 0, 32), "is the file truncated?"));
    CHECK(contains(one({16}, f32, 0, 65), "bytes follow the last tensor"));
    CHECK(contains(reading(Raw().head(1, 0).tensor("t", {16}, f32, 0).bytes), "tensor data"));

    auto two = [&](std::string_view name, std::uint64_t first, std::uint64_t second) {
        return reading(
            Raw().head(2, 0).tensor("a", {16}, f32, first).tensor(name, {16}, f32, second).pad(128).bytes);
    };
    CHECK(two("b", 0, 64) == "");
    CHECK(two("b", 64, 0) == "");  // any order
    CHECK(two("a", 0, 64) == "tensor 'a': expected once, got twice");
    CHECK(contains(two("b", 64, 32), "tensor 'a': expected data of its own, got data shared with 'b'"));
    CHECK(contains(two("b", 0, 0), "data shared with"));
}

TEST_CASE("tensors of every type of ggml are read: their bytes are their blocks, a row is of whole blocks") {
    test::Scratch scratch;
    for (const DTypeInfo& row : dtypes()) {
        if (row.gguf_id < 0) continue;
        CAPTURE(row.name);
        auto block = static_cast<std::uint64_t>(row.block), bytes = static_cast<std::uint64_t>(row.bytes);
        auto id = static_cast<std::uint32_t>(row.gguf_id);
        auto file = [&](std::uint64_t columns, std::uint64_t size) {
            return Raw().head(1, 0).tensor("t", {columns, 3}, id, 0).pad(size).bytes;
        };
        test::write_text(scratch / "t.gguf", file(2 * block, 6 * bytes));
        Gguf read(scratch / "t.gguf");
        CHECK(read.tensors()[0].type == row.type);
        CHECK(read.tensors()[0].bytes.size() == 6 * bytes);
        CHECK(contains(reading(file(2 * block, 6 * bytes - 1)), "is the file truncated?"));
        if (block > 1)
            CHECK(contains(reading(file(2 * block + 1, 6 * bytes + 64)), "rows of whole blocks of"));
    }
}

TEST_CASE("a long list of values takes linear time") {
    // A million keys of which the last two are equal: a quadratic search would take hours.
    Raw raw;
    const std::uint64_t count = 1000000;
    raw.head(0, count);
    for (std::uint64_t i = 0; i < count; i++) {
        std::uint64_t number = i + 1 == count ? i - 1 : i;
        raw.text("key." + std::to_string(number)).u32(0).put(char{1});
    }
    CHECK(reading(raw.bytes) == "key 'key.999998': expected once, got twice");
}

TEST_CASE("real files load: a model, and vocabularies without tensors") {
    auto model = test::shared_data("data/stories260k/stories260k.gguf");
    auto vocab = test::shared_data("data/vocab/ggml-vocab-gpt-2.gguf");
    if (!model || !vocab) return;
    Gguf file(*model);
    CHECK(file.string("general.architecture") == "llama");
    CHECK(file.tensors().size() == 48);
    CHECK(file.tensor("token_embd.weight")->shape == Shape(512, 64));
    Gguf words(*vocab);
    CHECK(words.tensors().empty());
    CHECK(words.strings("tokenizer.ggml.tokens")->size() == 50257);
}
