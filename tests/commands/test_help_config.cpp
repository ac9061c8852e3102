// linnet help config: the keys of a CONFIG, off the tables that read one.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "commands/help.h"
#include "commands/text_input.h"
#include "commands/tiny.h"
#include "support.h"
#include "train/task/config.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// The keys of a page; each begins a line, behind two spaces.
std::vector<std::string> keys_of(const std::string& page) {
    std::vector<std::string> keys;
    for (const std::string_view line : lines_of(page))
        if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
            keys.emplace_back(line.substr(2, line.find(' ', 2) - 2));
    return keys;
}

/// What a page says of a key, in one line, with a space behind each word.
std::string entry_of(const std::string& page, const std::string& key) {
    std::string entry;
    bool in = false;
    for (const std::string_view line : lines_of(page)) {
        if (!line.starts_with("      ")) in = line.starts_with("  " + key + " ");
        if (!in) continue;
        std::istringstream words{std::string(line)};
        for (std::string word; words >> word;) entry += word + " ";
    }
    return entry;
}

std::string page(const std::string& pattern) {
    const Outcome outcome = run_linnet({"help", "config", pattern});
    CHECK(outcome.exit == 0);
    CHECK(outcome.err.empty());
    return outcome.out;
}

}  // namespace

TEST_CASE("help config has every key, with its values, its default and its help") {
    const Outcome all = run_linnet({"help", "config"});
    REQUIRE(all.exit == 0);
    CHECK(all.err.empty());
    RunConfig config;
    std::vector<std::string> expected{"train.groups"};
    for (const Field& field : run_fields(config)) {
        CAPTURE(field.key);
        expected.push_back(field.key);
        const std::string entry = entry_of(all.out, field.key);
        CHECK(!field.help.empty());
        CHECK(has(entry, field.help));
        for (const std::string& choice : field.choices) CHECK_MESSAGE(has(entry, choice), choice);
        const nlohmann::ordered_json value = value_of(field);
        if (value.is_string() && value != "") CHECK(has(entry, "[" + value.get<std::string>() + "]"));
        if (value.is_boolean()) CHECK(has(entry, "true | false [" + value.dump() + "]"));
        if (value.is_number_integer())
            CHECK(has(entry, value < field.low ? "(required)" : "[" + value.dump() + "]"));
    }
    std::vector<std::string> keys = keys_of(all.out);
    std::sort(keys.begin(), keys.end());
    std::sort(expected.begin(), expected.end());
    CHECK(keys == expected);
    CHECK(entry_of(all.out, "model.width") ==
          "model.width N, 1 to 16777216 (required) width of the residual stream ");
    CHECK(has(entry_of(all.out, "model.kv_heads"), "N, 0 to 4096, by layer [0] key and value heads"));
    CHECK(has(entry_of(all.out, "train.validation_fraction"), "X, 0 to 0.9 [0.1]"));
    CHECK(has(entry_of(all.out, "train.steps"), "N, 1 to 1000000000000 "));
    for (const char* placement : {"pre:", "post:", "sandwich:", "res-post:", "deep:"})
        CHECK_MESSAGE(has(entry_of(all.out, "model.norm.placement"), std::string(" ") + placement),
                      placement);
    for (const std::string_view line : lines_of(all.out)) {
        const auto columns =
            std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
        CHECK_MESSAGE(columns <= 80, line);
    }
}

TEST_CASE("help config groups keys by the object that they stand in") {
    std::vector<std::string> titles;
    const std::string all = page("");
    for (const std::string_view line : lines_of(all)) {
        if (line.ends_with(":") && line.find(' ') == line.npos)
            titles.emplace_back(line.substr(0, line.size() - 1));
        if (!titles.empty() && line.starts_with("  ") && line[2] != ' ') {
            const std::string key(line.substr(2, line.find(' ', 2) - 2));
            CHECK_MESSAGE(key.substr(0, key.rfind('.')) == titles.back(), key);
        }
    }
    CHECK(std::ranges::count(titles, "model") == 1);
    CHECK(std::ranges::count(titles, "train.optimizer") == 1);
}

TEST_CASE("a pattern narrows help config down: a part of a key, with * for any text") {
    using Keys = std::vector<std::string>;
    CHECK(keys_of(page("train.batch")) == Keys{"train.batch"});
    CHECK(keys_of(page("train.*.kind")) == Keys{"train.optimizer.kind", "train.schedule.kind"});
    CHECK(keys_of(page("groups")) == Keys{"model.ssm.groups", "train.groups"});
    for (const std::string& key : keys_of(page("lora"))) CHECK(key.starts_with("finetune.lora."));
    CHECK(entry_of(page("lora"), "finetune.lora.rank") == entry_of(page(""), "finetune.lora.rank"));
    CHECK_FALSE(has(page("lora"), "CONFIG"));
    CHECK(page("") == run_linnet({"help", "config"}).out);
}

TEST_CASE("options may stand around the words of help config, and an unknown one is refused") {
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"help", "config", "--help"},
             {"help", "config", "-h"},
             {"help", "config", "--quiet"},
             {"help", "--quiet", "config"},
             {"help", "--threads", "1", "config"},
             {"help", "config", "--threads", "1"},
         }) {
        const Outcome outcome = run_linnet(arguments);
        CHECK(outcome.exit == 0);
        CHECK(outcome.out == page(""));
    }
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"help", "config", "lora", "--quiet"},
             {"help", "config", "--quiet", "lora", "--help"},
             {"help", "--isa=scalar", "config", "lora"},
         }) {
        const Outcome outcome = run_linnet(arguments);
        CHECK(outcome.exit == 0);
        CHECK(outcome.out == page("lora"));
    }
    const Outcome refused = run_linnet({"help", "config", "lora", "--quite"});
    CHECK(refused.exit == 2);
    CHECK(is_one_error_line(refused.err));
    CHECK_MESSAGE(has(refused.err, "did you mean --quiet?"), refused.err);
    CHECK(has(run_linnet({"help", "config", "--version"}).out, "linnet "));
}

TEST_CASE("a pattern that fits no key is refused in one line, with the nearest key") {
    for (const auto& [words, told] :
         {std::pair<std::vector<std::string>, const char*>{{"train.optimzer"},
                                                           "did you mean train.optimizer?"},
          {{"warmpu"}, "did you mean warmup?"},
          {{"xyzzyplugh"},
           "help config: expected a part of a key, in which * stands for any text, got "
           "'xyzzyplugh' (linnet help config lists them)"},
          {{"train", "batch"}, "help config: expected one PATTERN, got 2 words"}}) {
        std::vector<std::string> arguments{"help", "config"};
        arguments.insert(arguments.end(), words.begin(), words.end());
        const Outcome outcome = run_linnet(arguments);
        CHECK(outcome.exit == 2);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, told), outcome.err);
    }
}

TEST_CASE("help, the manual and train's --help lead to help config") {
    CHECK(has(run_linnet({"--help"}).out, "linnet help config [PATTERN]"));
    CHECK(has(run_linnet({"manual"}).out, "linnet help config"));
    std::string told;  // in one line
    std::istringstream words(run_linnet({"train", "--help"}).out);
    for (std::string word; words >> word;) told += word + " ";
    CHECK(has(told, "`linnet help config` lists all"));
    CHECK(has(run_linnet({"help", "confg"}).err, "did you mean config?"));
}
