// linnet finetune and merge, generate --lora: whole commands.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/records.h"
#include "commands/tiny.h"
#include "formats/gguf.h"
#include "model/config/config.h"
#include "model/model.h"
#include "model/trace/trace.h"
#include "support.h"
#include "text/chat/template.h"

using namespace linnet;
using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

std::string counting_down() {
    std::string text;
    for (int round = 0; round < 200; round++) text += "ten nine eight seven six five four three two one\n";
    return text;
}

/// A folder with the tiny model in m.gguf, q.gguf (q8_0) and another text in `down`; $TUNE lacks -m and what
/// follows.
struct Place : Workplace {
    Place()
        : Workplace(
              "TUNE=\"$LINNET finetune --data down --threads 1 --set train.steps=30 --set "
              "train.eval_every=10 --set "
              "train.eval_batches=2 --set train.checkpoint_every=10 --set train.batch=8 --set "
              "train.sequence=32 "
              "--set train.sample_tokens=8\"") {
        write_text(s / "down", counting_down());
        fs::copy_file(tiny_model(), s / "m.gguf");
    }
    /// The losses of the run's evaluations.
    std::vector<double> losses(const std::string& out) const {
        std::vector<double> all;
        for (const nlohmann::json& record : records(file(out + "/log.jsonl"), "eval"))
            all.push_back(record["loss"]);
        return all;
    }
    double nll(const std::string& options) const {
        const Outcome told = (*this)("$LINNET eval " + options + " --file down --json --ctx 32 --windows 20");
        REQUIRE_MESSAGE(told.exit == 0, told.err);
        return nlohmann::json::parse(told.out)["nll"];
    }
    std::string tensor(const std::string& name, const std::string& tensor) const {
        const Gguf gguf(s / name);
        const GgufTensor* t = gguf.tensor(tensor);
        REQUIRE(t);
        return {reinterpret_cast<const char*>(t->bytes.data()), t->bytes.size()};
    }
};

}  // namespace

TEST_CASE(
    "a model is trained further, whole: its form and vocabulary, a lower loss; train --from does the same") {
    Place place;
    const Outcome done = place("$TUNE -m m.gguf --save hf --out whole");
    REQUIRE_MESSAGE(done.exit == 0, done.err);
    CHECK(has(done.err, "wrote whole/model.gguf"));
    CHECK(place.nll("-m whole") < place.nll("-m m.gguf") - 0.3);
    CHECK(place.nll("-m whole/hf") == place.nll("-m whole"));
    const auto config = nlohmann::json::parse(place.file("whole/config.json"));
    CHECK(config["finetune"]["model"] == (place.s / "m.gguf"));
    CHECK(config["model"]["width"] == 16);
    CHECK(place("$LINNET train whole/config.json --data down --threads 1 --out again").exit == 0);
    CHECK(place.file("again/model.gguf") == place.file("whole/model.gguf"));
    CHECK(place.file("again/hf/config.json") == place.file("whole/hf/config.json"));  // --save is kept
    CHECK(place("rm -r whole/hf && $LINNET train --resume --out whole --threads 1").exit == 0);
    CHECK(place.file("again/hf/config.json") == place.file("whole/hf/config.json"));
    const Outcome other = place("$LINNET train config --from m.gguf --data down --threads 1 --out x");
    CHECK(other.exit == 4);  // no such config
    write_text(place.s / "config", R"({"model": {"width": 32}})");
    CHECK(has(place("$LINNET train config --from m.gguf --data down --threads 1 --out x").err,
              "config: model.width: expected 16, as m.gguf has it, got 32"));
}

TEST_CASE(
    "only the last layers are trained where that is asked, also drawn anew; the others stay as they lie") {
    Place place;
    REQUIRE(
        place(
            "$LINNET train --data text --threads 1 --steps 5 --set model.width=32 --set model.layers=3 --set "
            "model.heads=4 --set train.sample_tokens=0 --out base && $LINNET quantize base/model.gguf q.gguf "
            "--type q8_0")
            .exit == 0);
    REQUIRE(place("$TUNE -m q.gguf --layers 1 --layer-decay 0.5 --out last").exit == 0);
    CHECK(place.tensor("last/model.gguf", "blk.1.attn_q.weight") ==
          place.tensor("q.gguf", "blk.1.attn_q.weight"));
    CHECK(place.tensor("last/model.gguf", "token_embd.weight") ==
          place.tensor("q.gguf", "token_embd.weight"));
    CHECK(place.tensor("last/model.gguf", "blk.2.attn_q.weight").size() == 32 * 32 * 4);
    CHECK(place.tensor("last/model.gguf", "blk.2.attn_norm.weight") !=
          place.tensor("q.gguf", "blk.2.attn_norm.weight"));
    CHECK(place.tensor("last/model.gguf", "output_norm.weight") !=
          place.tensor("q.gguf", "output_norm.weight"));
    const Outcome anew =
        place("$TUNE -m base --reset-layers 1 --steps 1 --set train.optimizer.lr=0 --out anew");
    REQUIRE_MESSAGE(anew.exit == 0, anew.err);
    CHECK(place.tensor("anew/model.gguf", "blk.1.ffn_up.weight") ==
          place.tensor("base/model.gguf", "blk.1.ffn_up.weight"));
    CHECK(place.tensor("anew/model.gguf", "blk.2.ffn_up.weight") !=
          place.tensor("base/model.gguf", "blk.2.ffn_up.weight"));
    CHECK(has(place("$TUNE -m base --layers 4 --out x").err,
              "finetune.layers: expected at most the model's 3, got 4"));
    CHECK(has(place("$TUNE -m base --lora 2 --reset-layers 1 --out x").err,
              "finetune.reset_layers: expected 0 with an adapter"));
}

TEST_CASE(
    "an adapter learns beside weights that stay, quantized ones too; generate, eval and merge take it") {
    Place place;
    REQUIRE(place("$LINNET quantize m.gguf q.gguf --type q8_0").exit == 0);
    for (const std::string base : {"m.gguf", "q.gguf"}) {
        CAPTURE(base);
        const std::string out = "lora-" + base;
        const Outcome done =
            place("$TUNE -m " + base +
                  " --lora 4 --lora-dropout 0.1 --set train.optimizer.lr=0.02 --save hf --out " + out);
        REQUIRE_MESSAGE(done.exit == 0, done.err);
        CHECK(has(done.err, "of them trained"));
        CHECK_FALSE(fs::exists(place.s / (out + "/model.gguf")));
        const double before = place.nll("-m " + base), after = place.nll("-m " + base + " --lora " + out);
        CHECK(after < before - 0.3);
        CHECK(place.nll("-m " + base + " --lora " + out + "/hf") == after);
        CHECK(place.nll("-m " + base + " --lora " + out + "/adapter.gguf=0") == before);
        CHECK(place.nll("-m " + base + " --lora " + out + "=0.5 --lora " + out + "=0.5") ==
              doctest::Approx(after).epsilon(1e-4));
        CHECK(place("$LINNET generate --quiet --temp 0 -n 8 -p ten -m " + base + " --lora " + out).out !=
              place("$LINNET generate --quiet --temp 0 -n 8 -p ten -m " + base).out);
        const std::string merge = "$LINNET merge -m " + base + " --lora " + out + " -o merged-" + base;
        const Outcome merged = place(merge);
        CHECK(merged.exit == (base == "q.gguf" ? 3 : 0));
        if (base == "q.gguf") {
            CHECK(has(merged.err, "expected f32, f16 or bf16, got q8_0 (--type f16"));
            CHECK(place(merge + " --type f32").exit == 0);
        }
        CHECK(place.nll("-m merged-" + base) ==
              doctest::Approx(after).epsilon(base == "q.gguf" ? 0.02 : 1e-4));
        CHECK(place.tensor("merged-" + base, "token_embd.weight") == place.tensor(base, "token_embd.weight"));
    }
    const Outcome run = place("$LINNET generate -m lora-m.gguf -p x");
    CHECK(run.exit == 3);
    CHECK(has(run.err, "--lora this folder"));
    CHECK(has(place("$TUNE -m m.gguf --lora 4 --targets attn_x --out x").err,
              "finetune.lora.targets: expected names of linear layers"));
}

TEST_CASE("an adapter's run that was killed and resumed ends in the same file; another base is refused") {
    Place place;
    const std::string run =
        "$TUNE -m m.gguf --lora 2 --lora-dropout 0.2 --steps 60 --set train.checkpoint_every=5 --out ";
    REQUIRE(place(run + "whole").exit == 0);
    for (const char* step : {"7", "23", "41"}) {
        place(killed_at(run + "cut 2>/dev/null", std::string("\"step\":") + step + ",", "cut/log.jsonl"));
        const Outcome resumed = place("$LINNET finetune --resume --threads 1 --out cut");
        CHECK_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK(place.file("cut/adapter.gguf") == place.file("whole/adapter.gguf"));
        CHECK(place("cmp cut/checkpoints/step-00000060/optimizer.bin "
                    "whole/checkpoints/step-00000060/optimizer.bin")
                  .exit == 0);
        place("rm -r cut");
    }
    CHECK(place("$LINNET finetune --resume --lora 3 --out whole").exit == 5);
    REQUIRE(place("$LINNET quantize m.gguf q.gguf --type q8_0").exit == 0);
    const Outcome other = place("$LINNET finetune --resume -m q.gguf --out whole");
    CHECK(other.exit == 5);
    CHECK(has(other.err, "finetune.model: expected the model that the run began from"));
}

TEST_CASE("an adapter may change any of a block's matrices alone") {
    Place place;
    REQUIRE(place("$LINNET train --data text --threads 1 --steps 1 --out l").exit == 0);
    for (const char* target : {"attn_q,attn_v", "attn_k", "ffn_up", "ffn_gate", "attn_output"}) {
        const Outcome done = place(
            "$TUNE -m l --lora 2 --steps 2 --set train.precision=f32 --overwrite --out one "
            "--targets " +
            std::string(target));
        CHECK_MESSAGE(done.exit == 0, (std::string(target) + ": " + done.err));
        CHECK(nlohmann::json(place.losses("one").back()).is_number());
    }
}

TEST_CASE("an adapter changes the linear layers of every mixer") {
    Place place;
    for (const std::string& mixer : mixer_names()) {
        CAPTURE(mixer);
        const Outcome made = place(
            "$LINNET train --data down --out m --overwrite --threads 1 --steps 1 "
            "--set tokenizer.kind=char --set model.width=32 --set model.layers=2 --set "
            "model.heads=2 --set model.context=32 --set train.batch=2 --set "
            "train.sample_tokens=0 --set model.mixer=" +
            mixer +
            (mixer == "attention" ? ""
                                  : " --set model.position.kind=none "
                                    "--set model.attention.qk_norm=none"));
        REQUIRE_MESSAGE(made.exit == 0, made.err);
        const Outcome tuned = place("$TUNE -m m --lora 2 --out t --overwrite --steps 2");
        CHECK_MESSAGE(tuned.exit == 0, tuned.err);
        CHECK(place("$LINNET generate -m m --lora t -p ten -n 4").exit == 0);
    }
}

TEST_CASE("a run is not replaced by one that begins from its model") {
    Place place;
    REQUIRE(place("$TUNE -m m.gguf --steps 2 --out run").exit == 0);
    for (const char* line : {"-m run --out run", "-m run --out run/", "-m run/last.gguf --out ./run",
                             "-m run --lora 1 --out run", "-m link.gguf --out run"}) {
        CAPTURE(line);
        place("ln -sf run/model.gguf link.gguf");
        const std::string before = place("find run -type f | sort | xargs sha256sum").out;
        const Outcome refused = place(std::string("$TUNE --steps 2 --overwrite ") + line);
        CHECK(refused.exit == 2);
        CHECK_MESSAGE(has(refused.err, "--out: expected a folder without the model"), refused.err);
        CHECK(place("find run -type f | sort | xargs sha256sum").out == before);
    }
    CHECK(place("$TUNE --steps 2 -m run --out run-2 --overwrite").exit == 0);
}

TEST_CASE("--set names the model, adapters' settings want --lora, and an epoch is all packed examples") {
    Place place;
    const Outcome named = place("$TUNE --set finetune.model=m.gguf --out named --dry-run");
    CHECK(named.exit == 0);
    CHECK(has(
        named.out,
        "parameters " + std::to_string(Model::open(place.s / "m.gguf")->traced().graph.parameter_count())));
    for (const char* option : {"--targets attn_q", "--alpha 4", "--lora-dropout 0.1"}) {
        const Outcome alone = place("$TUNE -m m.gguf --out alone " + std::string(option));
        CHECK(alone.exit == 3);
        CHECK(has(alone.err, "finetune.lora.rank: expected a rank"));
    }
    std::string pairs;  // a long prompt, a short answer: a bin each
    for (int i = 0; i < 64; i++)
        pairs += R"({"prompt": "one two three four five", "completion": "six"})"
                 "\n";
    write_text(place.s / "pairs.jsonl", pairs);
    const Outcome epochs = place(
        "$LINNET finetune -m m.gguf --data pairs.jsonl --threads 1 --epochs 2 --out epochs --dry-run "
        "--set train.batch=8 --set train.sequence=32");
    REQUIRE(epochs.exit == 0);
    const double held = number_of(epochs.out, "validation_tokens"),
                 all = number_of(epochs.out, "train_tokens");
    CHECK(number_of(epochs.out, "steps") >= 2 * 64 * all / (all + held) / 8 - 1);
}

TEST_CASE("the rate that is chosen is of what is trained: the last setting says whether that is an adapter") {
    Place place;
    const auto rate = [&](const std::string& settings) {
        const Outcome tuned = place(
            "$LINNET finetune -m m.gguf --data down --threads 1 --steps 1 --overwrite --out r " + settings);
        REQUIRE_MESSAGE(tuned.exit == 0, tuned.err);
        return nlohmann::json::parse(place.file("r/config.json"))["train"]["optimizer"]["lr"].get<double>();
    };
    const double whole = rate("");
    CHECK(rate("--lora 8") == doctest::Approx(10 * whole));
    CHECK(rate("--set finetune.lora.rank=8 --set finetune.lora.rank=0") == whole);
    CHECK(fs::exists(place.s / "r/model.gguf"));
    CHECK(rate("--set finetune.lora.rank=0 --set finetune.lora.rank=8") == doctest::Approx(10 * whole));
}

TEST_CASE("what is refused of an option is named by its setting, and by no file where there is none") {
    Place place;
    const std::pair<const char*, const char*> rows[] = {
        {"--lora 4 --layers 99", "finetune.layers: expected at most the model's 1, got 99"},
        {"--lora 4 --targets attn_x", "finetune.lora.targets: expected names of linear layers"},
        {"--set train.sequence=64", "train.sequence: expected at most model.context (32), got 64"},
        {"--set model.width=32", "model.width: expected 16, as m.gguf has it, got 32"}};
    for (const auto& [options, said] : rows) {
        CAPTURE(std::string(options));
        const Outcome refused =
            place("$LINNET finetune -m m.gguf --data down --out x " + std::string(options));
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(refused.err.starts_with("linnet: error: " + std::string(said)), refused.err);
    }
}

TEST_CASE("numbers of options are taken as they are written; an alpha of 0 is none") {
    Place place;
    const Outcome tuned =
        place("$TUNE -m m.gguf --steps 1 --out t --lora 02 --alpha .5 --lora-dropout .25 --layer-decay .5");
    REQUIRE_MESSAGE(tuned.exit == 0, tuned.err);
    const auto config = nlohmann::json::parse(place.file("t/config.json"))["finetune"];
    CHECK(config["lora"]["rank"] == 2);
    CHECK(config["lora"]["alpha"] == 0.5);
    CHECK(config["lora"]["dropout"] == 0.25);
    CHECK(config["layer_decay"] == 0.5);
    const Outcome none = place("$TUNE -m m.gguf --steps 1 --out n --lora 2 --alpha 0");
    CHECK(none.exit == 2);
    CHECK_MESSAGE(none.err.starts_with("linnet: error: --alpha: expected a number "), none.err);
}

TEST_CASE("an adapter's rates fall from layer to layer, too") {
    Place place;
    REQUIRE(place("$LINNET train --data text --threads 1 --steps 1 --set model.width=32 --set model.layers=3 "
                  "--set model.heads=4 --set train.sample_tokens=0 --out base")
                .exit == 0);
    REQUIRE(place("$TUNE -m base --lora 2 --layer-decay 0.1 --steps 1 --out t").exit == 0);
    const std::vector<nlohmann::json> blocks = records(place.file("t/log.jsonl"), "blocks");
    REQUIRE(blocks.size() == 1);
    REQUIRE(blocks[0]["names"] == nlohmann::json({"blk.0", "blk.1", "blk.2"}));
    const auto updates = blocks[0]["update"].get<std::vector<double>>();
    for (std::size_t i : {0, 1}) CHECK(updates[i] == doctest::Approx(0.1 * updates[i + 1]).epsilon(0.4));
}

TEST_CASE("a run that was to pass over bad documents does so when it is resumed") {
    Place place;
    std::string lines = "{\"text\": 7}\n";
    for (int i = 0; i < 9; i++)
        lines += R"({"text": "ten nine eight seven six five four three two one"})"
                 "\n";
    write_text(place.s / "docs.jsonl", lines);
    const std::string tune = "$LINNET finetune --threads 1 --out t --data docs.jsonl ";
    CHECK(place(tune + "-m m.gguf --steps 1").exit == 3);
    REQUIRE(place(tune + "-m m.gguf --steps 1 --skip-bad").exit == 0);
    const Outcome resumed = place("$LINNET finetune --threads 1 --out t --resume --steps 2");
    CHECK_MESSAGE(resumed.exit == 0, resumed.err);
}

TEST_CASE("weights that a run's last update has spoiled are no checkpoint") {
    Place place;
    // Positions that no sequence of the run reaches: nothing but the decay changes them, and no loss shows
    // them.
    const Gguf model(place.s / "m.gguf");
    const GgufTensor* positions = model.tensor("position_embd.weight");
    REQUIRE(positions);
    const auto* bytes = reinterpret_cast<const char*>(positions->bytes.data());
    std::string file = place.file("m.gguf");
    const std::size_t at = file.find(std::string(bytes, positions->bytes.size()));
    REQUIRE(at != std::string::npos);
    const auto tune = [&](float last, const std::string& options, const std::string& group) {
        std::memcpy(file.data() + at + positions->bytes.size() - sizeof last, &last, sizeof last);
        write_text(place.s / "spoiled.gguf", file);
        return place(
            "$TUNE -m spoiled.gguf --set train.sequence=16 --set train.checkpoint_every=0 --set "
            "train.clip=0 " +
            options + " --set 'train.groups=[{\"match\":\"position_embd.weight\",\"kind\":\"sgd\"," + group +
            "\"lr\":100,\"weight_decay\":10}]'");
    };
    const Outcome spoiled = tune(3e38F, "--out t --steps 1 --set train.eval_every=0", "");
    CHECK(spoiled.exit == 5);
    CHECK_MESSAGE(has(spoiled.err, "expected finite numbers, got weights that are not"), spoiled.err);
    CHECK_FALSE(fs::exists(place.s / "t/model.gguf"));

    // Without a held-out text every evaluation renews model.gguf: that of the step before is the last good
    // one.
    const Outcome second =
        tune(3e34F,  // times -999 at each step
             "--out u --steps 2 --set train.eval_every=1 --set train.validation_fraction=0 "
             "--set train.schedule.kind=constant --set train.schedule.warmup=0",
             "\"momentum\":0,");
    CHECK(second.exit == 5);
    CHECK_MESSAGE(has(second.err, "step 2: expected finite numbers, got weights that are not"), second.err);
    REQUIRE(fs::exists(place.s / "u/model.gguf"));
    CHECK(Gguf(place.s / "u/model.gguf").string("linnet.train.step").value_or("") == "1");
}

TEST_CASE("of a small text a step reads a small share, unless the batch is set") {
    Place place;
    const auto dry = [&](const std::string& options) {
        const Outcome told = place("$LINNET finetune -m m.gguf --threads 1 --dry-run --out x " + options);
        REQUIRE_MESSAGE(told.exit == 0, told.err);
        return told.out;
    };
    const std::string small = dry("--data down --epochs 2");
    const double text = number_of(small, "train_tokens"), step = number_of(small, "tokens_per_step");
    CHECK(step <= text / 16);
    CHECK(step > text / 32);
    CHECK(number_of(small, "steps") == std::ceil(2 * text / step));
    CHECK(number_of(dry("--data down --steps 4 --set train.batch=128"), "tokens_per_step") == 4096);
    CHECK(number_of(dry("--data down --steps 4 --set train.accumulate=4"), "tokens_per_step") == step);
    std::string long_text;
    while (long_text.size() < 200'000) long_text += counting_down();
    write_text(place.s / "long", long_text);
    CHECK(number_of(dry("--data long --steps 4"), "tokens_per_step") == 4096);
    write_text(place.s / "one.jsonl", R"({"prompt": "one", "completion": "two"})"
                                      "\n"
                                      R"({"prompt": "two", "completion": "one"})");
    CHECK(number_of(dry("--data one.jsonl --steps 4"), "tokens_per_step") == 32);
}

namespace {

/// Conversations, a template of one's own, `base`, and `own.gguf`: that with a template of ChatML's.
struct Talks : Place {
    const std::string tune = "$LINNET finetune --data chats.jsonl --threads 1 --steps 2 ";
    Talks() {
        std::string chats;
        for (int i = 0; i < 40; i++)
            chats +=
                R"({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]})"
                "\n";
        write_text(s / "chats.jsonl", chats);
        write_text(
            s / "form.json",
            R"({"user": {"before": "u ", "after": "\n"}, "assistant": {"before": "a ", "after": "\n"}})");
        must("$LINNET train --data text --threads 1 --steps 1 --out base");
        with_template(s / "base/model.gguf", s / "own.gguf", chatml_template);
    }
    void must(const std::string& line) const {
        const Outcome done = (*this)(line);
        REQUIRE_MESSAGE(done.exit == 0, done.err);
    }
    Outcome chat(const std::string& options) const {
        const Outcome answer = (*this)("printf one | $LINNET chat --temp 0 -n 4 " + options);
        REQUIRE_MESSAGE(answer.exit == 0, answer.err);
        return answer;
    }
    /// That it is talked with in the form of --template `form`, and that this is said by its file.
    void answers(const std::string& model, const std::string& form) const {
        CAPTURE(model);
        const Outcome answer = chat(model);
        CHECK_FALSE(has(answer.err, "continues text"));
        CHECK(answer.out == chat(model + " --template " + form).out);
    }
    std::string template_of(const std::string& name) const {
        return std::string(Gguf(s / name).string(chat_template_key).value_or("none"));
    }
};

}  // namespace

TEST_CASE("a model, and an adapter, that was tuned with a template keeps to it") {
    const Talks place;
    place.must(place.tune + "-m base --template chatml --out tuned");
    place.must(place.tune + "-m base --template chatml --lora 2 --out adapted");
    place.must("$LINNET quantize tuned small.gguf --type q8_0");
    for (const std::string model : {"-m tuned", "-m small.gguf", "-m base --lora adapted"})
        place.answers(model, "chatml");
    CHECK(has(place.chat("-m base").err, "continues text and does not answer"));
    // Tuned once more it needs no name, nor if that text has no conversations.
    place.must(place.tune + "-m tuned --out twice");
    place.must("$LINNET finetune -m twice --data text --threads 1 --steps 1 --out thrice");
    CHECK(place.template_of("thrice/model.gguf") == place.template_of("tuned/model.gguf"));
    place.answers("-m thrice", "chatml");
    // What it was tuned with stands in the place of the template that its file has from the base.
    place.must(place.tune + "-m own.gguf --out kept");
    CHECK(place.template_of("kept/model.gguf") == chatml_template);
    place.answers("-m kept", "chatml");
    place.must(place.tune + "-m own.gguf --template zephyr --out other");
    place.answers("-m other", "zephyr");
    CHECK(place.chat("-m other").out != place.chat("-m other --template chatml").out);
    place.must(place.tune + "-m own.gguf --template zephyr --lora 2 --out beside");
    place.answers("-m own.gguf --lora beside", "zephyr");
    // The base's program stays where it is named: it may do more than mark conversations.
    place.must(place.tune + "-m own.gguf --template chatml --out named");
    CHECK(place.template_of("named/model.gguf") == chatml_template);
    const Outcome unknown = place(place.tune + "-m base --template chatlm --out x");
    CHECK(unknown.exit == 3);
    CHECK_MESSAGE(has(unknown.err, "finetune.template: expected the name of a file, or one of"), unknown.err);
}

TEST_CASE("a template that was named by its file goes wherever the model goes") {
    const Talks place;
    place.must(place.tune + "-m own.gguf --template form.json --save hf --out formed");
    place.must(place.tune + "-m own.gguf --template form.json --lora 2 --out beside");
    // A resumed run needs the file no more, nor does it follow what became of it.
    write_text(place.s / "changed.json",
               R"({"user": {"before": "x ", "after": "\n"}, "assistant": {"before": "y ", "after": "\n"}})");
    place.must("mv form.json kept.json; mv changed.json form.json");
    const std::string source = place.template_of("formed/model.gguf");
    place.must("$LINNET finetune --resume --steps 4 --threads 1 --out formed");
    CHECK(place.template_of("formed/model.gguf") == source);
    place.must("$LINNET finetune --resume --steps 4 --threads 1 --out beside && rm form.json");
    CHECK(place.template_of("beside/adapter.gguf") == source);
    place.must("$LINNET merge -m own.gguf --lora beside -o merged.gguf");
    place.must("$LINNET convert formed folder; $LINNET convert folder back.gguf");
    place.must(
        "$LINNET convert beside peft --base own.gguf; $LINNET convert peft there.gguf --base own.gguf");
    place.must("$LINNET merge -m own.gguf --lora peft -o other.gguf");
    for (const char* name : {"formed/last.gguf", "merged.gguf", "back.gguf", "there.gguf", "other.gguf"}) {
        CAPTURE(name);
        CHECK(place.template_of(name) == source);
    }
    CHECK(place.file("peft/chat_template.jinja") == source);
    for (const char* folder : {"folder", "formed/hf"})
        CHECK(nlohmann::json::parse(
                  place.file(std::string(folder) + "/tokenizer_config.json"))["chat_template"] == source);
    for (const std::string model : {"-m formed", "-m formed/hf", "-m folder", "-m merged.gguf",
                                    "-m own.gguf --lora beside", "-m own.gguf --lora peft"})
        place.answers(model, "kept.json");
}

TEST_CASE("answers are learned from pairs and from conversations") {
    Place place;
    std::string pairs, chats;
    for (int i = 0; i < 150; i++) {
        const std::string tail = i % 3 == 0 ? " one" : " two";
        pairs += "{\"prompt\": \"three\", \"completion\": \"" + tail + tail + "\"}\n";
        chats +=
            "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}, {\"role\": \"assistant\", "
            "\"content\": \"two" +
            tail + "\"}]}\n";
    }
    write_text(place.s / "pairs.jsonl", pairs);
    write_text(place.s / "chats.jsonl", chats);
    write_text(
        place.s / "form.json",
        R"({"user": {"before": "\nten ", "after": "\n"}, "assistant": {"before": "nine ", "after": "\n"}, "ends": ["\n"]})");
    const Outcome learned = place("${TUNE/down/pairs.jsonl} -m m.gguf --out pairs");
    REQUIRE_MESSAGE(learned.exit == 0, learned.err);
    CHECK(has(learned.err, "150 prompts with completions"));
    const std::vector<double> losses = place.losses("pairs");
    CHECK(losses.back() < losses.front());
    // The same under other names, which are told to be unknown first.
    for (const char* member : {"prompt", "completion"})
        for (std::size_t at = 0; (at = pairs.find(member, at)) != std::string::npos; at += 8)
            pairs.replace(at, std::strlen(member), member == std::string("prompt") ? "question" : "response");
    write_text(place.s / "others.jsonl", pairs);
    const Outcome unknown = place("${TUNE/down/others.jsonl} -m m.gguf --out x");
    CHECK(unknown.exit == 3);
    CHECK_MESSAGE(
        has(unknown.err, "got 'question', 'response' (--field names the text's, --fields those of prompt"),
        unknown.err);
    const Outcome named =
        place("${TUNE/down/others.jsonl} -m m.gguf --fields question,response --out others");
    REQUIRE_MESSAGE(named.exit == 0, named.err);
    CHECK(place.losses("others") == losses);
    const Outcome none = place("${TUNE/down/chats.jsonl} -m m.gguf --out x");
    CHECK(none.exit == 3);
    CHECK(has(none.err, "chats.jsonl: line 1: messages: expected a model with a chat template"));
    const Outcome talked =
        place("${TUNE/down/chats.jsonl} -m m.gguf --template form.json --lora 2 --out chats");
    REQUIRE_MESSAGE(talked.exit == 0, talked.err);
    CHECK(has(talked.err, "150 conversations"));
    // With weights both are learned in one run, beside a text.
    const std::string mixed = "${TUNE/down/down --data chats.jsonl=2 --data pairs.jsonl} -m m.gguf --lora 2 ";
    const Outcome unmarked = place(mixed + "--out x");
    CHECK(unmarked.exit == 3);
    CHECK(has(unmarked.err, "chats.jsonl: line 1: messages: expected a model with a chat template"));
    const Outcome all = place(mixed + "--template form.json --out mixed");
    REQUIRE_MESSAGE(all.exit == 0, all.err);
    CHECK(has(all.err, "chats.jsonl: 150 conversations, "));
    CHECK(has(all.err, "pairs.jsonl: 150 prompts with completions, "));
    CHECK(place.losses("mixed").back() < place.losses("mixed").front());
    const nlohmann::json texts = records(place.file("mixed/log.jsonl"), "eval").back()["texts"];
    REQUIRE(texts.size() == 3);
    for (std::size_t i = 0; i < 3; i++)
        CHECK(texts[i]["name"] == std::vector<std::string>{"down", "chats.jsonl", "pairs.jsonl"}[i]);
    CHECK(texts[0]["tokens"].get<int>() % 32 == 0);  // windows, all of which count
    const Outcome bare = place("$LINNET train --data pairs.jsonl --steps 2 --out x");
    CHECK(bare.exit == 3);
    CHECK(has(bare.err, "pairs.jsonl: expected texts, where no config is given, got examples with answers"));
}

TEST_CASE("a model that begins from nothing learns answers of a config's own vocabulary, and to end them") {
    Place place;
    std::string pairs;
    for (int i = 0; i < 120; i++)
        pairs += i % 2 ? R"({"prompt": "abc:", "completion": "cba"})"
                         "\n"
                       : R"({"prompt": "xy:", "completion": "yx"})"
                         "\n";
    write_text(place.s / "pairs.jsonl", pairs);
    write_text(place.s / "config.json", tiny_config());
    const Outcome made =
        place("$LINNET train config.json --data pairs.jsonl --steps 60 --threads 1 --out made");
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    CHECK(has(made.err, "120 prompts with completions"));
    CHECK(has(made.err, "vocabulary 7,"));  // a b c x y, the colon and what ends
    const Outcome said = place(
        R"(printf '{"prompt":"abc:"}\n{"prompt":"xy:"}\n' | $LINNET generate -m made --temp 0 --batch-file -)");
    REQUIRE_MESSAGE(said.exit == 0, said.err);
    CHECK(has(said.out, R"("text":"cba")"));
    CHECK(has(said.out, R"("text":"yx")"));
    CHECK(has(said.out, R"("end":"end-token")"));
    // The id that ends it is told of one text as of several.
    const std::string one = place("$LINNET generate -m made --temp 0 -p abc: --format ids").out;
    CHECK(place("$LINNET generate -m made --temp 0 -p abc: --format ids --samples 2").out == one + one);
    const Outcome told = place("$LINNET generate -m made --temp 0 -p abc: --json --logprobs 0");
    REQUIRE(records(told.out).size() == 5);  // c, b, a, what ends, and the record of the end
    CHECK(records(told.out)[3].contains("logprob"));
    std::string talks =
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
    write_text(place.s / "talks.jsonl", talks + "\n" + talks + "\n");
    const Outcome talked = place("$LINNET train config.json --data talks.jsonl --out talked");
    CHECK(talked.exit == 3);
    CHECK(has(talked.err,
              "talks.jsonl: line 1: expected texts, or prompts with completions, for a model that "
              "begins from nothing, got a conversation (linnet finetune learns from those)"));
    const Outcome masked =
        place("$LINNET train config.json --data pairs.jsonl --set model.kind=encoder --out m");
    CHECK(masked.exit == 3);
    CHECK(has(masked.err, "expected texts, as train.objective is masked, got examples with answers"));
}
