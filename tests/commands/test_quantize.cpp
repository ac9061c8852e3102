// linnet quantize, as a person runs it.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

TEST_CASE("quantize writes a model that runs, the same for any number of threads, and says what it costs") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    for (const char* type : {"q8_0", "q4_k_m", "bf16"}) {
        CAPTURE(type);
        Outcome one = run_linnet({"quantize", tiny_model(), scratch / "one.gguf", "--type", type,
                                  "--overwrite", "--check", scratch / "text", "--json", "--threads", "1"});
        CHECK_MESSAGE(one.exit == 0, one.err);
        CHECK(one.err.find("wrote ") != std::string::npos);
        json report = json::parse(one.out);
        CHECK(report.at("check").at("kl_mean").get<double>() < 0.1);
        CHECK(report.at("check").at("same_top").get<double>() > 0.8);
        for (const json& tensor : report.at("tensors")) {
            CHECK(tensor.at("error").get<double>() < 0.1);
            if (tensor.at("shape").size() == 1) CHECK(tensor.at("type") == "f32");
        }
        run_linnet({"quantize", tiny_model(), scratch / "two.gguf", "--type", type, "--overwrite",
                    "--threads", "2"});
        CHECK(read_text(scratch / "one.gguf") == read_text(scratch / "two.gguf"));
        CHECK(run_linnet({"generate", "-m", scratch / "one.gguf", "-n", "4", "-p", "one"}).exit == 0);
    }
}

TEST_CASE("quantize and eval say alike what --ctx is where it is left out") {
    for (const auto& [command, told] :
         {std::pair{"quantize", "[the model's own, 2048 at most; all of a shorter text]"},
          {"eval", "[the model's own; all of a shorter text]"}}) {
        std::string help;  // in one line
        std::istringstream words(run_linnet({command, "--help"}).out);
        for (std::string word; words >> word;) help += word + " ";
        CHECK_MESSAGE(has(help, told), help);
    }
}

TEST_CASE("eval --against tells of two models what quantize --check tells") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    const Outcome made = run_linnet({"quantize", tiny_model(), scratch / "small.gguf", "--type", "q4_0",
                                     "--check", scratch / "text", "--json"});
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    auto against = [&](const std::string& model, std::vector<std::string> more) {
        std::vector<std::string> all{"eval",       "-m",     model,           "--against",
                                     tiny_model(), "--file", scratch / "text"};
        all.insert(all.end(), more.begin(), more.end());
        return run_linnet(all);
    };
    const Outcome small = against(scratch / "small.gguf", {"--json"});
    REQUIRE_MESSAGE(small.exit == 0, small.err);
    CHECK(json::parse(small.out) == json::parse(made.out).at("check"));
    CHECK(json::parse(small.out).at("kl_p99") > 0);
    CHECK(json::parse(small.out).at("kl_p99") >= json::parse(small.out).at("kl_mean"));
    const json same = json::parse(against(tiny_model(), {"--json", "--ctx", "16", "--windows", "3"}).out);
    CHECK(same.at("tokens") == 3 * 15);
    CHECK(same.at("kl_mean") == 0);
    CHECK(same.at("same_top") == 1);
    const Outcome line = against(tiny_model(), {});
    CHECK_MESSAGE(
        has(line.out, "KL divergence: mean 0.000000, 99th percentile 0.000000  same top token 100.00 %\n"),
        line.out);
    const Outcome other = run_linnet({"eval", "--against", tiny_model(), "--file", scratch / "text"});
    CHECK(other.exit == 3);
    CHECK_MESSAGE(has(other.err, "expected a vocabulary of"), other.err);
}

TEST_CASE("quantize weighs errors by a text, the same for any number of threads") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    auto quantize = [&](const std::string& out, std::vector<std::string> more) {
        std::vector<std::string> all{"quantize", tiny_model(), scratch / out, "--type", "iq4_nl", "--json"};
        all.insert(all.end(), more.begin(), more.end());
        Outcome outcome = run_linnet(all);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return json::parse(outcome.out);
    };
    const std::string text = scratch / "text";
    quantize("one.gguf", {"--importance", text, "--threads", "1"});
    quantize("two.gguf", {"--importance", text, "--threads", "2"});
    quantize("plain.gguf", {});
    CHECK(read_text(scratch / "one.gguf") == read_text(scratch / "two.gguf"));
    CHECK(read_text(scratch / "one.gguf") != read_text(scratch / "plain.gguf"));
    // A text shorter than the window that was asked for, and a window longer than the context.
    write_text(scratch / "short", "one");
    CHECK(run_linnet({"quantize", tiny_model(), scratch / "x.gguf", "--type", "q4_0", "--importance",
                      scratch / "short", "--ctx", "8"})
              .exit == 3);
    CHECK(run_linnet({"quantize", tiny_model(), scratch / "x.gguf", "--type", "q4_0", "--importance", text,
                      "--ctx", "33"})
              .exit == 2);
}

TEST_CASE("on a trained model predictions come closer to the source's where errors are weighed") {
    const auto model = shared_data("data/linuxdoc15m/linuxdoc15m.gguf");
    if (!model) return;
    // Any text of the kind that it was trained on serves: its own, sampled.
    Scratch scratch;
    std::string text;
    for (const char* seed : {"1", "2", "3", "4"})
        text += run_linnet({"generate", "-m", *model, "-p", "The kernel", "-n", "400", "--seed", seed}).out;
    write_text(scratch / "text", text);
    auto divergence = [&](const std::string& type, std::vector<std::string> more) {
        std::vector<std::string> all{"quantize", *model,    scratch / "q.gguf", "--type", type, "--overwrite",
                                     "--json",   "--check", scratch / "text",   "--ctx",  "256"};
        all.insert(all.end(), more.begin(), more.end());
        Outcome outcome = run_linnet(all);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return json::parse(outcome.out).at("check").at("kl_mean").get<double>();
    };
    for (const char* type : {"q4_0", "q3_k_m"})
        CHECK_MESSAGE(divergence(type, {"--importance", scratch / "text"}) < divergence(type, {}), type);
}

TEST_CASE("quantize refuses what it cannot do, with one line and the documented exit code") {
    Scratch scratch;
    write_text(scratch / "text", "not a model");
    auto code = [&](std::vector<std::string> more, const std::string& in = tiny_model()) {
        std::vector<std::string> all{"quantize", in, scratch / "out.gguf"};
        all.insert(all.end(), more.begin(), more.end());
        Outcome outcome = run_linnet(all);
        CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
        return outcome.exit;
    };
    CHECK(code({"--type", "q9_0"}) == 2);
    CHECK(code({"--type", "q8_0", "--tensor", "blk"}) == 2);
    CHECK(code({"--type", "q8_0", "--tensor", "*=q9_0"}) == 2);
    CHECK(code({"--type", "q8_0", "--tensor", "nothing=q4_0"}) == 2);
    CHECK(code({"--type", "q8_0"}, scratch / "text") == 3);
    CHECK(code({"--type", "q8_0"}, scratch / "missing") == 4);
    CHECK(run_linnet({"quantize", tiny_model(), scratch / "q.gguf", "--type", "q8_0"}).exit == 0);
    CHECK(code({"--type", "q4_0"}, scratch / "q.gguf") == 3);
    // As llama.cpp spells it.
    for (const char* type : {"Q8_0", "Q4_K_M", "q5_k_s"})
        CHECK(
            run_linnet({"quantize", tiny_model(), scratch / "t.gguf", "--type", type, "--overwrite"}).exit ==
            0);
    // What --check needs is there before anything is written.
    write_text(scratch / "long", counting_text());
    CHECK(code({"--type", "q8_0", "--check", scratch / "text"}) == 3);
    CHECK(code({"--type", "q8_0", "--check", scratch / "long", "--ctx", "4096"}) == 2);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.gguf"));
    // What is refused is so before errors are weighed.
    const Outcome late = run_linnet({"quantize", tiny_model(), scratch / "q.gguf", "--type", "q8_0",
                                     "--importance", scratch / "long", "--ctx", "16"});
    CHECK(late.exit == 2);
    CHECK_FALSE(has(late.err, "weighed"));
    CHECK(code({"--type", "q8_0", "--windows", "2"}) == 2);
    CHECK(run_linnet({"quantize", tiny_model(), scratch / "w.gguf", "--type", "q8_0", "--check",
                      scratch / "long", "--ctx", "16", "--windows", "2", "--json"})
              .out.find("\"tokens\":30") != std::string::npos);
    run_linnet({"tokenizer", "convert", tiny_model(), "-o", scratch / "vocabulary.gguf"});
    CHECK(code({"--type", "q8_0"}, scratch / "vocabulary.gguf") == 3);
}

TEST_CASE("a model that takes its source's place is compared with what stood there") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "m.gguf", read_text(tiny_model()));
    const Outcome made = run_linnet({"quantize", scratch / "m.gguf", scratch / "m.gguf", "--type", "q4_0",
                                     "--overwrite", "--check", scratch / "text", "--json"});
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    CHECK(json::parse(made.out).at("check").at("kl_mean") > 0);
}

TEST_CASE("the perplexities of a comparison are those that eval tells of each model") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    auto eval = [&](std::vector<std::string> more) {
        std::vector<std::string> all{"eval",           "-m",     tiny_model(), "--file",
                                     scratch / "text", "--json", "--ctx",      "16"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_linnet(all);
        REQUIRE_MESSAGE(outcome.exit == 0, outcome.err);
        return json::parse(outcome.out);
    };
    const double own = eval({}).at("ppl");
    const json both = eval({"--against", tiny_model()});
    for (const char* key : {"source_ppl", "ppl"})
        CHECK(both.at(key).get<double>() == doctest::Approx(own).epsilon(1e-4));
}

TEST_CASE("an importance matrix changes the types of some tensors, as llama.cpp's rules say") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    REQUIRE(run_linnet({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "run",
                        "--steps", "1", "--set", "model.layers=8"})
                .exit == 0);
    auto quantize = [&](std::vector<std::string> more) {
        std::vector<std::string> all{
            "quantize", scratch / "run/model.gguf", scratch / "q.gguf", "--type", "q4_0", "--overwrite"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_linnet(all);
        REQUIRE_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.out;
    };
    auto type_of = [](const json& report, const std::string& name) {
        for (const json& tensor : report.at("tensors"))
            if (tensor.at("name") == name) return tensor.at("type").get<std::string>();
        return std::string("none");
    };
    const json plain = json::parse(quantize({"--json"}));
    const json weighed =
        json::parse(quantize({"--json", "--importance", scratch / "text", "--windows", "2"}));
    CHECK(type_of(plain, "blk.0.ffn_down.weight") == "q4_0");
    CHECK(type_of(weighed, "blk.0.ffn_down.weight") == "q4_1");
    CHECK(type_of(weighed, "blk.1.ffn_down.weight") == "q4_0");
    double weights = 0;
    for (const json& tensor : plain.at("tensors")) {
        double count = 1;
        for (const json& size : tensor.at("shape")) count *= size.get<double>();
        weights += count;
    }
    char line[64];
    std::snprintf(line, sizeof line, ", %.2f bits per weight\n",
                  8 * plain.at("bytes").get<double>() / weights);
    CHECK(has(quantize({}), line));
}
