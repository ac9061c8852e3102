// linnet convert, and the commands that open what it wrote: whole commands.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/records.h"
#include "commands/tiny.h"
#include "formats/gguf.h"
#include "model/rewrite.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// A folder with the tiny model in m.gguf and as a Hugging Face folder in `hf`.
struct Converted : Workplace {
    Converted() {
        std::filesystem::copy_file(tiny_model(), s / "m.gguf");
        REQUIRE((*this)("$LINNET convert m.gguf hf").exit == 0);
    }
};

}  // namespace

TEST_CASE("a Hugging Face folder serves every command as the file does") {
    Converted place;
    const char* const commands[] = {
        "generate -m $M -p one -n 12 --seed 3 --temp 0.7 --threads 1",
        "eval -m $M --file text --ctx 32 --windows 4 --threads 1",
        "inspect logits -m $M -p one --top 3 --threads 1",
        "tokenize -t $M -p 'one two'",
        "quantize $M q.gguf --type f16 --overwrite",
        "train --from $M --data text --threads 1 --steps 2 --set train.sequence=32 --out run --overwrite",
        "finetune -m $M --data text --threads 1 --steps 2 --set train.sequence=32 --out run --overwrite",
    };
    for (const std::string command : commands) {
        CAPTURE(command);
        const Outcome file = place("M=m.gguf; $LINNET " + command),
                      folder = place("M=hf; $LINNET " + command);
        CHECK_MESSAGE(file.exit == 0, file.err);
        CHECK_MESSAGE(folder.exit == 0, folder.err);
        CHECK(folder.out == file.out);
    }
    CHECK(has(place("$LINNET inspect hf").out, "token_embd.weight"));
    CHECK(place("$LINNET bench -m hf -p 4 -n 4 -r 1").exit == 0);
}

TEST_CASE("what a folder has beside its weights is said on stderr, by every command that opens it") {
    Converted place;
    write_text(place.s / "hf/pytorch_model.bin", "PK\x03\x04");
    for (const char* command : {"generate -m hf -p one -n 2", "inspect hf", "convert hf again.gguf"})
        CHECK(has(place(std::string("$LINNET ") + command).err, "PyTorch's weights are there, too"));
}

TEST_CASE("what convert says that it wrote does not count the other files of a folder") {
    Converted place;
    const std::string alone = place("$LINNET convert m.gguf alone").err;
    std::filesystem::create_directories(place.s / "shared/more");
    write_text(place.s / "shared/more/photo", std::string(1000000, 'x'));
    write_text(place.s / "shared/notes", std::string(1000000, 'x'));
    for (const char* more : {"", " --overwrite"}) {
        const Outcome made = place(std::string("$LINNET convert m.gguf shared") + more);
        CHECK_MESSAGE(made.exit == 0, made.err);
        CHECK(made.err.substr(made.err.find(',')) == alone.substr(alone.find(',')));
    }
    CHECK(std::filesystem::file_size(place.s / "shared/notes") == 1000000);
}

TEST_CASE("convert says what became of which tensor, writes parts, and refuses pickles with nothing left") {
    Converted place;
    CHECK(has(place("$LINNET convert hf v.gguf --verbose").err, " -> blk.0.attn_q"));
    CHECK(place("$LINNET convert m.gguf parts --max-part 0.004M").exit == 0);
    CHECK(std::filesystem::exists(place.s / "parts/model.safetensors.index.json"));
    CHECK(place("$LINNET eval -m parts --file text --ctx 32 --windows 2").out ==
          place("$LINNET eval -m m.gguf --file text --ctx 32 --windows 2").out);
    CHECK(place("$LINNET convert m.gguf kilo --max-part 4K && diff -r parts kilo").exit == 0);
    CHECK(place("$LINNET convert m.gguf bare --max-part 4000 && diff -r parts bare").exit == 0);
    for (const char* size : {"4X", "0", "0.1"}) {
        const Outcome refused = place(std::string("$LINNET convert m.gguf no --max-part ") + size);
        CHECK(refused.exit == 2);
        CHECK_MESSAGE(has(refused.err, "--max-part: expected a size, such as 512M or 4G"), refused.err);
    }
    for (const char* begin : {"PK\x03\x04", "\x80\x04"}) {
        write_text(place.s / "x.pth", begin + std::string(" weights"));
        for (const char* command : {"convert x.pth y", "generate -m x.pth -p one"}) {
            const Outcome refused = place(std::string("$LINNET ") + command);
            CHECK(refused.exit == 3);
            CHECK(has(refused.err, "x.pth: expected GGUF, a folder with safetensors"));
            CHECK(has(refused.err, "got PyTorch's weights (pickles execute code"));
        }
        CHECK(!std::filesystem::exists(place.s / "y"));
    }
    // An adapter of PEFT's that was saved the old way.
    CHECK(place("mkdir old && echo '{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8}' > "
                "old/adapter_config.json && touch old/adapter_model.bin")
              .exit == 0);
    const Outcome adapter = place("$LINNET generate -m m.gguf --lora old -p one");
    CHECK(adapter.exit == 3);
    CHECK(has(adapter.err, "old: expected adapter_model.safetensors, got PyTorch's weights"));
}

TEST_CASE("what is no other format is refused as GGUF, and GGUF as that already") {
    Converted place;
    write_text(place.s / "garbage", "no model at all, but some text");
    const Outcome garbage = place("$LINNET convert garbage o.gguf");
    CHECK(garbage.exit == 3);
    CHECK_MESSAGE(has(garbage.err, "magic: expected 'GGUF'"), garbage.err);
    const Outcome twice = place("$LINNET convert m.gguf o.gguf");
    CHECK(twice.exit == 2);
    CHECK_MESSAGE(has(twice.err, "got GGUF twice"), twice.err);
}

TEST_CASE("a GGUF whose embedding has other rows than its vocabulary has tokens becomes nothing") {
    Converted place;
    const Gguf file(place.s / "m.gguf");
    GgufWriter out;
    copy_metadata(file, out, [](std::string_view) { return false; });
    for (const GgufTensor& t : file.tensors()) {
        std::vector<std::byte> bytes(t.bytes.begin(), t.bytes.end());
        Shape shape = t.shape;
        if (t.name == "token_embd.weight" || t.name == "output.weight") {
            bytes.resize(bytes.size() / static_cast<std::size_t>(shape.dim[0]) *
                         static_cast<std::size_t>(shape.dim[0] + 1));
            shape.dim[0]++;
        }
        out.add_tensor(std::string(t.name), t.type, shape,
                       [bytes](const GgufWriter::Sink& sink) { sink(bytes.data(), bytes.size()); });
    }
    out.write(place.s / "more.gguf");
    for (const char* command :
         {"convert more.gguf o", "convert more.gguf o.bin", "generate -m more.gguf -p x"}) {
        CAPTURE(command);
        const Outcome refused = place(std::string("$LINNET ") + command);
        CHECK(refused.exit == 3);
        CHECK(is_one_error_line(refused.err));
        CHECK_MESSAGE(has(refused.err, "more.gguf: token_embd.weight: expected "), refused.err);
        CHECK_MESSAGE(has(refused.err, "rows, as many as the vocabulary has tokens"), refused.err);
    }
    for (const char* made : {"o", "o.bin"}) CHECK(!std::filesystem::exists(place.s / made));
}

TEST_CASE("names out of a folder's files cannot make lines of their own") {
    Converted place;
    auto config = nlohmann::ordered_json::parse(place.file("hf/config.json"));
    config["odd\nlinnet: error: forged"] = 1;
    write_text(place.s / "hf/config.json", config.dump());
    write_text(place.s / "hf/modules.json", R"([{"type": "a.Odd\nlinnet: error: forged too"}])");
    const std::string err = place("$LINNET convert hf o.gguf").err;
    CHECK_MESSAGE(has(err, "odd\\x0alinnet: error: forged"), err);
    CHECK_MESSAGE(has(err, "the module Odd\\x0alinnet: error: forged too is left out"), err);
    CHECK_MESSAGE(!has(err, "\nlinnet: error"), err);
}

TEST_CASE("options that a conversion has no use for are refused, each with the reason") {
    Converted place;
    const char* const adapt =
        "$LINNET finetune -m m.gguf --data text --lora 1 --steps 1 --threads 1 "
        "--set train.sequence=16 --out run && mv run/adapter.gguf a.gguf";
    REQUIRE(place(adapt).exit == 0);
    struct Row {
        const char *arguments, *says;
    };
    constexpr Row rows[] = {
        {"hf o.gguf --max-part 1M",
         "--max-part: expected a model to write as a folder, got a folder to GGUF"},
        {"m.gguf o.bin --max-part 1M",
         "--max-part: expected a model to write as a folder, got GGUF to a checkpoint (safetensors alone"},
        {"a.gguf o --base m.gguf --max-part 1M",
         "--max-part: expected a model to write as a folder, got an adapter to a folder"},
        {"m.gguf o -t m.gguf",
         "--tokenizer: expected a checkpoint of llama2.c or llm.c as IN, got a model (GGUF"},
        {"hf o.gguf -t m.gguf",
         "--tokenizer: expected a checkpoint of llama2.c or llm.c as IN, got a model's folder"},
        {"a.gguf o --base m.gguf -t m.gguf", "--tokenizer: expected a checkpoint of llama2.c or llm.c as IN"},
        {"m.gguf o --base m.gguf", "--base: expected an adapter as IN, got a model (GGUF)"},
        {"hf o.gguf --base m.gguf", "--base: expected an adapter as IN, got a model's folder"},
        {"a.gguf o --base m.gguf --type f16",
         "--type: expected a model as IN, got an adapter (adapters are of f32)"},
        {"m.gguf o --llama2c-version 1",
         "--llama2c-version: expected an OUT that ends in .bin, got GGUF to a"},
        {"a.gguf o --base m.gguf --llama2c-version 1",
         "--llama2c-version: expected an OUT that ends in .bin"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.arguments);
        const Outcome refused = place(std::string("$LINNET convert ") + row.arguments);
        CHECK(refused.exit == 2);
        CHECK(is_one_error_line(refused.err));
        CHECK_MESSAGE(has(refused.err, row.says), refused.err);
        for (const char* out : {"o", "o.gguf", "o.bin"}) CHECK(!std::filesystem::exists(place.s / out));
    }
    // With a use, each is taken.
    CHECK(has(place("$LINNET convert a.gguf peft --base m.gguf --verbose").err, "attn_qkv.weight -> "));
    CHECK(has(place("$LINNET convert peft b.gguf --base m.gguf --verbose").err, " -> blk.0.attn_qkv.weight"));
    // A folder is a model's or an adapter's.
    struct Foreign {
        const char *line, *says;
    };
    for (const Foreign& row :
         {Foreign{"a.gguf hf --base m.gguf", "hf: expected a folder without config.json"},
          {"m.gguf peft", "peft: expected a folder without adapter_config.json"}})
        for (const char* overwrite : {"", " --overwrite"}) {
            const Outcome refused = place(std::string("$LINNET convert ") + row.line + overwrite);
            CHECK(refused.exit == 2);
            CHECK(is_one_error_line(refused.err));
            CHECK_MESSAGE(has(refused.err, row.says), refused.err);
        }
    CHECK(place("$LINNET convert m.gguf o.bin --type f32 && $LINNET convert o.bin o -t m.gguf --max-part 4k")
              .exit == 2);
    CHECK(place("$LINNET convert o.bin o -t m.gguf --max-part 0.01M").exit == 0);
}

TEST_CASE(
    "a tokenizer that GGUF has no name for keeps a model out of GGUF, in every command that writes it") {
    Workplace place;
    write_text(place.s / "config", tiny_config());
    REQUIRE(
        place("$LINNET tokenizer train --vocab-size 270 -o t.json text && $LINNET train config --data text "
              "--out run --steps 1 --threads 1 --set tokenizer.kind=file --set tokenizer.file=t.json && "
              "$LINNET convert run hf && $LINNET finetune -m hf --data text --lora 1 --steps 1 --threads 1 "
              "--set train.sequence=16 --out lora")
            .exit == 0);
    auto words = nlohmann::ordered_json::parse(place.file("hf/tokenizer.json"));
    words["pre_tokenizer"] = nlohmann::ordered_json::parse(R"({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "[a-z]+| [a-z]"}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})");
    write_text(place.s / "hf/tokenizer.json", words.dump());
    const char* const refused[] = {
        "convert hf o.gguf",
        "quantize hf o.gguf --type q8_0",
        "merge -m hf --lora lora/adapter.gguf -o o.gguf",
        "finetune -m hf --data text --steps 1 --threads 1 --set train.sequence=16 --out o",
        "train --from hf --data text --steps 1 --threads 1 --set train.sequence=16 --out o",
    };
    for (const std::string command : refused) {
        CAPTURE(command);
        const Outcome outcome = place("$LINNET " + command);
        CHECK(outcome.exit == 3);
        CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
        CHECK(has(outcome.err, "hf: tokenizer: GGUF: expected a tokenizer that GGUF has a name for"));
        CHECK(!std::filesystem::exists(place.s / "o.gguf"));
        CHECK(!std::filesystem::exists(place.s / "o/model.gguf"));
    }
    // What writes no tokenizer has no use for the name.
    const char* const accepted[] = {
        "convert hf other",
        "generate -m hf -p one -n 2 --threads 1",
        "finetune -m hf --data text --lora 1 --steps 1 --threads 1 --set train.sequence=16 --out again",
    };
    for (const std::string command : accepted) {
        const Outcome outcome = place("$LINNET " + command);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    }
    CHECK(nlohmann::json::parse(place.file("other/tokenizer.json"))["pre_tokenizer"] ==
          nlohmann::json(words["pre_tokenizer"]));
}

TEST_CASE("a GPT-2 as llm.c's checkpoint is the model that its GGUF is: its loss, and training from it") {
    Workplace place;
    write_text(place.s / "gpt2.json",
               R"({"model": {"context": 32, "width": 16, "layers": 2, "heads": 2,
                             "ffn": {"width": 64, "activation": "gelu-tanh"}, "norm": {"kind": "layer"},
                             "position": {"kind": "learned"}, "attention": {"bias": true}, "tie_embeddings": true},
                   "tokenizer": {"kind": "char"},
                   "train": {"batch": 4, "steps": 20, "eval_every": 20, "eval_batches": 2, "sample_tokens": 0,
                             "optimizer": {"lr": 0.01}, "schedule": {"warmup": 2}}})");
    const Outcome trained = place(
        "$LINNET train gpt2.json --data text --out made --threads 1 && "
        "cp made/model.gguf x.gguf && $LINNET convert x.gguf llmc/x.bin && "
        "$LINNET convert llmc/x.bin back.gguf --tokenizer x.gguf");
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    // llm.c's files have no vocabulary: it lies beside them.
    const Outcome without = place("$LINNET eval -m llmc/x.bin --file text");
    CHECK(without.exit == 3);
    CHECK(is_one_error_line(without.err));
    REQUIRE(place("$LINNET convert x.gguf hf && cp hf/tokenizer.json llmc").exit == 0);
    std::string losses[3], logs[3];
    const char* const models[] = {"x.gguf", "back.gguf", "llmc/x.bin"};
    for (int i = 0; i < 3; i++) {
        const std::string model = models[i], run = "run" + std::to_string(i);
        CAPTURE(model);
        const Outcome loss = place("$LINNET eval -m " + model + " --file text --ctx 32 --threads 1");
        REQUIRE_MESSAGE(loss.exit == 0, loss.err);
        losses[i] = loss.out;
        const Outcome more = place("$LINNET train gpt2.json --from " + model + " --data text --out " + run +
                                   " --steps 6 --threads 1");
        REQUIRE_MESSAGE(more.exit == 0, more.err);
        for (const nlohmann::json& line : records(place.file(run + "/log.jsonl"), "step"))
            logs[i] += line["step"].dump() + " " + line["loss"].dump() + "\n";
    }
    CHECK(has(losses[0], "nll "));
    CHECK(losses[1] == losses[0]);
    CHECK(losses[2] == losses[0]);
    CHECK(std::ranges::count(logs[0], '\n') >= 6);
    CHECK(logs[1] == logs[0]);
    CHECK(logs[2] == logs[0]);
}

TEST_CASE("a T5 trained here answers from its folder as from its GGUF, and is measured the same") {
    Workplace place;
    std::string pairs;
    for (int i = 0; i < 200; i++)
        pairs += std::to_string(i) + "\tnumber " + std::to_string(i * 7 % 13) + "\n";
    write_text(place.s / "data.tsv", pairs);
    write_text(place.s / "t5.json",
               R"({"model": {"kind": "encoder-decoder", "context": 48, "width": 32, "layers": 2, "heads": 2,
                             "norm": {"kind": "rms"}, "position": {"kind": "none"},
                             "attention": {"bias": false, "scale": 1, "buckets": 8},
                             "ffn": {"width": 48, "gated": true, "activation": "gelu-tanh", "bias": false}},
                   "tokenizer": {"kind": "char"},
                   "train": {"batch": 16, "steps": 30, "eval_every": 30, "eval_batches": 2, "sample_tokens": 4,
                             "optimizer": {"lr": 0.01}, "schedule": {"warmup": 5}}})");
    const Outcome trained = place("$LINNET train t5.json --data data.tsv --out run --save hf --threads 1");
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    CHECK(has(place.file("run/hf/config.json"), "T5ForConditionalGeneration"));
    REQUIRE(place("$LINNET convert run/hf back.gguf").exit == 0);
    const Outcome beams = place("$LINNET generate -m run -p 12 --beams 3 --stop e");
    CHECK(beams.exit == 2);
    CHECK_MESSAGE(has(beams.err, "--beams: expected 1 beside --samples"), beams.err);
    CHECK(
        has(place("$LINNET eval -m run --file data.tsv --ctx 2").err, "at most 2 tokens, the context, got "));
    CHECK(has(place("$LINNET generate -m run -p 12 --temp 0 -n 20").out, "number"));
    for (const std::string command :
         {"generate -m $M -p 12 --temp 0 -n 20", "generate -m $M -p 105 --temp 1 --seed 5 -n 20",
          "generate -m $M -p 77 --beams 3 -n 20 --json", "eval -m $M --file data.tsv --windows 40"}) {
        CAPTURE(command);
        const Outcome file = place("M=run/model.gguf; $LINNET --threads 1 " + command);
        REQUIRE_MESSAGE(file.exit == 0, file.err);
        CHECK(!file.out.empty());
        for (const char* model : {"run/hf", "back.gguf"})
            CHECK(place(std::string("M=") + model + "; $LINNET --threads 1 " + command).out == file.out);
    }
}
