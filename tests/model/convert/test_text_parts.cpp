// Folders of models of more than text: their text part is a model of its own.
#include <doctest/doctest.h>

#include <algorithm>

#include "formats/safetensors.h"
#include "model/convert/family_folders.h"
#include "model/convert/open.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/model.h"
#include "support.h"

using namespace linnet;

namespace {

/// The folder of a text model as part of one that sees. `newer`: as transformers name tensors from 4.52 on.
test::PlainFolder around(const test::PlainFolder& text, const char* type, bool newer) {
    test::PlainFolder whole;
    whole.config = {{"architectures", {"XForConditionalGeneration"}}, {"model_type", type}};
    whole.config["text_config"] = text.config, whole.config["vision_config"] = {{"model_type", "x"}};
    whole.config["torch_dtype"] = "float32", whole.config["image_token_index"] = 10;
    whole.config["text_config"].erase("architectures"), whole.config["text_config"].erase("torch_dtype");
    for (const auto& [name, tensor] : text.tensors) {
        std::string own = "language_model." + name;
        if (newer) own = name.starts_with("model.") ? "model.language_model." + name.substr(6) : name;
        whole.tensors[own] = tensor;
    }
    const std::string before = newer ? "model." : "";
    whole.tensors[before + "vision_tower.patch_conv.weight"] = {{2, 3}, {1, 2, 3, 4, 5, 6}};
    whole.tensors[before + "multi_modal_projector.linear_1.weight"] = {{2, 2}, {1, 2, 3, 4}};
    return whole;
}

/// The GGUF file and the folder of a text model: of mistral3's file as Mistral's class has it.
test::PlainFolder text_model(const std::string& type, const std::string& gguf) {
    test::FamilyFile file = test::family_file(type.c_str());
    if (type == "mistral3") file.arch = "llama", file.keys = {{"attention.sliding_window", 16U}};
    test::write_family_file(file, gguf);
    test::PlainFolder folder = test::family_folder(file, gguf);
    if (type == "mistral3") folder.config["sliding_window"] = nullptr;
    return folder;
}

}  // namespace

TEST_CASE(
    "the text part of a folder that sees is the GGUF file with its weights, and goes back as a text model") {
    test::Scratch scratch;
    for (const auto& [type, newer] :
         {std::pair("mistral3", false), {"mistral3", true}, {"gemma3", false}, {"gemma3", true}}) {
        const test::PlainFolder text = text_model(type, scratch / "m.gguf");
        const auto& of_type = type;
        CAPTURE(of_type);
        const auto& of_newer = newer;
        CAPTURE(of_newer);
        const std::vector<float> expected = test::logits_of(scratch / "m.gguf");
        const std::string folder = scratch / (type + std::string(newer ? "-newer" : "")),
                          back = folder + "-back";
        write_plain_folder(around(text, type, newer), folder);
        CHECK(test::logits_of(folder) == expected);
        const ModelSource source = open_folder(folder, {});
        const std::string left_out =
            std::string("2 tensors of ") + type + " that are no part of its text model are left out";
        CHECK(std::ranges::any_of(source.notes,
                                  [&](const auto& note) { return test::has(note, left_out.c_str()); }));
        write_gguf(source, scratch / "c.gguf", Existing::replace, [](double, double) {});
        CHECK(test::logits_of(scratch / "c.gguf") == expected);
        write_folder(Gguf(scratch / "c.gguf"), nullptr, back, {});
        CHECK(nlohmann::json::parse(test::read_text(back + "/config.json")) == nlohmann::json(text.config));
        const Safetensors tensors = Safetensors::open(back + "/model.safetensors");
        CHECK(tensors.tensors().size() == text.tensors.size());
        for (const auto& [name, tensor] : text.tensors) {
            const auto& of_name = name;
            CAPTURE(of_name);
            const SafetensorsTensor* found = tensors.tensor(name);
            REQUIRE(found);
            CHECK(std::ranges::equal(found->bytes, std::as_bytes(std::span(tensor.values))));
        }
    }
}

TEST_CASE("a GGUF file of mistral3 goes out as Mistral's class") {
    test::Scratch scratch;
    test::write_family_file(test::family_file("mistral3"), scratch / "m.gguf");
    CHECK(folder_class(Gguf(scratch / "m.gguf")) == "MistralForCausalLM");
}

TEST_CASE("a folder whose text part is unknown is refused by its type") {
    test::Scratch scratch;
    test::PlainFolder whole = around(text_model("mistral3", scratch / "m.gguf"), "mistral3", false);
    const auto refused = [&] {
        write_plain_folder(whole, scratch / "f");
        return test::refusal([&] { Model::open(scratch / "f"); });
    };
    const auto says = [](const std::string& all, const char* part) {
        CHECK_MESSAGE(test::has(all, part), all);
    };
    whole.config["text_config"]["model_type"] = "ministral3";
    says(refused(), "config.json: text_config.model_type: expected one of arcee, ");
    says(refused(), "got 'ministral3'");
    whole.config["text_config"]["model_type"] = "mistral3";
    says(refused(), "text_config.model_type: expected a model of text, got 'mistral3'");
    whole.config["text_config"]["model_type"] = "mistral", whole.config["text_config"]["hidden_act"] = "gelu";
    says(refused(), "config.json: text_config: hidden_act: expected \"silu\"");
    whole.config.erase("text_config");
    says(refused(), "config.json: text_config: expected an object, got no such key");
}
