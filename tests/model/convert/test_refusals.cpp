// Checkpoints, adapters and what lies in folders: each row is one that cannot be, and the line said of it.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "model/adapter_support.h"
#include "model/convert/family_folders.h"
#include "model/convert/open.h"
#include "model/convert/peft.h"
#include "model/convert/sinks.h"
#include "model/model.h"
#include "support.h"

using namespace linnet;
using namespace std::string_literals;
using test::refusal;
using test::Scratch;
using test::write_text;

namespace {

namespace fs = std::filesystem;

std::string integers(const std::vector<std::int32_t>& n) {
    return {reinterpret_cast<const char*>(n.data()), n.size() * sizeof(std::int32_t)};
}

/// The line without the folder before the file's name.
std::string named(const std::string& folder, const std::function<void()>& act) {
    const std::string line = refusal(act);
    return line.starts_with(folder + "/") ? line.substr(folder.size() + 1) : line;
}

constexpr std::int32_t llmc = 20240326, llama2c = 0x616b3432;

}  // namespace

TEST_CASE("a checkpoint whose header cannot be is refused by the number in it") {
    Scratch s;
    struct Row {
        ModelFormat format;
        std::vector<std::int32_t> header;
        std::string says;
    };
    const auto c = ModelFormat::llmc, two = ModelFormat::llama2c;
    const std::string ours = " (is it a checkpoint of llm.c?)", theirs = " (is it a checkpoint of llama2.c?)";
    const Row rows[] = {
        {c, {llmc}, "header: expected 8 bytes, got 4 (is the file truncated?)"},
        {c, {llmc, 3, 8}, "header: expected 16 bytes, got 12 (is the file truncated?)"},
        {c, {llmc, 3, 0, 5, 1, 1, 4, 8}, "context: expected 1 to 2^24, got 0" + ours},
        {c, {llmc, 3, 8, 1 << 25, 1, 1, 4, 8}, "vocabulary: expected 1 to 2^24, got 33554432" + ours},
        {c, {llmc, 3, 8, 5, 5000, 1, 4, 8}, "layers: expected at most 4096, got 5000"},
        {c, {llmc, 3, 8, 5, 1, 3, 4, 8}, "model.heads: expected a divisor of width (4), got 3"},
        {two, {8, 16, 1, 2}, "header: expected 20 bytes, got 16 (is the file truncated?)"},
        {two, {0, 16, 1, 2, 2, 8, 4}, "width: expected 1 to 2^24, got 0" + theirs},
        {two, {8, 1 << 25, 1, 2, 2, 8, 4}, "feed-forward width: expected 1 to 2^24, got 33554432" + theirs},
        {two, {8, 16, 1, 2, 2, INT32_MIN, 4}, "vocabulary: expected 1 to 2^24, got -2147483648" + theirs},
        {two, {8, 16, 5000, 2, 2, -8, 4}, "layers: expected at most 4096, got 5000"},
        {two, {8, 16, 1, 2, 3, 8, 4}, "model.kv_heads: expected a divisor of heads (2), got 3"},
    };
    for (const Row& row : rows) {
        write_text(s / "m.bin", integers(row.header));
        CHECK(named(s.path, [&] { open_source(s / "m.bin", row.format); }) == "m.bin: " + row.says);
    }
}

TEST_CASE("a file's first bytes and its name say which format it has") {
    Scratch s;
    const std::vector<std::int32_t> small = {8, 16, 1, 2, 2, 8, 4};
    auto with = [&](std::size_t i, std::int32_t n) {
        std::vector<std::int32_t> changed = small;
        changed[i] = n;
        return integers(changed);
    };
    struct Row {
        std::string file, bytes;
        ModelFormat format;
    };
    const Row rows[] = {
        {"m", "GGUF", ModelFormat::gguf},
        {"m", integers({llmc}), ModelFormat::llmc},
        {"m", integers({llama2c}), ModelFormat::llama2c},
        {"m", integers(small), ModelFormat::gguf},  // nothing says what it is
        {"m.bin", integers(small), ModelFormat::llama2c},
        {"m.bin", with(5, -8), ModelFormat::llama2c},
        {"m.bin", with(5, INT32_MIN), ModelFormat::gguf},
        {"m.bin", with(0, -8), ModelFormat::gguf},
        {"m.bin", with(2, 0), ModelFormat::gguf},
        {"m.bin", with(6, 1 << 25), ModelFormat::gguf},
        {"m.bin", "short", ModelFormat::gguf},
        {"m.bin", "", ModelFormat::gguf},
        {"m", "\x80", ModelFormat::gguf},
        {"m", "\x80\x01", ModelFormat::gguf},
        {"m", "\x80\x06", ModelFormat::gguf},
    };
    for (const Row& row : rows) {
        write_text(s / row.file, row.bytes);
        CHECK(model_format(s / row.file) == row.format);
    }
    write_text(s / "m.safetensors", "x");
    CHECK(named(s.path, [&] { model_format(s / "m.safetensors"); }) ==
          "m.safetensors: expected a folder with config.json, or GGUF, got weights alone (name the folder)");
}

TEST_CASE("an adapter's file that is none, or lacks half of a pair, is refused by key or tensor") {
    Scratch s;
    const std::shared_ptr<const Model> base = Model::open(test::tiny_model());
    const Adapter good = test::random_adapter(*base, 2, 1, 3);
    const std::string target = good.shape.targets[0].tensor;
    struct File {
        std::string type = "lora";
        float alpha = 1;
        bool a = true, b = true;
        DType of_a = DType::f32;
        bool more = false;
    };
    auto says = [&](const File& file) {
        GgufWriter out;
        out.add("general.architecture", base->architecture().name);
        out.add("general.type", "adapter"s);
        if (!file.type.empty()) out.add("adapter.type", file.type);
        out.add("adapter.lora.alpha", file.alpha);
        auto add = [&](const char* suffix, const Tensor& t, DType type) {
            out.add_tensor(target + suffix, type, t.shape, [t](const GgufWriter::Sink& sink) {
                sink(t.data, static_cast<std::size_t>(t.shape.count()) * sizeof(float));
            });
        };
        if (file.a) add(".lora_a", good.pairs[0].a, file.of_a);
        if (file.b) add(".lora_b", good.pairs[0].b, DType::f32);
        if (file.more) add(".lora_c", good.pairs[0].b, DType::f32);
        out.write(s / "a.gguf", Existing::replace);
        return named(s.path, [&] { open_adapter({s / "a.gguf", 1}, *base); });
    };
    CHECK(says({}) == "accepted");
    CHECK(says({.type = "ia3"}) == "a.gguf: adapter.type: expected lora, got ia3");
    CHECK(says({.type = ""}) == "a.gguf: adapter.type: expected lora, got none");
    CHECK(says({.alpha = NAN}) ==
          "a.gguf: adapter.lora.alpha: expected a finite number of 32 bits, got another");
    CHECK(says({.b = false}) == "a.gguf: " + target + ": expected lora_a and lora_b, got lora_a alone");
    CHECK(says({.a = false}) == "a.gguf: " + target + ": expected lora_a and lora_b, got lora_b alone");
    CHECK(says({.of_a = DType::i32}) == "a.gguf: " + target + ".lora_a: expected weights, got i32");
    CHECK(says({.more = true}) ==
          "a.gguf: " + target + ".lora_c: expected lora_a or lora_b of a linear layer of " + base->path() +
              "'s blocks, got another tensor (made for another model?)");
    CHECK(says({.a = false, .b = false}) == "a.gguf: expected lora_a and lora_b of some tensors, got none");
    CHECK(refusal([&] {
              open_adapter({test::tiny_model(), 1}, *base);
          }) == test::tiny_model() + ": general.type: expected adapter, got none");
    CHECK(test::has(refusal([&] { choose_targets(*base, "nothing", INT64_MAX, "t"); }),
                    "t: expected names of linear layers, such as "));
    CHECK(refusal([&] { choose_targets(*base, "", 0, "t"); }) ==
          "t: expected linear layers to adapt, got none");
    CHECK(choose_targets(*base, target, INT64_MAX, "t").size() == 1);
    for (const AdapterTarget& one : choose_targets(*base, "attn_*", INT64_MAX, "t"))
        CHECK_MESSAGE(one.tensor.starts_with("blk.0.attn_"), one.tensor);
}

TEST_CASE("a PEFT folder whose config or tensors cannot be is refused by key or tensor") {
    Scratch s;
    const std::shared_ptr<const Model> base = Model::open(test::tiny_model());
    write_peft_folder(test::random_adapter(*base, 2, 1, 3), *base, s / "good", Existing::keep);
    const std::string config = test::read_text(s / "good/adapter_config.json");
    const Safetensors file = Safetensors::open(s / "good/adapter_model.safetensors");
    const std::string module = "base_model.model.transformer.h.0.attn.c_attn";
    const std::string lora_a = module + ".lora_A.weight", lora_b = module + ".lora_B.weight";
    REQUIRE(file.tensor(lora_a));
    REQUIRE(file.tensor(lora_b));
    /// The folder with one tensor changed: its name ("": left out), shape and type; the others kept or not,
    /// and one more ("": none).
    auto with = [&](const std::string& which, const std::string& name, std::vector<std::int64_t> shape,
                    DType type, bool others = true, const std::string& more = "") {
        fs::create_directories(s / "f");
        write_text(s / "f/adapter_config.json", config);
        SafetensorsWriter out;
        auto add = [&](const std::string& called, DType of, Shape now) {
            out.add_tensor(called, of, now, [now, of](const SafetensorsWriter::Sink& sink) {
                const auto bytes = static_cast<std::size_t>(now.count() * info(of).bytes);
                sink(std::vector<char>(bytes).data(), bytes);
            });
        };
        for (const SafetensorsTensor& t : file.tensors()) {
            const bool changes = t.name == which;
            if (changes ? name.empty() : !others) continue;
            Shape now = t.shape;
            if (changes && !shape.empty()) {
                now.rank = static_cast<int>(shape.size());
                std::copy(shape.begin(), shape.end(), now.dim.begin());
            }
            add(changes ? name : std::string(t.name), changes ? type : DType::f32, now);
        }
        if (!more.empty()) add(more, DType::f32, Shape(1, 1));
        out.write(s / "f", "adapter_model");
        return named(s.path, [&] { open_adapter({s / "f", 1}, *base); });
    };
    const std::string weights = "f/adapter_model.safetensors: ",
                      another = ": expected lora_A or lora_B of a linear layer of " + base->path() +
                                "'s blocks, got another tensor (made for another model?)";
    CHECK(with(lora_a, lora_a, {}, DType::f32) == "accepted");
    CHECK(with(lora_a, lora_a, {}, DType::f64) == "accepted");
    CHECK(with(lora_a, "", {}, DType::f32) ==
          weights + module + ": expected lora_A and lora_B, got lora_B alone");
    CHECK(with(lora_b, "", {}, DType::f32) ==
          weights + module + ": expected lora_A and lora_B, got lora_A alone");
    CHECK(test::has(with(lora_a, lora_a, {1, 1}, DType::f32), "got shape [1, 1] (made for another model?)"));
    CHECK(test::has(with(lora_b, lora_b, {1, 2}, DType::f32), "got shape [1, 2] (made for another model?)"));
    CHECK(
        test::has(with(lora_a, lora_a, {1, 1, 1}, DType::f32), "got 3 dimensions (made for another model?)"));
    CHECK(with(lora_a, lora_a, {}, DType::i32) ==
          weights + lora_a + ": expected F32, F16, BF16 or F64, got I32");
    CHECK(with(lora_a, "x", {}, DType::f32, false) == weights + "x" + another);
    CHECK(with(lora_a, lora_a, {}, DType::f32, true, "zero") == weights + "zero" + another);
    CHECK(with(lora_a, "", {}, DType::f32, false) ==
          weights + "expected lora_A and lora_B of some modules, got none");
    const std::pair<std::string, std::string> configs[] = {
        {"[]", "expected a JSON object, got array"},
        {"{}", "peft_type: expected LORA, got null"},
        {R"({"peft_type": "LORA", "lora_alpha": "x"})", "lora_alpha: expected a number, got \"x\""},
        {R"({"peft_type": "LORA", "lora_alpha": 1, "modules_to_save": ["a"]})",
         "modules_to_save: expected [], got [\"a\"] (others are not supported)"},
        {R"({"peft_type": "LORA", "lora_alpha": 1, "trainable_token_indices": [1]})",
         "trainable_token_indices: expected [], got [1] (others are not supported)"},
    };
    for (const auto& [text, line] : configs) {
        write_text(s / "f/adapter_config.json", text);
        CHECK(named(s.path, [&] { open_adapter({s / "f", 1}, *base); }) == "f/adapter_config.json: " + line);
    }
    write_text(s / "f/adapter_config.json", config);
    fs::remove(s / "f/adapter_model.safetensors");
    write_text(s / "f/adapter_model.bin", "PK");
    CHECK(test::has(named(s.path,
                          [&] {
                              open_adapter({s / "f", 1}, *base);
                          }),
                    "f: expected adapter_model.safetensors, got PyTorch's weights (pickles execute code"));
    fs::remove(s / "f/adapter_model.bin");
    const std::string absent = s / "f/adapter_model.safetensors: No such file or directory";
    CHECK_THROWS_WITH_AS(open_adapter({s / "f", 1}, *base), absent.c_str(), Error);
}

TEST_CASE("adapters that no PEFT folder can hold are refused by the model or the tensor") {
    struct Row {
        std::string family, says;
    };
    const Row rows[] = {
        {"rwkv6",
         "expected a model that a family of transformers has, as PEFT's names are theirs, got another"},
        {"mixtral", "expected one matrix in the folder, got several (experts stay in GGUF)"},
        {"qwen2-tied", "accepted"},
    };
    for (const Row& row : rows) {
        Scratch s;
        test::write_family_file(test::family_file(row.family), s / "m.gguf");
        const std::shared_ptr<const Model> base = Model::open(s / "m.gguf");
        const Adapter adapter = test::random_adapter(*base, 2, 1, 3);
        const std::string line = refusal([&] { write_peft_folder(adapter, *base, s / "f", Existing::keep); });
        CHECK_MESSAGE(test::has(line, row.says), line);
        CHECK(fs::exists(s / "f") == (row.says == "accepted"));
    }
}

TEST_CASE("what a folder says beside its model is read, left out with a note, or refused") {
    Scratch s;
    const test::FamilyFile& file = test::family_file("llama-grouped");
    test::write_family_file(file, s / "m.gguf");
    test::PlainFolder plain = test::family_folder(file, s / "m.gguf");
    REQUIRE(!plain.tensors.empty());
    plain.config["new_a"] = "an escaped \" quote, Infinity", plain.config["new_b"] = 1;
    const std::string path = s / "f";
    test::write_plain_folder(plain, path);
    using Notes = std::vector<std::string>;
    const std::string unknown = path + "/config.json: keys that mean nothing here: new_a, new_b";
    CHECK(open_folder(path, {}).notes == Notes{unknown});
    for (const auto& [modules, notes] : {std::pair("{}"s, 0),
                                         {"[7, {}, {\"type\": 7}]"s, 0},
                                         {R"([{"type": "a.Transformer"}, {"type": "b.Pooling"},
                                              {"type": "c.Normalize"}, {"type": "d.Dense"}])"s,
                                          1}}) {
        write_text(path + "/modules.json", modules);
        const Notes all = open_folder(path, {}).notes;
        CHECK(all.size() == static_cast<std::size_t>(notes) + 1);
        if (notes) CHECK(all[0] == path + "/modules.json: the module Dense is left out");
    }

    CHECK(!as_gguf(open_folder(path, {})).string("tokenizer.chat_template"));
    write_text(path + "/tokenizer_config.json", R"({"chat_template": [{"name": "a", "template": "first"},
        {"name": "b", "template": "second"}]})");
    CHECK(std::string(as_gguf(open_folder(path, {})).string("tokenizer.chat_template").value()) == "first");
    write_text(path + "/tokenizer_config.json", R"({"chat_template": "one"})");
    CHECK(std::string(as_gguf(open_folder(path, {})).string("tokenizer.chat_template").value()) == "one");
    write_text(path + "/chat_template.jinja", "file");
    CHECK(std::string(as_gguf(open_folder(path, {})).string("tokenizer.chat_template").value()) == "file");
    fs::create_directories(path + "/1_Pooling");
    write_text(path + "/1_Pooling/config.json", "{");
    CHECK(test::has(named(s.path, [&] { open_folder(path, {}); }), "f/1_Pooling/config.json: line 1"));
    write_text(path + "/1_Pooling/config.json", "{}");
    write_text(path + "/config.json", "[]");
    CHECK(named(s.path, [&] { open_folder(path, {}); }) ==
          "f/config.json: expected a JSON object, got array");
}
