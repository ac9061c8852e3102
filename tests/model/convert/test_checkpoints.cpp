// Checkpoints of llama2.c and llm.c, both ways.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/architectures.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/family_files.h"
#include "model/model.h"
#include "support.h"

using namespace linnet;
using linnet::test::put;

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

std::string refused(const std::string& path, const OpenOptions& options = {}) {
    return test::refusal([&] { open_source(path, model_format(path), options); });
}

/// A vocabulary of eight letters as tokenizer.bin has it.
void write_letters(const std::string& path) {
    std::string words(4, '\1');
    for (char token = 0; token < 8; token++)
        put(words, 0.0F), put(words, std::int32_t{1}), words += static_cast<char>('a' + token);
    test::write_text(path, words);
}

/// A parameter of a checkpoint as its format describes it: GGUF's name, how often it is there (once, or for
/// each layer), elements.
struct Described {
    std::string name;
    std::int64_t times, count;
};

/// The name of the n-th; "{}" stands for the layer.
std::string numbered(std::string name, std::int64_t n) {
    if (const std::size_t at = name.find("{}"); at != name.npos) name.replace(at, 2, std::to_string(n));
    return name;
}

/// Every tensor of `read` is described, and has the values that follow one another in the checkpoint: `value`
/// of 0, 1, 2, … Behind the parameter that `gap` names, `skipped` numbers are of none.
template <class Value>
void check_values(const Gguf& read, const std::vector<Described>& order, const Value& value,
                  const std::string& gap = {}, std::int64_t skipped = 0) {
    std::int64_t at = 0;
    std::size_t tensors = 0;
    for (const Described& d : order)
        for (std::int64_t n = 0; n < d.times; n++) {
            const std::string name = numbered(d.name, n);
            CAPTURE(name);
            const GgufTensor* t = read.tensor(name);
            REQUIRE(t);
            REQUIRE(t->shape.count() == d.count);
            std::vector<float> have(static_cast<std::size_t>(d.count)), want;
            kernels().load(d.count, t->type, t->bytes.data(), have.data());
            for (std::int64_t i = 0; i < d.count; i++) want.push_back(value(at++));
            CHECK(have == want);
            if (name == gap) at += skipped;
            tensors++;
        }
    CHECK(read.tensors().size() == tensors);
}

/// A vocabulary of so many letters as tokenizer.json has it.
void write_letters_json(const std::string& path, int size) {
    std::string words;
    for (int i = 0; i < size; i++)
        words +=
            (i ? ", \"" : "\"") + std::string(1, static_cast<char>('a' + i)) + "\": " + std::to_string(i);
    test::write_text(path, R"({"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {)" +
                               words + R"(}, "merges": []}})");
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
            std::string odd = file;
            odd[37] = 24;
            test::write_text(scratch / "n.bin", odd);
            CHECK(test::has(refused(scratch / "n.bin"), "group size: expected a divisor of 64, got 24"));
            odd[37] = 0;
            test::write_text(scratch / "n.bin", odd);
            CHECK(test::has(refused(scratch / "n.bin"), "group size: expected a positive number, got 0"));
        }
        std::string deep = file;
        deep[17] = 8;  // 2048 layers more
        test::write_text(scratch / "n.bin", deep);
        CHECK(test::has(refused(scratch / "n.bin"), "expected at least "));
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
    make_folders(scratch / "out");
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
    // A tokenizer.bin that is a link is replaced: what it leads to may be the words of other checkpoints.
    fs::rename(scratch / "out/tokenizer.bin", scratch / "shared.bin");
    fs::create_symlink("../shared.bin", scratch / "out/tokenizer.bin");
    test::write_text(scratch / "shared.bin", "others");
    write_llama2c(model, words, scratch / "out/b.bin", over);
    CHECK_FALSE(fs::is_symlink(scratch / "out/tokenizer.bin"));
    CHECK(test::read_text(scratch / "out/tokenizer.bin") == tokenizer);
    CHECK(test::read_text(scratch / "shared.bin") == "others");
    CHECK(names_in(scratch / "out") ==
          std::vector<std::string>{"a.bin", "b.bin", "link.bin", "tokenizer.bin"});
    CHECK_THROWS_AS(write_llama2c(model, words, scratch / "out/tokenizer.bin", over), Error);
    CHECK(test::read_text(scratch / "out/tokenizer.bin") == tokenizer);
}

TEST_CASE("llama2.c's version 0 with a matrix of its own for the output is read, value by value") {
    test::Scratch scratch;
    write_letters(scratch / "tokenizer.bin");
    const std::int64_t C = 8, F = 12, L = 2, H = 4, K = 2, V = 8, T = 3, D = C / H;
    std::string file;
    for (std::int64_t n : {C, F, L, H, K, -V, T}) put(file, static_cast<std::int32_t>(n));  // V < 0: untied
    const std::vector<Described> order = {
        {"token_embd.weight", 1, V * C},        {"blk.{}.attn_norm.weight", L, C},
        {"blk.{}.attn_q.weight", L, C * C},     {"blk.{}.attn_k.weight", L, K * D * C},
        {"blk.{}.attn_v.weight", L, K * D * C}, {"blk.{}.attn_output.weight", L, C * C},
        {"blk.{}.ffn_norm.weight", L, C},       {"blk.{}.ffn_gate.weight", L, F * C},
        {"blk.{}.ffn_down.weight", L, C * F},   {"blk.{}.ffn_up.weight", L, F * C},
        {"output_norm.weight", 1, C},           {"output.weight", 1, V * C}};
    const std::int64_t turns = T * D;  // cosines and sines, before the output's matrix
    std::int64_t count = turns;
    for (const Described& d : order) count += d.times * d.count;
    const auto value = [](std::int64_t i) { return static_cast<float>(i); };
    for (std::int64_t i = 0; i < count; i++) put(file, value(i));
    test::write_text(scratch / "m.bin", file);
    const Gguf read = open_model_file(scratch / "m.bin");
    const ModelConfig c = read_config_of(read);
    CHECK(!c.tie_embeddings);
    CHECK(c.kv_heads == K);
    check_values(read, order, value, "output_norm.weight", turns);
    test::Scratch other;
    write_llama2c(read, tokenizer_from_gguf(read), other / "m.bin", {});
    const std::string again = test::read_text(other / "m.bin");
    REQUIRE(again.size() == file.size());
    const std::size_t head = 4 * static_cast<std::size_t>(V * C), before = head + 4 * turns;
    CHECK(again.substr(0, file.size() - before) == file.substr(0, file.size() - before));
    CHECK(again.substr(file.size() - head) == file.substr(file.size() - head));
    // The same bytes under a tied header are another size.
    const auto tied = static_cast<std::int32_t>(V);
    std::memcpy(file.data() + 5 * sizeof tied, &tied, sizeof tied);
    test::write_text(scratch / "t.bin", file);
    CHECK(test::has(refused(scratch / "t.bin"), "bytes, as the header says"));
}

TEST_CASE("a checkpoint of llama2.c whose parameters take 2^64 bytes more than it has is refused") {
    test::Scratch scratch;
    std::string file;  // all that the header says is 2^64 + 28 bytes, the matrices alone nearly 2^62
    for (std::int32_t n : {16777208, 1, 4096, 2097151, 2097151, 241663, 131072}) put(file, n);
    REQUIRE(file.size() == 28);
    test::write_text(scratch / "m.bin", file);
    CHECK(test::has(refused(scratch / "m.bin"), "expected at least "));
}

TEST_CASE("llm.c's versions 3 and 5 are read value by value, and written with the same bytes") {
    test::Scratch scratch;
    const std::int64_t T = 3, V = 5, L = 2, H = 2, C = 4, padded = 128;
    write_letters_json(scratch / "words.json", V);
    // train_gpt2.py, write_tensors: each parameter for all layers in turn.
    const std::vector<Described> order = {{"token_embd.weight", 1, V * C},
                                          {"position_embd.weight", 1, T * C},
                                          {"blk.{}.attn_norm.weight", L, C},
                                          {"blk.{}.attn_norm.bias", L, C},
                                          {"blk.{}.attn_qkv.weight", L, 3 * C * C},
                                          {"blk.{}.attn_qkv.bias", L, 3 * C},
                                          {"blk.{}.attn_output.weight", L, C * C},
                                          {"blk.{}.attn_output.bias", L, C},
                                          {"blk.{}.ffn_norm.weight", L, C},
                                          {"blk.{}.ffn_norm.bias", L, C},
                                          {"blk.{}.ffn_up.weight", L, 4 * C * C},
                                          {"blk.{}.ffn_up.bias", L, 4 * C},
                                          {"blk.{}.ffn_down.weight", L, C * 4 * C},
                                          {"blk.{}.ffn_down.bias", L, C},
                                          {"output_norm.weight", 1, C},
                                          {"output_norm.bias", 1, C}};
    for (std::int32_t version : {3, 5}) {
        CAPTURE(version);
        std::string file;
        for (std::int64_t n : {std::int64_t{20240326}, std::int64_t{version}, T, V, L, H, C, padded})
            put(file, static_cast<std::int32_t>(n));
        file.resize(1024);
        // Each number is there once. Of bf16 that is the upper half of a float's bits.
        const auto bits = [](std::int64_t i) { return static_cast<std::uint16_t>(0x3000 + i); };
        const auto value = [&](std::int64_t i) {
            return version == 3 ? static_cast<float>(i) : std::bit_cast<float>(std::uint32_t{bits(i)} << 16);
        };
        std::int64_t at = 0;
        for (const Described& d : order) {
            for (std::int64_t i = 0; i < d.times * d.count; i++, at++)
                version == 3 ? put(file, value(at)) : put(file, bits(at));
            if (d.name == "token_embd.weight")  // rows of zeros, as llm.c pads the vocabulary
                file.append(static_cast<std::size_t>((padded - V) * C * (version == 3 ? 4 : 2)), '\0');
        }
        test::write_text(scratch / "m.bin", file);
        OpenOptions options;
        options.tokenizer = scratch / "words.json";
        const Gguf read = as_gguf(open_llmc(scratch / "m.bin", options));
        const ModelConfig c = read_config_of(read);
        CHECK(c.context == T);
        CHECK(c.heads.at(0) == H);
        CHECK(c.tie_embeddings);
        CHECK(read.tensor("blk.1.ffn_up.weight")->type == (version == 3 ? DType::f32 : DType::bf16));
        CHECK(read.tensor("blk.1.ffn_up.weight")->shape == Shape(4 * C, C));
        check_values(read, order, value);
        SinkOptions sink;
        sink.existing = Existing::replace;
        write_llmc(read, scratch / "again.bin", sink);
        CHECK(test::read_text(scratch / "again.bin") == file);
        file[4 * 7] = 4;  // the padded vocabulary
        test::write_text(scratch / "n.bin", file);
        CHECK(
            test::has(refused(scratch / "n.bin", options), "padded vocabulary: expected at least 5, got 4"));
    }
}

TEST_CASE("llm.c's checkpoint takes the tokenizer that lies beside it, in every command, or is refused") {
    test::Scratch scratch;
    test::FamilyFile file = test::family_file("gpt2-tied");
    file.ffn = 4 * file.width;
    test::write_family_file(file, scratch / "m.gguf");
    write_llmc(Gguf(scratch / "m.gguf"), scratch / "m.bin", {});
    CHECK(test::has(refused(scratch / "m.bin"),
                    "expected tokenizer.gguf, tokenizer.json or tokenizer.model beside it, got none"));
    write_letters_json(scratch / "tokenizer.json", 5);
    CHECK(test::has(refused(scratch / "m.bin"), "tokenizer.json: expected 256 tokens, as many as"));
    fs::copy_file(scratch / "m.gguf", scratch / "tokenizer.gguf");  // comes before tokenizer.json
    CHECK(Model::open(scratch / "m.bin")->tokenizer().size() == 256);
}

TEST_CASE("a GPT-2 goes to llm.c's checkpoint and back, in f32 and bf16, its vocabulary padded") {
    test::Scratch scratch;
    test::FamilyFile file = test::family_file("gpt2-tied");
    file.ffn = 4 * file.width;
    test::write_family_file(file, scratch / "m.gguf");
    const Gguf before(scratch / "m.gguf");
    for (DType type : {DType::f32, DType::bf16}) {
        CAPTURE(info(type).name);
        SinkOptions options;
        options.type = type, options.existing = Existing::replace;
        write_llmc(before, scratch / "m.bin", options);
        CHECK(model_format(scratch / "m.bin") == ModelFormat::llmc);
        OpenOptions source;
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
        std::string bytes = test::read_text(scratch / "m.bin");
        test::write_text(scratch / "n.bin", bytes.substr(0, bytes.size() - 4));
        CHECK(test::has(refused(scratch / "n.bin", source), "as the header says"));
        std::string deep = bytes;
        deep[17] = 8;  // 2048 layers more
        test::write_text(scratch / "n.bin", deep);
        CHECK(test::has(refused(scratch / "n.bin", source), "expected at least "));
        bytes[4] = 4;
        test::write_text(scratch / "n.bin", bytes);
        CHECK(test::has(refused(scratch / "n.bin", source), "version: expected 3 (f32) or 5 (bf16), got 4"));
    }
    for (const char* other : {"qwen3", "llama-biases"}) {
        test::write_family_file(test::family_file(other), scratch / "o.gguf");
        const Gguf gguf(scratch / "o.gguf");
        CHECK_THROWS_AS(write_llama2c(gguf, tokenizer_from_gguf(gguf), scratch / "o.bin", {}), Error);
        CHECK_THROWS_AS(write_llmc(gguf, scratch / "o.bin", {}), Error);
        CHECK(!fs::exists(scratch / "o.bin"));
    }
}
