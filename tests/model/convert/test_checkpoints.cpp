// Checkpoints of llama2.c and llm.c, both ways.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "model/architectures.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/family_files.h"
#include "model/model.h"
#include "support.h"

using namespace linnet;

namespace {

namespace fs = std::filesystem;

std::vector<float> floats(const Gguf& file, const std::string& name) {
    const GgufTensor* t = file.tensor(name);
    REQUIRE(t);
    REQUIRE(t->type == DType::f32);
    std::vector<float> v(t->bytes.size() / 4);
    std::memcpy(v.data(), t->bytes.data(), t->bytes.size());
    return v;
}

ModelConfig read_config_of(const Gguf& file) {
    const Architecture* architecture = nullptr;
    return read_config(file, architecture);
}

template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string refused(const std::string& path, const SourceOptions& options = {}) {
    try {
        open_source(path, model_format(path), options);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        return error.what();
    }
    return "";
}

/// A vocabulary of eight letters as tokenizer.bin has it.
void write_letters(const std::string& path) {
    std::string words(4, '\1');
    for (char token = 0; token < 8; token++)
        put(words, 0.0F), put(words, std::int32_t{1}), words += static_cast<char>('a' + token);
    test::write_text(path, words);
}

/// The header of versions 1 and 2.
std::string header_of(std::int32_t version, std::int64_t width, std::int64_t ffn, bool tied,
                      std::int32_t group) {
    std::string file;
    put(file, std::int32_t{0x616b3432}), put(file, version);
    for (std::int64_t n :
         {width, ffn, std::int64_t{1}, std::int64_t{2}, std::int64_t{2}, std::int64_t{8}, std::int64_t{4}})
        put(file, static_cast<std::int32_t>(n));
    file += static_cast<char>(tied);
    put(file, group);
    file.resize(256);
    return file;
}

}  // namespace

TEST_CASE(
    "stories260k goes from llama2.c's checkpoint to GGUF and back: every weight and the tokenizer byte for "
    "byte") {
    const auto checkpoint = test::shared_data("data/stories260k/checkpoint.bin"),
               reference = test::shared_data("data/stories260k/stories260k.gguf"),
               words = test::shared_data("data/stories260k/tokenizer.bin");
    if (!checkpoint || !reference || !words) return;
    test::Scratch scratch;
    write_gguf(open_llama2c(*checkpoint, {}), scratch / "s.gguf", Existing::replace, [](double, double) {});
    const Gguf ours(scratch / "s.gguf"), theirs(*reference);
    for (const GgufTensor& t : theirs.tensors()) {
        // That file has the tied matrix twice.
        const GgufTensor* same = ours.tensor(t.name == "output.weight" ? "token_embd.weight" : t.name);
        REQUIRE(same);
        CHECK(std::ranges::equal(same->bytes, t.bytes));
    }
    write_llama2c(ours, tokenizer_from_gguf(ours), scratch / "checkpoint.bin", {});
    CHECK(test::read_text(scratch / "tokenizer.bin") == test::read_text(*words));
    const std::string before = test::read_text(*checkpoint),
                      after = test::read_text(scratch / "checkpoint.bin");
    REQUIRE(before.size() == after.size());
    // The turns' cosines and sines, which no program reads again, are another machine's in their last bits.
    const std::size_t turns = 512 * 8 * 4, begin = before.size() - turns;
    CHECK(before.substr(0, begin) == after.substr(0, begin));
    for (std::size_t at = begin; at < before.size(); at += 4) {
        float a, b;
        std::memcpy(&a, before.data() + at, 4), std::memcpy(&b, after.data() + at, 4);
        CHECK(std::abs(a - b) < 1e-4F);
    }
    CHECK(Model::open(*checkpoint)->config().layers == 5);
}

TEST_CASE("llama2.c's versions 1 and 2 are read; groups of 8 bits become what they stand for") {
    test::Scratch scratch;
    const std::int64_t C = 8, F = 16, V = 8;
    write_letters(scratch / "tokenizer.bin");
    for (std::int32_t version : {1, 2}) {
        std::string file = header_of(version, C, F, false, 4);
        float next = 0;
        auto floats_of = [&](std::int64_t n) {
            for (std::int64_t i = 0; i < n; i++) put(file, next++);
        };
        floats_of(3 * C);
        for (std::int64_t n : {V * C, C * C, C * C, C * C, C * C, F * C, C * F, F * C, V * C}) {
            if (version == 1) {
                floats_of(n);
                continue;
            }
            for (std::int64_t i = 0; i < n; i++) file += static_cast<char>(i % 7 - 3);
            for (std::int64_t i = 0; i < n / 4; i++) put(file, 0.5F * static_cast<float>(i));
        }
        test::write_text(scratch / "m.bin", file);
        const Gguf read = open_model_file(scratch / "m.bin");
        CHECK(floats(read, "blk.0.ffn_norm.weight")[1] == 9);
        const std::vector<float> table = floats(read, "token_embd.weight"),
                                 head = floats(read, "output.weight");
        CHECK(table[5] == (version == 1 ? 3 * C + 5 : 0.5F * (5 % 7 - 3)));
        CHECK(head.size() == static_cast<std::size_t>(V * C));
        test::write_text(scratch / "n.bin", file + "x");
        CHECK(test::has(refused(scratch / "n.bin"), "bytes, as the header says"));
        test::write_text(scratch / "n.bin", file.substr(0, 100));
        CHECK(test::has(refused(scratch / "n.bin"), "256 bytes, got 100"));
        if (version == 2) {
            file[37] = 24;
            test::write_text(scratch / "n.bin", file);
            CHECK(test::has(refused(scratch / "n.bin"), "group size: expected a divisor of 64, got 24"));
            file[37] = 0;
            test::write_text(scratch / "n.bin", file);
            CHECK(test::has(refused(scratch / "n.bin"), "group size: expected a positive number, got 0"));
        }
        file[4] = 9;
        test::write_text(scratch / "n.bin", file);
        CHECK(test::has(refused(scratch / "n.bin"), "version: expected 0, 1 or 2, got 9"));
    }
    fs::remove(scratch / "tokenizer.bin");
    CHECK_THROWS_AS(open_model_file(scratch / "m.bin"), Error);
}

TEST_CASE("llama2.c's groups of 8 bits may span rows") {
    test::Scratch scratch;
    write_letters(scratch / "tokenizer.bin");
    const std::int64_t C = 16, F = 20, V = 8;  // export.py asks for a divisor of C alone
    std::string file = header_of(2, C, F, true, 16);
    for (std::int64_t i = 0; i < 3 * C; i++) put(file, 1.0F);
    for (std::int64_t n : {V * C, C * C, C * C, C * C, C * C, F * C, C * F, F * C}) {
        for (std::int64_t i = 0; i < n; i++) file += static_cast<char>(i % 7);
        for (std::int64_t i = 0; i < n / 16; i++) put(file, static_cast<float>(i));
    }
    test::write_text(scratch / "m.bin", file);
    const std::vector<float> down = floats(open_model_file(scratch / "m.bin"), "blk.0.ffn_down.weight");
    for (std::size_t i = 0; i < down.size(); i++) CHECK(down[i] == static_cast<float>(i / 16 * (i % 7)));
}

TEST_CASE("llama2.c's versions 1 and 2 are written: 1 byte for byte, 2 as near as 8 bits can be") {
    test::Scratch scratch;
    const std::int64_t C = 32, F = 96, V = 8;
    write_letters(scratch / "tokenizer.bin");
    for (bool tied : {false, true}) {
        CAPTURE(tied);
        std::string file = header_of(1, C, F, tied, 0);
        const std::int64_t count = 3 * C + (tied ? 1 : 2) * V * C + 4 * C * C + 3 * C * F;
        for (std::int64_t i = 0; i < count; i++)  // some groups of zeros
            put(file, i / 64 % 5 == 4 ? 0.0F : std::sin(static_cast<float>(i * i % 997)));
        test::write_text(scratch / "m.bin", file);
        const Gguf first = open_model_file(scratch / "m.bin");
        SinkOptions options;
        options.existing = Existing::replace;
        auto written = [&](const Gguf& model, int version, const std::string& name) {
            options.version = version;
            write_llama2c(model, tokenizer_from_gguf(model), scratch / name, options);
            return test::read_text(scratch / name);
        };
        CHECK(written(first, 1, "one.bin") == file);
        const std::string eight = written(first, 2, "two.bin");
        CHECK(eight.size() == 256 + 4 * 3 * static_cast<std::size_t>(C) +
                                  static_cast<std::size_t>(count - 3 * C) / 32 * (32 + 4));
        const Gguf second = open_model_file(scratch / "two.bin");
        CHECK(read_config_of(second).tie_embeddings == tied);
        REQUIRE(second.tensors().size() == first.tensors().size());
        for (const GgufTensor& t : first.tensors()) {
            CAPTURE(t.name);
            const std::string name(t.name);
            const std::vector<float> before = floats(first, name), after = floats(second, name);
            REQUIRE(before.size() == after.size());
            for (std::size_t begin = 0; begin < before.size(); begin += 32) {
                float largest = 0, error = 0;
                for (std::size_t i = begin; i < begin + 32; i++)
                    largest = std::max(largest, std::abs(before[i])),
                    error = std::max(error, std::abs(before[i] - after[i]));
                CHECK(error <= (t.shape.rank > 1 ? largest / 127 * 0.501F : 0));
            }
        }
        // The scale of a group is its largest number's share, which 8 bits give back exactly.
        CHECK(written(second, 2, "again.bin") == eight);
        CHECK(written(second, 0, "old.bin").size() == written(first, 0, "old.bin").size());
    }
    SinkOptions half;
    half.type = DType::f16;
    const Gguf model = open_model_file(scratch / "m.bin");
    CHECK_THROWS_AS(write_llama2c(model, tokenizer_from_gguf(model), scratch / "h.bin", half), Error);
    CHECK(!fs::exists(scratch / "h.bin"));
}

TEST_CASE(
    "a second checkpoint of llama2.c's may stand beside the tokenizer.bin of the first, but no other words") {
    test::Scratch scratch;
    write_letters(scratch / "tokenizer.bin");
    test::write_text(scratch / "m.bin", header_of(1, 8, 16, true, 0) +
                                            std::string(4 * (3 * 8 + 8 * 8 + 4 * 8 * 8 + 3 * 8 * 16), '\0'));
    const Gguf model = open_model_file(scratch / "m.bin");
    make_directories(scratch / "out");
    const TokenizerPtr words = tokenizer_from_gguf(model);
    write_llama2c(model, words, scratch / "out/a.bin", {});
    const std::string tokenizer = test::read_text(scratch / "out/tokenizer.bin");
    write_llama2c(model, words, scratch / "out/b.bin", {});
    CHECK(test::read_text(scratch / "out/b.bin") == test::read_text(scratch / "out/a.bin"));
    test::write_text(scratch / "out/tokenizer.bin", "others");
    CHECK_THROWS_AS(write_llama2c(model, words, scratch / "out/c.bin", {}), Error);
    CHECK(!fs::exists(scratch / "out/c.bin"));
    CHECK(test::read_text(scratch / "out/tokenizer.bin") == "others");
    SinkOptions over;
    over.existing = Existing::replace;
    fs::create_symlink("a.bin", scratch / "out/link.bin");
    write_llama2c(model, words, scratch / "out/link.bin", over);
    CHECK(fs::is_symlink(scratch / "out/link.bin"));
    CHECK(test::read_text(scratch / "out/a.bin") == test::read_text(scratch / "out/b.bin"));
    CHECK(test::read_text(scratch / "out/tokenizer.bin") == tokenizer);
}

TEST_CASE("a checkpoint of llama2.c whose parameters take 2^64 bytes more than it has is refused") {
    test::Scratch scratch;
    std::string file;  // all that the header says is 2^64 + 28 bytes
    for (std::int32_t n : {16777208, 1, 4096, 2097151, 2097151, 241663, 131072}) put(file, n);
    REQUIRE(file.size() == 28);
    test::write_text(scratch / "m.bin", file);
    CHECK(
        test::has(refused(scratch / "m.bin"), "header: expected a model of fewer than 2^64 bytes, got more"));
}

TEST_CASE("a GPT-2 goes to llm.c's checkpoint and back, in f32 and bf16, its vocabulary padded") {
    test::Scratch scratch;
    test::FamilyFile file =
        *std::ranges::find(test::family_files(), std::string("gpt2-tied"), &test::FamilyFile::name);
    file.ffn = 4 * file.width;
    test::write_family_file(file, scratch / "m.gguf");
    const Gguf before(scratch / "m.gguf");
    for (DType type : {DType::f32, DType::bf16}) {
        CAPTURE(info(type).name);
        SinkOptions options;
        options.type = type, options.existing = Existing::replace;
        write_llmc(before, scratch / "m.bin", options);
        CHECK(model_format(scratch / "m.bin") == ModelFormat::llmc);
        SourceOptions source;
        source.tokenizer = scratch / "m.gguf";
        write_gguf(open_llmc(scratch / "m.bin", source), scratch / "back.gguf", Existing::replace,
                   [](double, double) {});
        const Gguf back(scratch / "back.gguf");
        CHECK(back.tensors().size() == before.tensors().size());
        for (const GgufTensor& t : before.tensors()) {
            const GgufTensor* same = back.tensor(t.name);
            REQUIRE(same);
            CHECK(same->shape == t.shape);
            if (type == DType::f32) CHECK(std::ranges::equal(same->bytes, t.bytes));
        }
        CHECK(Model::open(scratch / "back.gguf")->config().layers == 3);
        CHECK(test::has(refused(scratch / "m.bin"), "expected --tokenizer"));
        std::string bytes = test::read_text(scratch / "m.bin");
        test::write_text(scratch / "n.bin", bytes.substr(0, bytes.size() - 4));
        CHECK(test::has(refused(scratch / "n.bin", source), "as the header says"));
        bytes[4] = 4;
        test::write_text(scratch / "n.bin", bytes);
        CHECK(test::has(refused(scratch / "n.bin", source), "version: expected 3 (f32) or 5 (bf16), got 4"));
    }
    for (const test::FamilyFile& other : test::family_files())
        if (other.name == "qwen3" || other.name == "llama-biases") {
            test::write_family_file(other, scratch / "o.gguf");
            const Gguf gguf(scratch / "o.gguf");
            CHECK_THROWS_AS(write_llama2c(gguf, tokenizer_from_gguf(gguf), scratch / "o.bin", {}), Error);
            CHECK_THROWS_AS(write_llmc(gguf, scratch / "o.bin", {}), Error);
            CHECK(!fs::exists(scratch / "o.bin"));
        }
}
