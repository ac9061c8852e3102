// The table of objectives: each row says all that a run asks of it, and each form of model has a usual one.
#include "train/task/objectives.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support.h"
#include "train/task/config.h"
#include "train/task/example_task.h"

using namespace linnet;
using nlohmann::json;

namespace {

/// A model that can learn it, with no other setting of the objective than its name.
json config_for(const Objective& row, const std::string& objective) {
    const json model = {{"kind", row.kind}, {"context", 16}, {"width", 8},
                        {"layers", 1},      {"heads", 2},    {"head", {{"kind", row.head}}}};
    return {{"model", model}, {"train", {{"objective", objective}}}};
}

std::vector<std::string> choices_of(const std::string& key) {
    RunConfig config;
    for (const Field& field : run_fields(config))
        if (field.key == key) return field.choices;
    return {};
}

}  // namespace

TEST_CASE("each objective says all that a run asks of it") {
    for (const Objective& row : objectives()) {
        INFO(row.name);
        CHECK(find_objective(row.name) == &row);
        // It has its examples from one place.
        CHECK(int(row.next_token) + int(row.examples.has_value()) + int(row.shortest > 1) == 1);
        if (row.generator || row.sentinels) CHECK(row.shortest > 1);
        CHECK_FALSE((row.generator && row.sentinels));
        // Whatever else is learned has an end or marks.
        CHECK(row.tokens.empty() == row.next_token);
        CHECK((row.head == "tokens" || row.kind == "encoder"));

        const RunConfig config = read_run_config(config_for(row, row.name), "c", {});
        CHECK(config.train.objective == row.name);
        CHECK(config.model.head.kind == row.head);
        CHECK(config.model.head.classes == row.classes);
        CHECK(reads_examples(config.train) == row.examples.has_value());
        const std::vector<std::string> tokens = special_tokens(config);
        CHECK((tokens.size() > row.tokens.size()) == row.sentinels);
        REQUIRE(tokens.size() >= row.tokens.size());
        CHECK(std::equal(row.tokens.begin(), row.tokens.end(), tokens.begin()));

        const bool usual = read_run_config(config_for(row, "auto"), "c", {}).train.objective == row.name;
        CHECK(usual == row.usual);
        if (row.shortest == 1) continue;
        const std::string least = std::to_string(row.shortest), less = std::to_string(row.shortest - 1);
        CHECK(test::refusal([&] {
                  read_run_config(config_for(row, row.name), "c", {"train.sequence=" + less});
              }).starts_with("c: train.sequence: expected at least " + least));
        CHECK(read_run_config(config_for(row, row.name), "c", {"train.sequence=" + least}).train.sequence ==
              row.shortest);
    }
}

TEST_CASE("configs may name each objective, and each form of model has one that is usual") {
    std::vector<std::string> names{"auto"};
    for (const Objective& row : objectives()) names.push_back(row.name);
    CHECK(choices_of("train.objective") == names);
    CHECK(find_objective("auto") == nullptr);
    CHECK_THROWS_AS(objective_of("auto"), std::logic_error);

    const std::vector<std::string> kinds = choices_of("model.kind"), heads = choices_of("model.head.kind");
    REQUIRE(kinds.size() == 3);
    REQUIRE(heads.size() == 3);
    for (const std::string& kind : kinds)
        for (const std::string& head : heads) {
            INFO(kind << " " << head);
            if (kind != "encoder" && head != "tokens") continue;  // no such model
            std::vector<std::string> usual;
            for (const Objective& row : objectives())
                if (row.usual && row.kind == kind && row.head == head) usual.push_back(row.name);
            REQUIRE(usual.size() == 1);
            CHECK(objectives_for(kind, head).at(0) == usual[0]);
        }
    CHECK(objectives_for("encoder-decoder", "tokens") == std::vector<std::string>{"pairs", "spans"});
}
