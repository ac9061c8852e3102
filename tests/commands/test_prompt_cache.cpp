// generate --prompt-cache, --draft, --ctx-shift, and models that are damaged.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

namespace {

Outcome generate(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", "-m", tiny_model(), "--seed", "3"});
    if (std::find(arguments.begin(), arguments.end(), "--temp") == arguments.end())
        arguments.insert(arguments.end(), {"--temp", "1.2"});
    return run_linnet(arguments);
}

/// prompt_tokens is of the whole prompt; this one is what was read, told by the rate's note.
json last_record(const std::string& lines) {
    std::string text = lines.substr(0, lines.size() - 1);
    return json::parse(text.substr(text.rfind('\n') + 1));
}

/// The tiny model with a NaN at the beginning of a tensor.
std::string damaged(const Scratch& scratch, const std::string& tensor) {
    std::string bytes = read_text(tiny_model());
    const Gguf file(tiny_model());
    const GgufTensor* found = file.tensor(tensor);
    REQUIRE(found);
    const std::string data(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size());
    bytes.replace(bytes.find(data), 4, "\x00\x00\xC0\x7F", 4);
    write_text(scratch / "damaged.gguf", bytes);
    return scratch / "damaged.gguf";
}

}  // namespace

TEST_CASE("a prompt cache gives the text that reading the prompt gives, for the prompt and for longer ones") {
    Scratch scratch;
    const std::string cache = scratch / "cache";
    const std::string prompt = "one two three f", longer = prompt + "our fi", other = "one two four";
    const std::string text = generate({"-p", prompt, "-n", "10"}).out;
    const Outcome made = generate({"-p", prompt, "-n", "10", "--prompt-cache", cache});
    CHECK_MESSAGE(made.exit == 0, made.err);
    CHECK(made.out == text);
    CHECK(made.err.starts_with("wrote " + cache + ", "));
    const std::string bytes = read_text(cache);
    for (const char* threads : {"1", "2", "3"}) {
        const Outcome used =
            generate({"-p", prompt, "-n", "10", "--prompt-cache", cache, "--threads", threads});
        CHECK_MESSAGE(used.exit == 0, used.err);
        CHECK(used.out == text);
        CHECK(used.err.empty());
    }
    for (const std::string& p : {longer, other, std::string("one"), std::string("six")})
        CHECK(generate({"-p", p, "-n", "9", "--prompt-cache", cache}).out ==
              generate({"-p", p, "-n", "9"}).out);
    CHECK(generate({"-p", longer, "-n", "9", "--samples", "3", "--prompt-cache", cache}).out ==
          generate({"-p", longer, "-n", "9", "--samples", "3"}).out);
    CHECK(read_text(cache) == bytes);  // written once
    // Nothing of the prompt is read again.
    const json end = last_record(generate({"-p", prompt, "-n", "2", "--json", "--prompt-cache", cache}).out);
    CHECK(end["prompt_seconds"].get<double>() < 1e-3);
}

TEST_CASE("a prompt cache that is cut short, damaged or another model's is refused in one line") {
    Scratch scratch;
    const std::string cache = scratch / "cache", bad = scratch / "bad";
    REQUIRE(generate({"-p", "one two", "-n", "1", "--prompt-cache", cache}).exit == 0);
    const std::string bytes = read_text(cache);
    auto refused = [&](const std::string& content, const std::string& message) {
        write_text(bad, content);
        const Outcome outcome = generate({"-p", "one two", "-n", "1", "--prompt-cache", bad});
        CHECK(outcome.exit == 3);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, message), outcome.err);
    };
    for (std::size_t size :
         {std::size_t{0}, std::size_t{15}, std::size_t{100}, bytes.size() / 2, bytes.size() - 1})
        refused(bytes.substr(0, size), bad);
    refused(bytes.substr(0, bytes.size() - 1), "cut short");
    refused(bytes + "x", "cut short or added to");
    for (std::size_t at = 3; at < bytes.size(); at += bytes.size() / 40) {
        std::string flipped = bytes;
        flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
        refused(flipped, bad);
    }
    refused("{}", "expected a prompt cache");
    const Outcome small = generate({"-p", "one", "--ctx", "4", "--prompt-cache", cache});
    CHECK(small.exit == 3);
    CHECK_MESSAGE(has(small.err, "tokens: expected 1 to 4, the context, got 7"), small.err);
    const Outcome stored = generate({"-p", "one two", "--kv-type", "f32", "--prompt-cache", cache});
    CHECK(stored.exit == 3);
    CHECK_MESSAGE(has(stored.err, "keys and values stored as here, got stored in another way"), stored.err);
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    REQUIRE(run_linnet({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "other",
                        "--steps", "2", "--set", "train.seed=77"})
                .exit == 0);
    const Outcome other =
        run_linnet({"generate", "-m", scratch / "other", "-p", "one", "--prompt-cache", cache});
    CHECK(other.exit == 3);
    CHECK_MESSAGE(has(other.err, "that of another model"), other.err);
    const Outcome scalar = generate({"-p", "one two", "--isa", "scalar", "--prompt-cache", cache});
    if (!has(run_linnet({"--version"}).out, "scalar only")) CHECK(scalar.exit == 3);
    CHECK(generate({"-p", "one", "--prompt-cache", "/proc/self/no/such/folder"}).exit == 4);
    CHECK(generate({"--batch-file", cache, "--prompt-cache", cache}).exit == 2);
}

TEST_CASE("--speculate and --draft write the text that is written without them, and say what was accepted") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    REQUIRE(run_linnet({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "draft",
                        "--steps", "60", "--set", "model.width=8"})
                .exit == 0);
    for (const char* temperature : {"0", "0.7", "2"})
        for (const char* threads : {"1", "3"}) {
            const std::vector<std::string> line{"-p",        "one two ",    "-n",        "60",   "--temp",
                                                temperature, "--ctx-shift", "--threads", threads};
            auto with = [&](std::vector<std::string> more) {
                more.insert(more.begin(), line.begin(), line.end());
                return generate(more);
            };
            const std::string plain = with({}).out;
            const Outcome speculated = with({"--speculate"}), drafted = with({"--draft", scratch / "draft"});
            CHECK(speculated.out == plain);
            CHECK(drafted.out == plain);
            CHECK(has(drafted.err, ", accepted "));
            CHECK(has(speculated.err, "drafted "));
            CHECK(with({"--samples", "4", "--draft", scratch / "draft"}).out == with({"--samples", "4"}).out);
        }
    const json end = last_record(
        generate({"-p", "one two three ", "-n", "17", "--temp", "0", "--json", "--draft", tiny_model()}).out);
    CHECK(end["accepted"] == end["drafted"]);  // its own draft is always right
    CHECK(end["drafted"].get<int>() > 10);
    auto drawn = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"-p", "one two three ", "--temp", "2", "--json", "--draft", tiny_model()});
        return last_record(generate(more).out);
    };
    const json within = drawn({"-n", "17"}), beyond = drawn({"-n", "60", "--ctx-shift"});
    CHECK(within["accepted"] == within["drafted"]);  // also with the random numbers of its own places
    // What it reads where the context was full is not what the model has kept, so some are wrong then.
    CHECK(beyond["drafted"].get<int>() > 2 * within["drafted"].get<int>());
    const Outcome built_in = generate({"-p", "one", "--draft", scratch / "draft/model.gguf"});
    CHECK(built_in.exit == 0);
    write_text(scratch / "text", counting_text() + "ZZZ");
    REQUIRE(run_linnet({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "more",
                        "--steps", "1"})
                .exit == 0);
    const Outcome refused = generate({"-p", "one", "--draft", scratch / "more"});
    CHECK(refused.exit == 3);
    CHECK(is_one_error_line(refused.err));
    CHECK_MESSAGE(has(refused.err, "(a draft model needs the vocabulary of "), refused.err);
}

TEST_CASE("a full context ends the text with a reason, and --ctx-shift goes on behind it") {
    const Outcome full = generate({"-p", "one two ", "-n", "60"});
    CHECK(full.exit == 0);
    CHECK(has(full.err, "the context of 32 tokens is full; ended after 25 new tokens (--ctx-shift"));
    const Outcome on = generate({"-p", "one two ", "-n", "60", "--ctx-shift", "--json"});
    CHECK(last_record(on.out)["tokens"] == 60);
    CHECK(last_record(on.out)["end"] == "length");
    CHECK(generate({"-p", "one two ", "-n", "60", "--slide", "--json"}).exit == 0);
    CHECK(generate({"-p", "one two ", "-n", "60", "--ctx-shift", "--keep", "8"}).out !=
          generate({"-p", "one two ", "-n", "60", "--ctx-shift"}).out);
    // What is kept leaves room for two tokens behind it.
    CHECK(generate({"-p", "one two ", "-n", "60", "--ctx-shift", "--keep", "30"}).exit == 0);
    const Outcome most = generate({"-p", "one two ", "-n", "60", "--ctx-shift", "--keep", "31"});
    CHECK(most.exit == 2);
    CHECK_MESSAGE(has(most.err, "--keep: expected at most 30 in a context of 32 tokens, got 31"), most.err);
    CHECK(generate({"-p", "one", "--ctx-shift", "--keep", "15", "--ctx", "16"}).exit == 2);
    const Outcome alone = generate({"-p", "one two ", "--keep", "8"});
    CHECK(alone.exit == 2);
    CHECK_MESSAGE(has(alone.err, "--keep: expected --ctx-shift as well, got none"), alone.err);
    const std::string prompt = counting_text().substr(0, 100);
    const Outcome longer = generate({"-p", prompt, "-n", "4"});
    CHECK(longer.exit == 3);
    CHECK(has(longer.err, "prompt: expected at most 32 tokens, got 100"));
    CHECK(has(longer.err, "--ctx-shift"));
    CHECK(last_record(generate({"-p", prompt, "-n", "4", "--ctx-shift", "--json"}).out)["tokens"] == 4);
    Scratch scratch;
    const Outcome cut =
        generate({"-p", prompt, "-n", "4", "--ctx-shift", "--prompt-cache", scratch / "state"});
    CHECK(cut.exit == 0);
    CHECK(has(cut.err, "the prompt is longer than the context: it is cut, and "));
    CHECK(cut.out == generate({"-p", prompt, "-n", "4", "--ctx-shift"}).out);
}

TEST_CASE("logits that are not finite end generation and inspect logits with the op where they began") {
    Scratch scratch;
    const std::pair<std::string, std::string> places[] = {{"blk.0.ffn_down.weight", "blk.0.ffn.down"},
                                                          {"blk.0.attn_qkv.weight", "blk.0.attn.q"}};
    for (const auto& [tensor, op] : places) {
        const auto& of_op = op;
        CAPTURE(of_op);
        const std::string model = damaged(scratch, tensor);
        for (const std::vector<std::string>& command : {std::vector<std::string>{"inspect", "logits"},
                                                        {"generate", "-n", "5"},
                                                        {"generate", "-n", "5", "--samples", "3"},
                                                        {"generate", "-n", "5", "--speculate"},
                                                        {"generate", "-n", "5", "--temp", "0"}}) {
            std::vector<std::string> all = command;
            all.insert(all.end(), {"-m", model, "-p", "one two"});
            const Outcome outcome = run_linnet(all);
            CHECK(outcome.exit == 3);
            CHECK_MESSAGE(has(outcome.err, model + ": " + op + ": expected finite values, got "),
                          outcome.err);
        }
        write_text(scratch / "text", counting_text());
        const Outcome weighed = run_linnet({"quantize", model, scratch / "q.gguf", "--type", "q8_0",
                                            "--importance", scratch / "text", "--overwrite"});
        CHECK(weighed.exit == 3);
        CHECK_MESSAGE(has(weighed.err, model + ": expected finite predictions, got "), weighed.err);
        for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", "-m", model},
                                                        {"eval", "-m", tiny_model(), "--against", model},
                                                        {"eval", "-m", model, "--against", tiny_model()}}) {
            std::vector<std::string> all = command;
            all.insert(all.end(), {"--file", scratch / "text"});
            const Outcome outcome = run_linnet(all);
            CHECK(outcome.exit == 3);
            CHECK_MESSAGE(has(outcome.err, model + ": expected finite predictions, got "), outcome.err);
        }
    }
}
