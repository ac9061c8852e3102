// Adapters as PEFT's folders have them: there and back, and against the weights that a folder has.
#include "model/convert/peft.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "model/adapter_support.h"
#include "model/encoder_files.h"
#include "model/family_files.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::vector<float> floats(const Safetensors& file, const std::string& name) {
    const SafetensorsTensor* t = file.tensor(name);
    REQUIRE_MESSAGE(t, name);
    const auto* values = reinterpret_cast<const float*>(t->bytes.data());
    return {values, values + t->bytes.size() / sizeof(float)};
}

/// A model of the family "llama" with grouped heads, made in a second.
const std::string& llama_model() {
    static Scratch folder;
    static const std::string path = [] {
        write_text(folder / "text", counting_text());
        const Outcome made = run_linnet({"train",
                                         "--data",
                                         folder / "text",
                                         "--out",
                                         folder / "out",
                                         "--steps",
                                         "1",
                                         "--threads",
                                         "1",
                                         "--set",
                                         "model.width=16",
                                         "--set",
                                         "model.layers=2",
                                         "--set",
                                         "model.heads=2",
                                         "--set",
                                         "model.kv_heads=1",
                                         "--set",
                                         "model.ffn.width=24",
                                         "--set",
                                         "train.sample_tokens=0"});
        if (made.exit != 0) throw std::runtime_error(made.err);
        return folder / "out/model.gguf";
    }();
    return path;
}

std::string refusal(const std::string& folder, const Model& base) {
    return test::refusal([&] { open_adapter({folder, 1}, base); });
}

}  // namespace

TEST_CASE(
    "an adapter goes to PEFT's folder and back with the same bytes, and changes the folder's weights as it "
    "changes GGUF's") {
    struct Case {
        std::string model, module;
        bool transposed;
    };
    for (const Case& c : {Case{llama_model(), "model.layers.1.self_attn.q_proj", false},
                          Case{llama_model(), "model.layers.1.self_attn.k_proj", false},
                          Case{llama_model(), "model.layers.0.mlp.down_proj", false},
                          Case{tiny_model(), "transformer.h.0.attn.c_attn", true}}) {
        CAPTURE(c.module);
        Scratch s;
        std::shared_ptr<const Model> base = Model::open(c.model);
        const Adapter adapter = random_adapter(*base, 3, 0.5, 5);
        const std::string there = s / "a.gguf", folder = s / "peft", back = s / "back.gguf";
        save_adapter(there, base->architecture().name, adapter.shape.targets, adapter.pairs, 1.5, "a", {});
        CHECK(run_linnet({"convert", there, folder, "--base", c.model}).exit == 0);
        CHECK(run_linnet({"convert", folder, back, "--base", c.model}).exit == 0);
        const Gguf one(there), two(back);
        CHECK(one.tensors().size() == two.tensors().size());
        CHECK(two.number("adapter.lora.alpha") == 1.5);
        for (const GgufTensor& t : one.tensors()) {
            const GgufTensor* same = two.tensor(t.name);
            REQUIRE(same);
            CHECK(std::equal(t.bytes.begin(), t.bytes.end(), same->bytes.begin(), same->bytes.end()));
        }
        const auto config = nlohmann::json::parse(read_text(folder + "/adapter_config.json"));
        CHECK(config["r"] == 3);
        CHECK(config["fan_in_fan_out"] == c.transposed);
        // W of the merged model's folder less W of the base's is alpha / r · B A of PEFT's, in its order.
        CHECK(run_linnet({"merge", "-m", c.model, "--lora", folder, "-o", s / "merged.gguf"}).exit == 0);
        CHECK(run_linnet({"convert", c.model, s / "plain"}).exit == 0);
        CHECK(run_linnet({"convert", s / "merged.gguf", s / "changed"}).exit == 0);
        const std::vector<float> before = floats(Safetensors::open(s / "plain/model.safetensors"),
                                                 c.module + ".weight"),
                                 after = floats(Safetensors::open(s / "changed/model.safetensors"),
                                                c.module + ".weight");
        const Safetensors peft = Safetensors::open(folder + "/adapter_model.safetensors");
        const std::vector<float> a = floats(peft, "base_model.model." + c.module + ".lora_A.weight"),
                                 b = floats(peft, "base_model.model." + c.module + ".lora_B.weight");
        const std::size_t columns = a.size() / 3, rows = b.size() / 3;
        REQUIRE(before.size() == rows * columns);
        double most = 0, change = 0;
        for (std::size_t r = 0; r < rows; r++)
            for (std::size_t col = 0; col < columns; col++) {
                double product = 0;
                for (std::size_t k = 0; k < 3; k++) product += 0.5 * b[r * 3 + k] * a[k * columns + col];
                const std::size_t at = c.transposed ? col * rows + r : r * columns + col;
                most = std::max(most, std::fabs(after[at] - before[at] - product));
                change = std::max(change, std::fabs(product));
            }
        CHECK(change > 0.1);
        CHECK(most < 1e-5);
    }
}

TEST_CASE(
    "adapters of several ranks and scales, of some layers, come back from PEFT's folder as the same "
    "changes") {
    // internlm2 has apart in GGUF what its class has as one matrix; phi2 the other way round.
    for (const std::string family : {"llama-grouped", "internlm2", "phi2"}) {
        CAPTURE(family);
        Scratch s;
        write_family_file(family_file(family), s / "m.gguf");
        const std::shared_ptr<const Model> base = Model::open(s / "m.gguf");
        Adapter adapter = random_adapter(*base, 2, 0.5, 5);
        const Adapter other = random_adapter(*base, 3, 2, 6);
        for (std::size_t t = 0; t < adapter.pairs.size(); t += 2)
            adapter.shape.targets[t] = other.shape.targets[t], adapter.pairs[t] = other.pairs[t];
        const std::string last = adapter.shape.targets.back().tensor;
        adapter.shape.targets.pop_back(), adapter.pairs.pop_back();
        write_peft_folder(adapter, *base, s / "f", Existing::keep);
        const auto config = nlohmann::json::parse(read_text(s / "f/adapter_config.json"));
        CHECK(!config["rank_pattern"].empty());
        // A module's last name stands for all of that name; of the tensor that is left out the others have
        // whole ones.
        std::size_t whole = 0;
        for (const auto& [tensor, module] : peft_modules(adapter, *base)) {
            const auto names = config["target_modules"].get<std::vector<std::string>>();
            const bool is_named = std::ranges::find(names, module) != names.end();
            const bool by_last =
                std::ranges::find(names, module.substr(module.rfind('.') + 1)) != names.end();
            CHECK(is_named != by_last);
            whole += is_named;
        }
        CHECK(whole == 2);
        const Adapter back = open_adapter({s / "f", 1}, *base);
        REQUIRE(back.pairs.size() == adapter.pairs.size());
        for (std::size_t t = 0; t < back.pairs.size(); t++) {
            const AdapterTarget &was = adapter.shape.targets[t], &now = back.shape.targets[t];
            CHECK(now.tensor == was.tensor);
            CHECK(now.tensor != last);
            const std::int64_t rows = adapter.pairs[t].b.shape.dim[0],
                               columns = adapter.pairs[t].a.shape.dim[1];
            REQUIRE(back.pairs[t].b.shape.dim[0] == rows);
            auto change = [&](const Adapter& of, const AdapterTarget& target, std::int64_t r,
                              std::int64_t c) {
                double sum = 0;
                for (std::int64_t k = 0; k < target.rank; k++)
                    sum += of.pairs[t].b.as<float>()[r * target.rank + k] *
                           of.pairs[t].a.as<float>()[k * columns + c];
                return target.scale * sum;
            };
            double most = 0;
            for (std::int64_t r = 0; r < rows; r++)
                for (std::int64_t c = 0; c < columns; c++)
                    most = std::max(most, std::fabs(change(back, now, r, c) - change(adapter, was, r, c)));
            CHECK(most < 1e-5);
        }
    }
}

TEST_CASE(
    "an encoder's adapter has the names of its bare class, and is read with those of a class with a head") {
    for (const EncoderFile& file : encoder_files()) {
        if (file.name != "bert-mean") continue;
        Scratch s;
        write_encoder_file(file, s / "m.gguf");
        const std::shared_ptr<const Model> base = Model::open(s / "m.gguf");
        write_peft_folder(random_adapter(*base, 2, 1, 5), *base, s / "a", Existing::keep);
        CHECK(nlohmann::json::parse(read_text(s / "a/adapter_config.json"))["task_type"] ==
              "FEATURE_EXTRACTION");
        const std::string path = s / "a/adapter_model.safetensors", start = "base_model.model.";
        SafetensorsWriter headed;
        {
            const Safetensors bare = Safetensors::open(path);
            CHECK(bare.tensor(start + "encoder.layer.0.attention.self.query.lora_A.weight"));
            for (const SafetensorsTensor& t : bare.tensors())
                headed.add_tensor(
                    start + "bert." + std::string(t.name.substr(start.size())), DType::f32, t.shape,
                    [bytes = std::vector<std::byte>(t.bytes.begin(), t.bytes.end())](
                        const SafetensorsWriter::Sink& sink) { sink(bytes.data(), bytes.size()); });
        }
        const Adapter own = open_adapter({s / "a", 1}, *base);
        std::filesystem::remove(path);
        headed.write(s / "a", "adapter_model");
        const Adapter other = open_adapter({s / "a", 1}, *base);
        REQUIRE(own.pairs.size() == other.pairs.size());
        CHECK(own.pairs[0].a.as<float>()[0] == other.pairs[0].a.as<float>()[0]);
    }
}

TEST_CASE("PEFT folders that are no plain LoRA, or another model's, are refused in one line") {
    Scratch s;
    std::shared_ptr<const Model> base = Model::open(llama_model());
    const Adapter adapter = random_adapter(*base, 2, 1, 5);
    write_peft_folder(adapter, *base, s / "a", Existing::keep);
    CHECK(refusal(s / "a", *base) == "accepted");
    const auto good = nlohmann::json::parse(read_text(s / "a/adapter_config.json"));
    auto with = [&](const nlohmann::json& change) {
        auto config = good;
        config.merge_patch(change);
        write_text(s / "a/adapter_config.json", config.dump());
        return refusal(s / "a", *base);
    };
    CHECK(has(with({{"peft_type", "IA3"}}), "peft_type: expected LORA, got \"IA3\""));
    CHECK(has(with({{"use_dora", true}}), "use_dora: expected false, got true"));
    CHECK(has(with({{"bias", "all"}}), "bias: expected \"none\""));
    CHECK(has(with({{"init_lora_weights", "pissa"}}), "init_lora_weights: expected true, got \"pissa\""));
    CHECK(
        has(with({{"alora_invocation_tokens", {1, 2}}}), "alora_invocation_tokens: expected [], got [1,2]"));
    CHECK(with({{"init_lora_weights", "gaussian"}}) == "accepted");
    CHECK(has(with({{"lora_alpha", nullptr}}), "lora_alpha: expected a number, got none"));
    for (const double alpha : {1e308, -1e39, 1e-60})  // which no f32 of an adapter's GGUF file can be
        CHECK(has(with({{"lora_alpha", alpha}}), "lora_alpha: expected a finite number of 32 bits, got "));
    CHECK(has(with({{"alpha_pattern", {{"q_proj", 3}}}}), "alpha_pattern: expected {}"));
    CHECK(with({{"use_rslora", true}}) == "accepted");
    CHECK(open_adapter({s / "a", 1}, *base).shape.targets[0].scale == doctest::Approx(2 / std::sqrt(2.0)));
    CHECK(with({{"lora_alpha", 0}}) == "accepted");  // it changes nothing
    const Adapter still = open_adapter({s / "a", 1}, *base);
    for (const AdapterPair& pair : still.pairs)
        for (std::int64_t i = 0; i < pair.b.shape.count(); i++) REQUIRE(std::isfinite(pair.b.as<float>()[i]));
    CHECK(still.shape.targets[0].scale == 0);
    write_text(s / "a/adapter_config.json", good.dump());
    CHECK(has(refusal(s / "a", *Model::open(tiny_model())),
              "lora_A.weight: expected lora_A or lora_B of a linear layer"));
}
