// Folders and checkpoints that cannot be right are refused in one line, with nothing written.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "model/convert/family_folders.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/huggingface/generation_config.h"
#include "model/model.h"
#include "support.h"

using namespace linnet;

namespace {

namespace fs = std::filesystem;

/// How a folder is refused; "" where it is opened.
std::string refused(const std::string& path) {
    try {
        Model::open(path);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        return error.what();
    }
    return "";
}

struct Damage {
    test::Scratch scratch;
    test::PlainFolder plain;
    int count = 0;

    explicit Damage(const std::string& name) {
        const test::FamilyFile& file = test::family_file(name);
        test::write_family_file(file, scratch / "m.gguf");
        plain = test::family_folder(file, scratch / "m.gguf");
        REQUIRE(!plain.tensors.empty());
    }
    /// The folder with one thing changed.
    template <class Change>
    std::string with(const Change& change) {
        test::PlainFolder copy = plain;
        change(copy);
        const std::string path = scratch / std::to_string(count++);
        test::write_plain_folder(copy, path);
        return path;
    }
    template <class Change>
    void says(const std::string& part, const Change& change) {
        const std::string line = refused(with(change));
        CHECK_MESSAGE(test::has(line, part), line << " lacks " << part);
    }
};

using Folder = test::PlainFolder;

/// The file's other values, and its tensors.
void add_rest(GgufWriter& out, const Gguf& file, const std::function<bool(const std::string&)>& left_out) {
    for (std::size_t i = 0; i < file.values().size(); i++)
        if (const std::string key(file.values()[i].first); !left_out(key))
            out.add_stored(key, file.stored_value(i));
    for (const GgufTensor& t : file.tensors())
        out.add_tensor(std::string(t.name), t.type, t.shape,
                       [&t](const GgufWriter::Sink& sink) { sink(t.bytes.data(), t.bytes.size()); });
}

/// The weights, each in its type: f32 or f64.
void write_tensors(const Folder& plain, const std::string& path,
                   const std::function<DType(const std::string&)>& type_of) {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : plain.tensors) {
        Shape shape;
        shape.rank = static_cast<int>(tensor.shape.size());
        std::ranges::copy(tensor.shape, shape.dim.begin());
        const DType type = type_of(name);
        writer.add_tensor(name, type, shape, [&tensor = tensor, type](const SafetensorsWriter::Sink& sink) {
            const std::vector<double> wide(tensor.values.begin(), tensor.values.end());
            type == DType::f64 ? sink(wide.data(), wide.size() * sizeof(double))
                               : sink(tensor.values.data(), tensor.values.size() * sizeof(float));
        });
    }
    writer.write(path, "model");
}

}  // namespace

TEST_CASE("a config.json without a key, of an unknown family or against the tensors is refused by name") {
    Damage d("llama-grouped");
    CHECK(refused(d.with([](Folder&) {})).empty());
    for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                            "max_position_embeddings", "model_type"})
        d.says(std::string("config.json: ") + key + ": expected", [&](Folder& f) { f.config.erase(key); });
    d.says("model_type: expected one of arcee, bert, ", [](Folder& f) { f.config["model_type"] = "llama5"; });
    d.says("got 'rwkv6' (its GGUF files are read)", [](Folder& f) { f.config["model_type"] = "rwkv6"; });
    d.says("model_type: expected a string, got 7", [](Folder& f) { f.config["model_type"] = 7; });
    d.says("hidden_size", [](Folder& f) { f.config["hidden_size"] = "wide"; });
    d.says("hidden_size", [](Folder& f) { f.config["hidden_size"] = -64; });
    d.says("expected shape [256, 128], got [256, 64]",
           [](Folder& f) { f.config["hidden_size"] = 128, f.config["head_dim"] = 32; });
    d.says("model.layers.3.", [](Folder& f) { f.config["num_hidden_layers"] = 4; });
    d.says("model.layers.2.input_layernorm.weight: expected a tensor of the family llama",
           [](Folder& f) { f.config["num_hidden_layers"] = 2; });
    d.says("vocab_size: expected 256, as many as the embedding has rows, got 300",
           [](Folder& f) { f.config["vocab_size"] = 300; });
    d.says("rope_type: expected one of default, linear, llama3, yarn, got dynamic", [](Folder& f) {
        f.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
    });
    d.says("low_freq_factor: expected a number, got none", [](Folder& f) {
        f.config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
    });
    d.says("q_proj.bias: expected a tensor, got none", [](Folder& f) { f.config["attention_bias"] = true; });
    d.says("hidden_act: expected \"silu\", got \"gelu\"", [](Folder& f) { f.config["hidden_act"] = "gelu"; });
    d.says("quantization_config", [](Folder& f) { f.config["quantization_config"] = "gptq"; });
}

TEST_CASE("a setting that GGUF has no key for is refused, not lost") {
    Damage d("gemma2");
    CHECK(refused(d.with([](Folder&) {})).empty());
    d.says(
        "query_pre_attn_scalar: expected model.attention.scale 0.0, as in GGUF's family gemma2, got 0.0625",
        [](Folder& f) { f.config["query_pre_attn_scalar"] = 256; });
    Damage n("gemma2-27b");
    n.says("query_pre_attn_scalar: expected model.attention.scale 0.288",
           [](Folder& f) { f.config["query_pre_attn_scalar"] = 32; });
}

TEST_CASE("tensors that are missing, strange or of a type that is no weight's are refused by name") {
    Damage d("mixtral");
    d.says("block_sparse_moe.experts.7.w1.weight: expected a tensor, got none",
           [](Folder& f) { f.tensors.erase("model.layers.1.block_sparse_moe.experts.7.w1.weight"); });
    d.says("experts.8.w1.weight: expected a tensor of the family mixtral, got an unknown one", [](Folder& f) {
        f.tensors["model.layers.1.block_sparse_moe.experts.8.w1.weight"] = {{1}, {0}};
    });
    d.says("model.embed_tokens.weight: expected a tensor",
           [](Folder& f) { f.tensors.erase("model.embed_tokens.weight"); });
    d.says("model.norm.weight: expected shape [64], got [64, 1]", [](Folder& f) {
        f.tensors["model.norm.weight"].shape = {64, 1};
    });
    d.says("model.embed_tokens.weight: expected a matrix, got 1 dimensions",
           [](Folder& f) { f.tensors["model.embed_tokens.weight"].shape = {256 * 64}; });
    d.says("embedding: expected 1 to 2^24 rows, got 33554432", [](Folder& f) {
        f.tensors["model.embed_tokens.weight"] = {{1 << 25, 0}, {}};
    });

    // The same bytes under another type.
    const std::string path = d.with([](Folder&) {});
    const std::string bytes = test::read_text(path + "/model.safetensors");
    std::uint64_t length;
    std::memcpy(&length, bytes.data(), sizeof length);
    const std::string f32 = R"("dtype":"F32","shape":[64])";
    const std::string weights = "expected F32, F16, BF16 or F64, got ";
    for (const auto& [type, says] : {std::pair(R"("dtype":"I32","shape":[64])", weights),
                                     {R"("dtype":"U32","shape":[64])", weights},
                                     {R"("dtype":"I8","shape":[256])", weights},
                                     {R"("dtype":"F8_E4M3","shape":[256])", weights},
                                     {R"("dtype":"F32","shape":[64,1,1,1,1])", "got 5 dimensions"}}) {
        std::string header = bytes.substr(8, length);
        header.replace(header.find(f32), f32.size(), type);
        const std::uint64_t now = header.size();
        test::write_text(
            path + "/model.safetensors",
            std::string(reinterpret_cast<const char*>(&now), sizeof now) + header + bytes.substr(8 + length));
        CHECK_MESSAGE(test::has(refused(path), says), refused(path));
    }
    // Of the matrices that become one tensor all have one type.
    fs::remove(path + "/model.safetensors");
    write_tensors(d.plain, path, [](const std::string& name) {
        return test::has(name, "layers.1.block_sparse_moe.experts.5.w2") ? DType::f64 : DType::f32;
    });
    CHECK(test::has(refused(path), "experts.5.w2.weight: expected F32, as the parts before it, got F64"));
}

TEST_CASE(
    "a folder whose tensors lack the model's prefix is the same model, and tensors of old versions are left "
    "out") {
    Damage d("gpt2-untied");
    const std::string path = d.with([](Folder&) {}), bare = d.with([](Folder&f) {
        constexpr std::string_view prefix = "transformer.";
        std::map<std::string, test::PlainTensor> named;
        for (auto& [name, tensor] : f.tensors)
            named[name.starts_with(prefix) ? name.substr(prefix.size()) : name] = std::move(tensor);
        REQUIRE(named.contains("lm_head.weight"));
        named["h.0.attn.bias"] = named["h.0.attn.masked_bias"] = {{8}, std::vector<float>(8)};
        f.tensors = std::move(named);
    });
    CHECK(test::logits_of(path) == test::logits_of(bare));
    d.says("h.0.attn.other: expected a tensor of the family gpt2", [](Folder& f) {
        f.tensors["transformer.h.0.attn.masked_bias"] = {{1}, {0}};
        f.tensors["h.0.attn.other"] = {{1}, {0}};
    });
}

TEST_CASE("F64 tensors are narrowed, and it is said") {
    Damage d("llama-grouped");
    const std::string path = d.with([](Folder&) {});
    const Gguf narrow = as_gguf(open_folder(path, {}));
    fs::remove(path + "/model.safetensors");
    write_tensors(d.plain, path, [](const std::string&) { return DType::f64; });
    const ModelSource source = open_folder(path, {});
    REQUIRE(source.notes.size() == 1);
    CHECK(test::has(source.notes[0], "F64 tensors are narrowed to f32"));
    const Gguf made = as_gguf(source);
    for (const GgufTensor& t : narrow.tensors()) {
        CAPTURE(t.name);
        REQUIRE(made.tensor(t.name));
        CHECK(std::ranges::equal(made.tensor(t.name)->bytes, t.bytes));
    }
}

TEST_CASE("a folder without weights, with pickles, or with a tokenizer of another size is refused or said") {
    Damage d("llama-grouped");
    std::string path = d.with([](Folder&) {});
    test::write_text(path + "/pytorch_model.bin", "PK\x03\x04");
    const ModelSource both = open_folder(path, {});
    REQUIRE(both.notes.size() == 1);
    CHECK(test::has(both.notes[0], "PyTorch's weights are there, too; the safetensors are read"));
    fs::remove(path + "/model.safetensors");
    CHECK(test::has(refused(path), "got PyTorch's weights (pickles execute code"));
    fs::remove(path + "/pytorch_model.bin");
    CHECK(
        test::has(refused(path), "expected model.safetensors or model.safetensors.index.json, got neither"));
    CHECK(test::has(refused(d.scratch.path), "expected a model: a folder with config.json and safetensors"));
    for (const char* begin : {"PK\x03\x04", "\x80\x02", "\x80\x05"}) {
        test::write_text(d.scratch / "x.pth", begin + std::string(" pickle"));
        CHECK(test::has(refused(d.scratch / "x.pth"), "got PyTorch's weights (pickles execute code"));
    }

    path = d.with([](Folder&) {});
    fs::remove(path + "/tokenizer.json");
    CHECK(test::has(refused(path), "expected tokenizer.json or tokenizer.model, got neither"));
    path = d.with([](Folder&) {});
    std::string words = test::read_text(path + "/tokenizer.json");
    words.replace(words.find("\"added_tokens\": []"), 18,
                  R"("added_tokens": [{"id": 256, "content": "<more>", "special": true}])");
    test::write_text(path + "/tokenizer.json", words);
    CHECK(
        test::has(refused(path), "expected at most 256 tokens, as many as the embedding has rows, got 257"));
    test::write_text(path + "/config.json", "{\"model_type\": \"llama\",");
    CHECK(test::has(refused(path), "config.json"));
}

TEST_CASE("damaged files beside the weights are refused in one line that names file and place") {
    struct Row {
        std::string file, text, says;
    };
    constexpr const char* settings = "tokenizer_config.json";
    constexpr const char* generation = "generation_config.json";
    constexpr const char* chat = "chat_template.jinja";
    constexpr const char* pieces = "tokenizer.model";
    const Row rows[] = {
        {settings, "", "line 1, column 1: expected"},
        {settings, R"({"bos_token": "a")", "line 1, column 18: expected"},
        {settings, "[]", "expected"},
        {settings, "\xFF", "expected"},
        {settings, R"({"bos_token": "a", "bos_token": "b"})", "expected every key once"},
        {settings, R"({"bos_token": 7})", "bos_token: expected a string, got a number"},
        {settings, R"({"eos_token": {"id": 7}})", "eos_token.content: expected a string, got null"},
        {settings, R"({"add_bos_token": "yes"})", "add_bos_token: expected a boolean, got a string"},
        {settings, R"({"chat_template": 7})", "chat_template: expected an array, got a number"},
        {settings, R"({"chat_template": [{"name": "default"}]})",
         "chat_template[0].template: expected a string, got null"},
        {generation, "", "expected"},
        {generation, R"({"eos_token_id": 2)", "line 1, column 19: expected"},
        {generation, "7", "expected"},
        {generation, R"({"eos_token_id": "</s>"})", "eos_token_id: expected"},
        {generation, R"({"eos_token_id": -1})", "eos_token_id: expected"},
        {generation, R"({"eos_token_id": [2, 1.5]})", "eos_token_id[1]: expected"},
        {generation, R"({"eos_token_id": [2, 256]})", "eos_token_id: expected ids below 256, got 256"},
        {generation, R"({"temperature": "hot"})", R"(temperature: expected a number of 32 bits, got "hot")"},
        {generation, R"({"top_p": 1e300})", "top_p: expected a number of 32 bits, got 1e+300"},
        {generation, R"({"top_k": 1.5})", "top_k: expected a whole number of 32 bits, got 1.5"},
        {generation, R"({"top_k": 2147483648})", "top_k: expected a whole number of 32 bits"},
        {chat, "{{ x }}\xC3", "byte 7: expected UTF-8"},
        {pieces, "", "expected"},
        {pieces, "no model", "expected"},
        {pieces, "\n\x0E\n\x05<unk>\x15", "expected"},
    };
    Damage d("llama-grouped");
    for (const Row& row : rows) {
        CAPTURE(row.file);
        CAPTURE(row.text);
        const std::string path = d.with([](Folder&) {}), line = path + "/" + row.file + ": ";
        if (row.file == pieces) fs::remove(path + "/tokenizer.json");
        test::write_text(path + "/" + row.file, row.text);
        const std::string error = refused(path);
        CHECK_MESSAGE(error.starts_with(line), error);
        CHECK_MESSAGE(test::has(error, row.says), error);
    }
    for (const char* file : {settings, generation, chat, "tokenizer.json"}) {
        const std::string path = d.with([](Folder&) {});
        fs::remove(path + "/" + file);
        fs::create_directory(path + "/" + file);
        CHECK_MESSAGE(test::has(refused(path), path + "/" + file + ": "), refused(path));
    }
}

TEST_CASE("a folder opens as transformers leaves it: no largest length, an index of older parts") {
    Damage d("llama-grouped");
    const std::string path = d.with([](Folder&) {});
    test::write_text(path + "/tokenizer_config.json",
                     R"({"model_max_length": 1000000000000000019884624838656})");
    test::write_text(path + "/model.safetensors.index.json", R"({"weight_map": {"a": "gone.safetensors"}})");
    CHECK(refused(path) == "");
}

TEST_CASE("sampling values go into GGUF's keys and come back with all of generation_config.json") {
    Damage d("llama-grouped");
    const std::string path = d.with([](Folder&) {});
    const std::string text =
        R"({"bos_token_id": 1, "do_sample": true, "eos_token_id": [35, 9, 8, 7], "max_length": 4096,
            "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": null, "repetition_penalty": 1.05,
            "transformers_version": "4.51.0"})";
    test::write_text(path + "/generation_config.json", text);
    write_gguf(open_folder(path, {}), d.scratch / "g.gguf", Existing::replace, [](double, double) {});
    const Gguf file(d.scratch / "g.gguf");
    CHECK(file.number("general.sampling.temp") == 0.6F);
    CHECK(file.integer("general.sampling.top_k") == 20);
    CHECK(file.number("general.sampling.top_p") == 0.95F);
    CHECK(file.number("general.sampling.penalty_repeat") == 1.05F);
    CHECK(!file.find("general.sampling.min_p"));
    write_folder(file, nullptr, d.scratch / "back", {});
    CHECK(nlohmann::json::parse(test::read_text(d.scratch / "back/generation_config.json")) ==
          nlohmann::json::parse(text));
    // Of a file that another program wrote or changed: what was kept is damaged, or says other values.
    auto made = [&](const char* kept, bool damaged) {
        GgufWriter other;
        other.add("linnet.huggingface.generation_config", kept);
        if (damaged) other.add("general.sampling.top_k", NAN);
        add_rest(other, file, [&](const std::string& key) {
            return key.starts_with("linnet.") || (damaged && key == "general.sampling.top_k");
        });
        other.write(d.scratch / "o.gguf", Existing::replace);
        SinkOptions over;
        over.existing = Existing::replace;
        write_folder(Gguf(d.scratch / "o.gguf"), nullptr, d.scratch / "made", over);
        return nlohmann::json::parse(test::read_text(d.scratch / "made/generation_config.json"));
    };
    nlohmann::json expected =
        nlohmann::json::parse(R"({"eos_token_id": [35, 9, 8], "temperature": 0.6, "top_k": 20, "top_p": 0.95,
                                  "repetition_penalty": 1.05, "do_sample": true})");
    CHECK(made(R"({"temperature": )", false) == expected);
    for (const char* other :
         {R"({"temperature": 0.9, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05})",
          R"({"temperature": "hot", "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05})",
          R"({"temperature": 1e300, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05})",
          R"({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1, "repetition_penalty": 1.05})"})
        CHECK(made(other, false) == expected);
    expected.erase("top_k");
    CHECK(made("{}", true) == expected);
    // One token may end a text, a turn and a message.
    SpecialIds special;
    special.eos = special.eot = special.eom = 2;
    CHECK(generation_config(Gguf(test::tiny_model()), special)["eos_token_id"] == 2);
    GgufWriter none;
    CHECK(test::refusal([&] { add_generation_config(none, "[]", "g"); }) ==
          "g: expected an object, got array");
    // Read again in its order, each member costs as much as all before it; numbers may become longer.
    const std::string long_value = R"({"x": ")" + std::string(65536, 'x') + R"("})";
    CHECK(test::refusal([&] { add_generation_config(none, long_value, "g"); }) ==
          "g: expected at most 65536 bytes, got " + std::to_string(long_value.size()));
    std::string numbers = "[1e9";
    for (int i = 0; i < 10000; i++) numbers += ",1e9";
    numbers = R"({"x": )" + numbers + "]}";
    REQUIRE(numbers.size() < 65536);
    CHECK(test::has(test::refusal([&] { add_generation_config(none, numbers, "g"); }),
                    "g: expected at most 65536 bytes, got "));
}

TEST_CASE("a kept config.json that is not the model's, or damaged, is left for one that is made") {
    Damage d("llama-grouped");
    const nlohmann::json scaling = {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 8192}};
    const std::string path = d.with([&](Folder& f) {
        f.config["rope_scaling"] = scaling, f.config["dtype"] = "float32", f.config["marked"] = 7;
        f.config["rope_theta"] = 500000.0;
    });
    write_gguf(open_folder(path, {}), d.scratch / "g.gguf", Existing::replace, [](double, double) {});
    const Gguf file(d.scratch / "g.gguf");
    constexpr const char* key = "linnet.huggingface.config";
    const nlohmann::json kept = nlohmann::json::parse(*file.string(key));
    auto written = [&](const std::string& text) {
        GgufWriter other;
        other.add(key, std::string_view(text));
        add_rest(other, file, [&](const std::string& one) { return one == key; });
        other.write(d.scratch / "o.gguf", Existing::replace);
        SinkOptions over;
        over.existing = Existing::replace;
        write_folder(Gguf(d.scratch / "o.gguf"), nullptr, d.scratch / "made", over);
        test::write_text(d.scratch / "made/modelcard.md", "mine");
        const auto config = nlohmann::json::parse(test::read_text(d.scratch / "made/config.json"));
        CHECK(config["rope_scaling"]["factor"] == 8.0);
        return config.contains("marked");
    };
    CHECK(written(kept.dump()));
    for (const char* change :
         {R"({"rms_norm_eps": 0.5})", R"({"rope_scaling": null})", R"({"rope_scaling": {"factor": 4.0}})",
          R"({"hidden_size": "wide"})", R"({"model_type": "nothing"})"}) {
        CAPTURE(change);
        nlohmann::json changed = kept;
        changed.merge_patch(nlohmann::json::parse(change));
        CHECK(!written(changed.dump()));
    }
    CHECK(!written("{"));
    CHECK(test::read_text(d.scratch / "made/modelcard.md") == "mine");
}

TEST_CASE(
    "a smaller vocabulary is filled, roles come from the files beside it, and the chat template goes along") {
    Damage d("llama-grouped");
    const std::string path = d.with([](Folder&) {});
    std::string words = test::read_text(path + "/tokenizer.json");
    const std::size_t last = words.find(", \"\xC5\x83\": 255");
    const std::size_t comma = words.rfind(", \"", words.find(": 255}"));
    CHECK((last == words.npos || comma == last));
    words.erase(comma, words.find(": 255}") + 5 - comma);
    test::write_text(path + "/tokenizer.json", words);
    test::write_text(path + "/tokenizer_config.json",
                     R"({"bos_token": {"content": "!"}, "eos_token": "#", "add_bos_token": true,
                         "chat_template": [{"name": "tool", "template": "T"}, {"name": "default", "template": "{{ x }}"}]})");
    test::write_text(path + "/generation_config.json", R"({"eos_token_id": [35, 9]})");
    const auto model = Model::open(path);
    CHECK(model->tokenizer().size() == 256);
    CHECK(model->tokenizer().piece(255) == "[PAD255]");
    CHECK(model->tokenizer().bos() == 33);
    CHECK(model->tokenizer().eos() == 35);
    CHECK(model->tokenizer().add_bos());
    CHECK(model->tokenizer().is_end(9));
    CHECK(model->file()->string("tokenizer.chat_template") == "{{ x }}");
    write_folder(*model->file(), nullptr, d.scratch / "out", {});
    const auto settings = nlohmann::json::parse(test::read_text(d.scratch / "out/tokenizer_config.json"));
    CHECK(settings["chat_template"] == "{{ x }}");
    CHECK(settings["eos_token"] == "#");
    CHECK(nlohmann::json::parse(test::read_text(d.scratch / "out/generation_config.json"))["eos_token_id"] ==
          nlohmann::json({35, 9}));
}

TEST_CASE("tensors of a folder that lie as GGUF has them are bound where they are mapped") {
    Damage d("qwen2-untied");
    const std::string path = d.with([](Folder&) {});
    const ModelSource source = open_folder(path, {});
    std::size_t in_place = 0;
    for (const SourceTensor& t : source.tensors) in_place += !t.in_place.empty();
    CHECK(in_place == source.tensors.size());  // all of f32: vectors, too
    Damage l("llama-grouped");
    for (const SourceTensor& t : open_folder(l.with([](Folder&) {}), {}).tensors)
        CHECK(t.in_place.empty() == (test::has(t.name, "attn_q.") || test::has(t.name, "attn_k.")));
}

TEST_CASE("weights in f16, bf16 and f64, in parts, are read as what they are") {
    Damage d("llama-grouped");
    const std::string path = d.with([](Folder&) {});
    for (DType type : {DType::f16, DType::bf16}) {
        CAPTURE(info(type).name);
        const std::string gguf = d.scratch / "h.gguf", folder = d.scratch / std::string(info(type).name);
        write_gguf(open_folder(path, {type, ""}), gguf, Existing::replace, [](double, double) {});
        CHECK(Gguf(gguf).tensor("blk.0.attn_q.weight")->type == type);
        CHECK(Gguf(gguf).tensor("blk.0.attn_norm.weight")->type == DType::f32);
        SinkOptions parts;
        parts.max_part = 50000;
        write_folder(Gguf(gguf), nullptr, folder, parts);
        const Safetensors file = Safetensors::open(folder + "/model.safetensors.index.json");
        CHECK(file.tensor("model.layers.0.self_attn.q_proj.weight")->type->type == type);
        const Gguf there(gguf), seen = open_model_file(folder);
        // Its vectors are made f32 on the way, and narrow again.
        write_folder(there, nullptr, folder + "-around", {});
        test::check_straight(folder, folder + "-around");
        for (const GgufTensor& t : there.tensors()) {
            const GgufTensor* same = seen.tensor(t.name);
            REQUIRE(same);
            CHECK(std::ranges::equal(same->bytes, t.bytes));
        }
    }
}
