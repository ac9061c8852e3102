// linnet generate: samplers, log probabilities, grammars and schemas.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

std::string made(std::vector<std::string> arguments, const std::string& input = {}) {
    if (std::find(arguments.begin(), arguments.end(), "--seed") == arguments.end())
        arguments.insert(arguments.end(), {"--seed", "4"});
    arguments.insert(arguments.begin(), {"generate", "-m", tiny_model(), "-p", "one "});
    const Outcome outcome = run_linnet(arguments, input);
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    return outcome.out;
}

}  // namespace

TEST_CASE("every sampler's option changes the text, alike alone, in company and with guesses") {
    const std::vector<std::vector<std::string>> settings{
        {"--typical", "0.2"},
        {"--top-nsigma", "0.4"},
        {"--presence-penalty", "30"},
        {"--frequency-penalty", "30"},
        {"--dry-multiplier", "60", "--dry-allowed-length", "1"},
        {"--xtc-probability", "1", "--xtc-threshold", "0.02"},
        {"--dynatemp-range", "1.5", "--dynatemp-exp", "0.5"},
        {"--mirostat", "2", "--mirostat-ent", "1"},
        {"--samplers", "top_k"},
        {"--logit-bias", "\"e\"=-inf"}};
    const std::vector<std::string> common{"-n", "24",      "--temp", "1.5",     "--top-k",
                                          "0",  "--top-p", "1",      "--min-p", "0"};
    const std::string plain = made(common);
    for (std::vector<std::string> line : settings) {
        CAPTURE(line[0]);
        line.insert(line.end(), common.begin(), common.end());
        const std::string text = made(line);
        CHECK(text != plain);
        line.emplace_back("--speculate");
        CHECK(made(line) == text);
        line.back() = "--draft";
        line.push_back(tiny_model());
        CHECK(made(line) == text);
        line.resize(line.size() - 2);
        line.insert(line.end(), {"--samples", "3", "--json", "--parallel", "2"});
        CHECK(records(made(line)).at(0)["text"].get<std::string>() + "\n" == text);
    }
    CHECK(made({"-n", "24", "--logit-bias", "\"e\"=-inf", "--temp", "1.5"}).find('e') == std::string::npos);
}

TEST_CASE("--logprobs tells the model's own probabilities of the token and of the likeliest") {
    std::vector<double> logits;
    std::istringstream in(run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one "}).out);
    for (double x; in >> x;) logits.push_back(x);
    double whole = 0;
    for (double x : logits) whole += std::exp(x);
    const std::vector<json> all = records(made({"-n", "3", "--logprobs", "2", "--json", "--temp", "3"}));
    REQUIRE(all.size() == 4);
    const json& first = all[0];
    CHECK(first["logprob"].get<double>() ==
          doctest::Approx(logits.at(first["id"].get<std::size_t>()) - std::log(whole)).epsilon(1e-4));
    REQUIRE(first["top"].size() == 2);
    CHECK(first["top"][0]["logprob"].get<double>() >= first["top"][1]["logprob"].get<double>());
    CHECK(first["top"][0]["logprob"].get<double>() ==
          doctest::Approx(*std::max_element(logits.begin(), logits.end()) - std::log(whole)).epsilon(1e-4));
    CHECK(first["top"][0]["text"].get<std::string>().size() == 1);
    CHECK_FALSE(all[3].contains("logprob"));
    const std::vector<json> two = records(made({"-n", "3", "--logprobs", "0", "--json", "--samples", "2"}));
    CHECK(two.at(1)["logprobs"].size() == 3);
    CHECK(two[1]["logprobs"][0]["id"] == two[1]["ids"][0]);
    CHECK(two[1]["logprobs"][0]["top"].empty());
    CHECK(run_linnet({"generate", "-m", tiny_model(), "-p", "one", "--logprobs", "2"}).exit == 2);
}

TEST_CASE("a text is one of its grammar, whatever the samplers are, and says whether it was cut") {
    Scratch s;
    write_text(s / "g",
               "root ::= (\"one\" | \"two\") (\" \" word){2,3}\nword ::= \"t\" [a-z]{1,3} | \"six\"\n");
    std::set<std::string> texts;
    for (const char* seed : {"1", "2", "3", "4", "5", "6"})
        for (std::vector<std::string> more :
             {std::vector<std::string>{"--temp", "2"}, {"--temp", "0"}, {"--mirostat", "2"}}) {
            more.insert(more.end(), {"--grammar", s / "g", "--seed", seed, "-n", "25"});
            std::vector<std::string> words;
            const std::string text = made(more);
            std::istringstream in(text);
            for (std::string word; in >> word;) words.push_back(word);
            REQUIRE_MESSAGE((words.size() == 3 || words.size() == 4), text);
            CHECK((words[0] == "one" || words[0] == "two"));
            for (std::size_t i = 1; i < words.size(); i++)
                CHECK((words[i] == "six" ||
                       (words[i][0] == 't' && words[i].size() > 1 && words[i].size() < 5)));
            texts.insert(text);
            more.emplace_back("--speculate");
            CHECK(made(more) == text);
            more.back() = "--draft";
            more.push_back(tiny_model());
            CHECK(made(more) == text);
        }
    CHECK(texts.size() > 4);
    const json cut = records(made({"--grammar", s / "g", "-n", "5", "--json"})).back();
    CHECK(cut["end"] == "length");
    CHECK(cut["complete"] == false);
    const json whole = records(made({"--grammar", s / "g", "-n", "25", "--json"})).back();
    CHECK(whole["end"] == "grammar");
    CHECK(whole["complete"] == true);
    for (const json& one : records(made({"--grammar", s / "g", "-n", "5", "--json", "--samples", "2"})))
        CHECK(one["complete"] == false);
    CHECK(has(run_linnet({"generate", "-m", tiny_model(), "-p", "one", "--grammar", s / "g", "-n", "5"}).err,
              "the text was cut before the end"));
}

TEST_CASE("lines of a batch have grammars, biases and samplers of their own") {
    Scratch s;
    write_text(s / "g", "root ::= \"one\"");
    write_text(s / "h", "root ::= \"two\"");
    write_text(s / "b", "{\"prompt\": \"o\"}\n{\"prompt\": \"o\", \"grammar\": \"" + (s / "h") +
                            "\"}\n{\"prompt\": \"o\", \"logit_bias\": [\"\\\"n\\\"=-9\", \"\\\"t\\\"=+9\"], "
                            "\"typical\": 0.9, "
                            "\"dry-sequence-breaker\": \"x\"}\n");
    const std::vector<json> all = records(run_linnet({"generate", "-m", tiny_model(), "--batch-file", s / "b",
                                                      "--grammar", s / "g", "--samples", "2"})
                                              .out);
    REQUIRE(all.size() == 6);
    CHECK(all[0]["text"] == "one");
    CHECK(all[1]["end"] == "grammar");
    CHECK(all[3]["text"] == "two");
    CHECK(all[4]["text"] == "one");  // a grammar is stronger than a bias
}

TEST_CASE("a bad setting, grammar or schema is one line that names its place") {
    Scratch s;
    struct Case {
        std::vector<std::string> options;
        std::string grammar;  // of the file that is the last option
        int exit;
        const char* message;
    };
    const std::vector<Case> cases{
        {{"--samplers", "top_k;tpo_p"}, "", 2, "--samplers: expected samplers out of penalties, dry"},
        {{"--mirostat", "1"}, "", 2, "--mirostat: expected 0 or 2, got 1"},
        {{"--mirostat", "3"}, "", 2, "--mirostat: expected a whole number from 0 to 2"},
        {{"--logit-bias", "5"}, "", 2, "--logit-bias: expected a token, '=' and a number"},
        {{"--logit-bias", "5=x"}, "", 2, "--logit-bias: expected a number or -inf behind '='"},
        {{"--logit-bias", "999=1"}, "", 2, "--logit-bias: expected a token of the vocabulary"},
        {{"--logit-bias", "\"zebra\"=1"}, "", 2, "--logit-bias: expected a token of the vocabulary"},
        {{"--grammar"},
         "root ::= \"a\"\nb ::= c\n",
         3,
         "/file: line 2, column 7: expected the name of a rule, got 'c'"},
        {{"--grammar"},
         "root ::= e\ne ::= e \"+\" \"n\" | \"n\"",
         3,
         "/file: line 2, column 1: expected a rule that begins with something else"},
        {{"--grammar"}, "root ::= \"#\"", 3, "/file: expected a text that the model's tokens can spell"},
        {{"--json-schema"},
         "{\"items\": {\"not\": {}}}",
         3,
         "/file: #/items/not: expected a keyword of JSON Schema"},
        {{"--json-schema"}, "{\"items\": }", 3, "/file: line 1, column 11: expected JSON"},
        {{"--json-schema"},
         "{\"type\": \"object\"}",
         3,
         "/file: expected a text that the model's tokens can spell"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.message);
        std::vector<std::string> line{"generate", "-m", tiny_model(), "-p", "one"};
        line.insert(line.end(), c.options.begin(), c.options.end());
        if (!c.grammar.empty()) {
            write_text(s / "file", c.grammar);
            line.push_back(s / "file");
        }
        const Outcome outcome = run_linnet(line);
        CHECK(outcome.exit == c.exit);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, c.message), outcome.err);
    }
    CHECK(run_linnet({"generate", "-m", tiny_model(), "-p", "one", "--grammar", s / "none"}).exit == 4);
    write_text(s / "file", "{\"const\": 1}");
    CHECK(run_linnet({"generate", "-m", tiny_model(), "-p", "one", "--grammar", s / "file", "--json-schema",
                      s / "file"})
              .exit == 2);
    write_text(s / "batch", "{\"prompt\": \"one\", \"samplers\": \"x\"}");
    const Outcome batch = run_linnet({"generate", "-m", tiny_model(), "--batch-file", s / "batch"});
    CHECK(batch.exit == 3);
    CHECK_MESSAGE(has(batch.err, "batch: line 1: samplers: expected samplers out of"), batch.err);
}

TEST_CASE("the built-in model writes JSON that its schema describes") {
    if (!std::filesystem::exists(std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
                                 "models/shakespeare.gguf"))
        return skip("needs the built-in model");
    Scratch s;
    write_text(s / "schema",
               R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "born":
        {"format": "date"}, "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 4}, "quoted":
        {"type": "string", "maxLength": 60}}, "required": ["name", "born", "lines"]})");
    for (const char* temperature : {"0", "0.8", "2"})
        for (const char* seed : {"1", "2", "3"}) {
            const Outcome outcome = run_linnet({"generate", "-p", "HAMLET:", "--json-schema", s / "schema",
                                                "--seed", seed, "--temp", temperature, "-n", "-1",
                                                "--ctx-shift", "--min-p", "0", "--top-p", "1"});
            REQUIRE_MESSAGE(outcome.exit == 0, outcome.err);
            const json value = json::parse(outcome.out);
            CHECK(value.at("name").is_string());
            CHECK(value.at("born").get<std::string>().size() == 10);
            REQUIRE(value.at("lines").is_array());
            CHECK(value["lines"].size() <= 4);
            for (const json& line : value["lines"]) {
                REQUIRE(line.is_number_integer());
                CHECK(line >= 1);
            }
            CHECK(value.size() == 3 + value.count("quoted"));
        }
}
