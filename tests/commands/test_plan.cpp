// linnet plan: what fits a text and a time.
#include <doctest/doctest.h>

#include <filesystem>

#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

std::vector<json> rows_of(const std::string& out) {
    std::vector<json> rows;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
    return rows;
}

}  // namespace

TEST_CASE("plan's rows have what each model needs and reaches, and one of them is the best") {
    Workplace run;
    const Outcome planned = run("$LINNET plan --data text --time 6s --json --threads 1");
    REQUIRE_MESSAGE(planned.exit == 0, planned.err);
    const std::vector<json> rows = rows_of(planned.out);
    REQUIRE(rows.size() >= 2);
    int best = 0;
    std::int64_t before = 0;
    for (const json& row : rows) {
        CHECK(row["parameters"] > before);
        before = row["parameters"];
        for (const char* key :
             {"tokens", "batch", "memory_mib", "disk_mib", "bpb", "steps", "epochs", "seconds"})
            CHECK_MESSAGE(row[key] > 0, key);
        CHECK(row["seconds"] <= 6);
        CHECK(row["tokens"] == row["steps"].get<std::int64_t>() * row["batch"].get<std::int64_t>() *
                                   row["config"]["train"]["sequence"].get<std::int64_t>());
        CHECK(row["config"]["model"]["width"] == row["width"]);
        if (row["best"]) best++;
    }
    CHECK(best == 1);
    CHECK(!std::filesystem::exists(run.s / "model.gguf"));
}

TEST_CASE("plan's best row is what train takes, and what it says of memory is what a dry run says") {
    Workplace run;
    const Outcome planned = run("$LINNET plan --data text --time 6s --json --threads 1");
    REQUIRE_MESSAGE(planned.exit == 0, planned.err);
    json best;
    for (const json& row : rows_of(planned.out))
        if (row["best"]) best = row;
    const Outcome dry = run("$LINNET train --data text --time 6s --out o --dry-run --json --threads 1");
    REQUIRE_MESSAGE(dry.exit == 0, dry.err);
    const json said = json::parse(dry.out);
    CHECK(said["parameters"] == best["parameters"]);
    CHECK(said["peak_memory_mib"].get<double>() ==
          doctest::Approx(best["memory_mib"].get<double>()).epsilon(0.2));
}

TEST_CASE("plan's table marks one row, and a config of a row trains") {
    Workplace run;
    const Outcome table = run("$LINNET plan --data text --time 6s --threads 1");
    REQUIRE_MESSAGE(table.exit == 0, table.err);
    for (const char* part :
         {"layers x width", "parameters", "tokens", "memory", "disk", "bits per byte", "\n* "})
        CHECK_MESSAGE(has(table.out, part), part);
    const Outcome planned = run("$LINNET plan --data text --time 6s --json --threads 1 2>/dev/null");
    REQUIRE(planned.exit == 0);
    write_text(run.s / "config.json", rows_of(planned.out).front()["config"].dump());
    CHECK(run("$LINNET train config.json --data text --out o --steps 2 --threads 1 2>/dev/null").exit == 0);
}

TEST_CASE("plan refuses a time for not even one evaluation, a lost text, an empty one and what is no text") {
    Workplace run;
    write_text(run.s / "empty", "");
    write_text(run.s / "tiny", "one two three");
    for (const std::string name : {"cats", "dogs"}) {
        std::filesystem::create_directories(run.s / "pictures/" + name);
        for (int i = 0; i < 200; i++)
            write_text(run.s / "pictures/" + name + "/" + std::to_string(i) + ".pgm",
                       "P5\n4 2\n255\nlettersx");
    }
    write_text(run.s / "pairs.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
    const struct {
        const char *line, *said;
        int exit;
    } cases[] = {
        {"--data text --time 0.00001s", "--time: expected at least", 2},
        {"--data text --time soon", "--time", 2},
        {"--data text", "--time", 2},
        {"--time 2s", "--data: expected a value, got none", 2},
        {"--data none --time 2s", "none", 4},
        {"--data tiny --time 5s", "(more text; `linnet train` and `finetune` also take", 3},
        {"--data empty --time 2s", "empty", 3},
        {"--data pairs.jsonl --time 2s", "pairs.jsonl", 3},
        {"--data pictures --time 2s", "0.pgm: expected UTF-8 text, got a PGM picture", 3},
    };
    for (const auto& c : cases) {
        CAPTURE(c.line);
        const Outcome refused = run(std::string("$LINNET plan ") + c.line);
        CHECK(refused.exit == c.exit);
        CHECK(refused.out.empty());
        CHECK(is_one_error_line(refused.err));
        CHECK_MESSAGE(has(refused.err, c.said), refused.err);
    }
    // Whether a step takes as long or reading the text alone, nothing is announced before.
    for (const char* time : {"0.05s", "0.1s", "0.2s", "0.4s", "0.8s"}) {
        CAPTURE(time);
        const Outcome planned = run(std::string("$LINNET plan --data text --threads 1 --time ") + time);
        if (planned.exit == 0) break;
        CHECK(planned.exit == 2);
        CHECK_MESSAGE(is_one_error_line(planned.err), planned.err);
    }
    const Outcome train = run("$LINNET train --data text --out o --time 0.00001s");
    CHECK(train.exit == 2);
    CHECK(is_one_error_line(train.err));
}
