// Hugging Face folders of every family: read as what the GGUF file of the same weights is, and written back.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/error.h"
#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "model/convert/family_folders.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/huggingface/config.h"
#include "support.h"

using namespace linnet;

namespace {

using test::logits_of;

void same_tensors(const std::string& a, const std::string& b) {
    const Safetensors one = Safetensors::open(a + "/model.safetensors"),
                      other = Safetensors::open(b + "/model.safetensors");
    for (const SafetensorsTensor& t : one.tensors()) {
        if (t.name.ends_with(".attn.bias")) continue;  // GPT-2's mask, which means nothing
        std::string name = t.name;
        const SafetensorsTensor* same = other.tensor(name);
        if (!same) same = other.tensor("transformer." + name);
        CAPTURE(name);
        REQUIRE(same);
        CHECK(same->type == t.type);
        CHECK(same->shape == t.shape);
        CHECK(std::ranges::equal(same->bytes, t.bytes));
    }
}

void convert_to_gguf(const std::string& folder, const std::string& path) {
    write_gguf(open_folder(folder, {}), path, Existing::replace, [](double, double) {});
}

}  // namespace

TEST_CASE(
    "a folder of every family gives the logits of the GGUF file with its weights, bit for bit, and goes "
    "there and back") {
    test::Scratch scratch;
    std::set<std::string> seen;
    for (const test::FamilyFile& file : test::folder_files()) {
        const std::string gguf = scratch / "m.gguf", folder = scratch / "hf-" + file.name;
        test::write_family_file(file, gguf);
        const test::PlainFolder plain = test::family_folder(file, gguf);
        if (plain.tensors.empty()) continue;
        CAPTURE(file.name);
        seen.insert(plain.config.value("model_type", ""));
        test::write_plain_folder(plain, folder);
        try {
            const std::vector<float> expected = logits_of(gguf);
            CHECK(logits_of(folder) == expected);
            convert_to_gguf(folder, scratch / "c.gguf");
            CHECK(logits_of(scratch / "c.gguf") == expected);
            write_folder(Gguf(scratch / "c.gguf"), nullptr, scratch / "back-" + file.name, {});
            same_tensors(folder, scratch / "back-" + file.name);
            CHECK(nlohmann::json::parse(test::read_text(scratch / "back-" + file.name + "/config.json")) ==
                  nlohmann::json(plain.config));
            test::check_straight(folder, scratch / "back-" + file.name);
        } catch (const Error& error) {
            FAIL_CHECK(error.what());
        }
    }
    // test_other_folders.cpp has them, but for the last, which is one of granitemoe's, too.
    seen.insert({"bert", "nomic_bert", "t5", "mamba", "mamba2", "jamba", "falcon_mamba", "mistral3", "gemma3",
                 "granitemoeshared"});
    for (const HuggingFaceFamily& family : huggingface_families())
        CHECK_MESSAGE(seen.contains(family.model_type), family.model_type);
}

TEST_CASE("LLaMA 3's scaling of positions is rope_freqs in GGUF, and comes back") {
    test::Scratch scratch;
    const test::FamilyFile& file = test::family_file("llama-grouped");
    const std::string gguf = scratch / "m.gguf", folder = scratch / "f", back = scratch / "back";
    test::write_family_file(file, gguf);
    test::PlainFolder plain = test::family_folder(file, gguf);
    plain.config["rope_scaling"] = {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 64}};
    test::write_plain_folder(plain, folder);
    convert_to_gguf(folder, scratch / "c.gguf");
    const Gguf made(scratch / "c.gguf");
    REQUIRE(made.tensor("rope_freqs.weight"));
    // Pair i has wavelength 2 pi 10000^(i / 8): below 64 / 4 as it is, above 64 / 1 divided by 8.
    std::array<float, 8> factors;
    REQUIRE(made.tensor("rope_freqs.weight")->bytes.size() == sizeof factors);
    std::memcpy(factors.data(), made.tensor("rope_freqs.weight")->bytes.data(), sizeof factors);
    CHECK(factors[0] == 1);
    CHECK((factors[1] > 1 && factors[1] < 8));
    CHECK(factors[7] == 8);
    CHECK(logits_of(folder) == logits_of(scratch / "c.gguf"));
    CHECK(logits_of(folder) != logits_of(gguf));
    write_folder(made, nullptr, back, {});
    same_tensors(folder, back);
    CHECK(nlohmann::json::parse(test::read_text(back + "/config.json")) == nlohmann::json(plain.config));
}

TEST_CASE("a GGUF file of every family goes out as a folder that gives the same logits") {
    test::Scratch scratch;
    // Settings that no class of transformers has, and architectures that have no section "huggingface".
    const std::set<std::string> without = {"llama-qkv-biases",
                                           "llama-factors",
                                           "granite-biases",
                                           "bloom",
                                           "bloom-odd-heads",
                                           "granite-without-positions",
                                           "bloom-wide-heads",
                                           "deepseek-scaled",
                                           "gemma2-biases",
                                           "granitemoe-finetuned",
                                           "llama-one-bias",
                                           "olmo2-biases",
                                           "exaone",

                                           "exaone-tied",
                                           "cohere2-half",
                                           "gemma2-marks",
                                           "gemma3-marks",
                                           "gemma3-third",
                                           "granite-longrope",
                                           "minicpm-experts",
                                           "olmo3",
                                           "olmo3-yarn",
                                           "internlm2-biases",
                                           "refact"};
    const std::set<std::string> unknown = {"rwkv6", "rwkv7"};
    const std::set<std::string> scans = {"mamba", "mamba2", "jamba"};  // not log(exp(x)), to the bit
    std::set<std::string> gone;
    for (const test::FamilyFile& file : test::folder_files()) {
        const std::string gguf = scratch / "m.gguf";
        test::write_family_file(file, gguf);
        CAPTURE(file.name);
        if (!folder_class(Gguf(gguf))) {
            if (!unknown.contains(file.arch)) gone.insert(file.name);
            CHECK_THROWS_AS(write_folder(Gguf(gguf), nullptr, scratch / "none", {}), Error);
            continue;
        }
        const std::string folder = scratch / file.name;
        write_folder(Gguf(gguf), nullptr, folder, {});
        if (!scans.contains(file.arch)) CHECK(logits_of(folder) == logits_of(gguf));
    }
    for (const std::string& name : gone) CHECK_MESSAGE(without.contains(name), name);
    for (const std::string& name : without) CHECK_MESSAGE(gone.contains(name), name);
}

TEST_CASE("a model whose vocabulary is characters goes out as a folder and comes back the same") {
    test::Scratch scratch;
    const Gguf model(test::tiny_model());
    REQUIRE(tokenizer_from_gguf(model)->kind() == "char");
    write_folder(model, nullptr, scratch / "folder", {});
    const ModelSource source = open_folder(scratch / "folder", {});
    CHECK(!source.tokenizer);  // GGUF has a name for it
    convert_to_gguf(scratch / "folder", scratch / "back.gguf");
    const Gguf back(scratch / "back.gguf");
    const auto before = tokenizer_from_gguf(model), after = tokenizer_from_gguf(back);
    CHECK(after->kind() == "char");
    CHECK(after->encode(test::counting_text()) == before->encode(test::counting_text()));
    for (const auto& [key, value] : model.values())
        if (const auto& name = key; name.starts_with("tokenizer."))
            CHECK_MESSAGE(back.find(name) != nullptr, name);
    REQUIRE(back.tensors().size() == model.tensors().size());
    for (const GgufTensor& t : model.tensors()) {
        REQUIRE(back.tensor(t.name));
        CHECK(std::ranges::equal(back.tensor(t.name)->bytes, t.bytes));
    }
}
