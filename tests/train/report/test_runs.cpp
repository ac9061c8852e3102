#include "train/report/runs.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "support.h"
#include "train/report/report.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::string log_of(double loss, int steps, bool whole) {
    std::string log =
        R"({"event":"start","config":{"train":{"batch":4,"sequence":8,"accumulate":2}},"parameters":1000,"flops_per_token":6000})"
        "\n";
    for (int n = 1; n <= steps; n++) {
        const std::string at = std::to_string(n);
        log += R"({"event":"step","step":)" + at + R"(,"loss":)" + std::to_string(loss / n) +
               R"(,"lr":0.001,"grad_norm":0.5,"tokens_per_s":1000,"seconds":)" + at + "}\n";
        if (whole)
            log += R"({"event":"blocks","step":)" + at +
                   R"(,"names":["token_embd","blk.<0>"],"grad_norm":[0.1,0.)" + at +
                   R"(],"update":[0.001,0]})" + "\n";
    }
    if (whole)
        log += R"({"event":"eval","step":5,"loss":1.25,"bpb":2.5,"seconds":5})"
               "\n"
               R"({"event":"sample","step":5,"prompt":"A","text":"<b>wrote</b>"})"
               "\n";
    return log;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
    return n;
}

}  // namespace

TEST_CASE("several runs stand over each other on one page, against steps, tokens, time and arithmetic") {
    const std::string page =
        runs_report_html({{"first <run>", log_of(4, 9, true)}, {"second", log_of(5, 7, false)}});
    CHECK(page.starts_with("<!doctype html>"));
    CHECK(has(page, "<meta name=\"viewport\""));
    CHECK(has(page, "<h1>2 training runs</h1>"));
    CHECK(has(page, "first &lt;run&gt;"));
    for (const char* axis : {"steps", "tokens", "time", "FLOPs"})
        CHECK_MESSAGE(has(page, "Training loss, against " + std::string(axis)), axis);
    CHECK(count(page, "type=\"radio\"") == 4);
    CHECK(count(page, "checked>") == 1);
    CHECK(has(page, "3.46M"));  // operations of 9 steps of 64 tokens
    // Validation and training against four axes, rate, norm, speed; each for wide and narrow pages.
    CHECK(count(page, "<svg class=\"wide\"") == 11);
    CHECK(count(page, "<svg class=\"narrow\"") == 11);
    CHECK(has(page, "Updates by block"));
    CHECK(has(page, "<span>blk.&lt;0&gt;</span>"));
    CHECK(count(page, "<rect") == 9 + 2 * 9);  // an update of 0 is left out
    CHECK(has(page, "&lt;b&gt;wrote&lt;/b&gt;"));
    CHECK_FALSE(has(page, "<script"));
    CHECK(page.rfind("<style>") < page.find("</head>"));
    CHECK(has(page, "#x3:checked ~ .x3 { display:block }"));
    CHECK_FALSE(has(page, "http"));
    CHECK_FALSE(has(page, "nan"));
    // A log without any of it is a page all the same.
    CHECK(has(runs_report_html({{"empty", ""}}), "1 training run</h1>"));
    CHECK(has(runs_report_html({{"odd", "{\"event\":\"blocks\",\"step\":1,\"names\":3}\n[]\nx"}}), "odd"));
    // A run's own report has the maps, too.
    CHECK(has(report_html(log_of(4, 9, true), "one"), "Gradients by block"));
}

TEST_CASE("a learning rate is of parameters in no group only where there are groups") {
    const std::string plain = log_of(4, 9, false), caption = "Of parameters in no group.";
    std::string grouped = plain;
    grouped.replace(grouped.find("\"batch\""), 0, R"("groups":[{"match":"norm","lr":0.1}],)");
    CHECK_FALSE(has(runs_report_html({{"a", plain}, {"b", plain}}), caption));
    CHECK(has(runs_report_html({{"a", plain}, {"b", grouped}}), caption));
}

TEST_CASE("every run of many has a line of its own") {
    std::vector<std::string> logs;
    for (int i = 0; i < 18; i++) logs.push_back(log_of(4 + i, 5, false));
    std::vector<NamedLog> many;
    for (const std::string& log : logs) many.push_back({"run " + std::to_string(many.size()), log});
    const std::string page = runs_report_html(many);
    for (const char* style : {"line a\"", "line a dashed\"", "line a dotted\"", "line h dashed\""})
        CHECK_MESSAGE(has(page, style), style);
    CHECK(has(page, ".line.dashed { stroke-dasharray"));
}

TEST_CASE("the table of several runs has a row for each, and the columns that any of them fills") {
    const std::string page =
        runs_report_html({{"first", log_of(4, 9, true)}, {"second", log_of(5, 7, false)}});
    const std::string table = page.substr(page.find("<table class=\"runs\">"), 2000);
    CHECK(has(table,
              "first</th><td>1.25</td><td>2.5</td><td>1.00k</td><td>9</td><td>576</td><td>9.0s</td><td>not "
              "ended yet</td></tr>"));
    CHECK(has(table,
              "second</th><td>–</td><td>–</td><td>1.00k</td><td>7</td><td>448</td><td>7.0s</td><td>not ended "
              "yet</td></tr>"));
    CHECK_FALSE(has(table, "outliers"));
    const std::string skipping =
        log_of(4, 9, true) + R"({"event":"end","step":9,"seconds":9,"skipped":2})" + "\n";
    CHECK(has(runs_report_html({{"skipping", skipping}}), "<th>steps skipped as outliers</th>"));
}

TEST_CASE("the table of several runs says of each how it ended, as its own report does") {
    const std::pair<const char*, const char*> endings[] = {
        {R"({"event":"end","step":9,"reason":"steps"})", "ended after its last step"},
        {R"({"event":"end","step":9,"reason":"time"})", "ended when its time was up"},
        {R"({"event":"end","step":9,"reason":"overfitting"})", "ended as the model was overfitting"},
        {R"({"event":"end","step":9,"reason":"memorised"})", "ended as the model was overfitting"},
        {R"({"event":"end","step":9,"reason":"signal"})", "stopped by a signal"},
        {R"({"event":"diverged","step":10,"loss":"nan"})", "ended as its numbers were no longer finite"}};
    std::vector<std::string> logs;
    for (const auto& [record, words] : endings) logs.push_back(log_of(4, 9, false) + record + "\n");
    std::vector<NamedLog> runs;
    for (const std::string& log : logs) runs.push_back({"run " + std::to_string(runs.size()), log});
    const std::string page = runs_report_html(runs);
    CHECK(has(page, "<th>ending</th>"));
    for (std::size_t i = 0; i < logs.size(); i++) {
        CHECK(has(page, "<td>" + std::string(endings[i].second) + "</td>"));
        CHECK(has(report_html(logs[i], "one"), endings[i].second));
    }
}

TEST_CASE("texts that are evaluated by themselves have a chart each, with a line for every run") {
    const auto log = [](const std::string& texts) {
        return log_of(4, 9, false) + R"({"event":"eval","step":5,"loss":1.25,"seconds":5,"texts":)" + texts +
               "}\n";
    };
    const std::string both = log(R"([{"name":"a.txt","loss":1.5},{"name":"<b>","loss":1}])"),
                      first = log(R"([{"name":"a.txt","loss":1.75},7,{"loss":"x"}])"), odd = log("3");
    const std::string page = runs_report_html({{"one", both}, {"two", first}, {"three", odd}});
    for (const char* part : {"<h2>Loss of a.txt</h2>", "<h2>Loss of &lt;b&gt;</h2>", "5: 1.5<", "5: 1.75<"})
        CHECK_MESSAGE(has(page, part), part);
    CHECK(count(page, "<h2>Loss of ") == 2);
    CHECK(count(runs_report_html({{"three", odd}}), "<h2>Loss of ") == 0);
}

TEST_CASE("learning rates of groups are drawn, in a run's report and in that of several") {
    std::string log =
        R"({"event":"start","config":{"train":{"groups":[{"match":"norm*"},{"match":["a","<b>"]}]}}})"
        "\n";
    for (const char* step : {"1", "2", "3"})
        log += std::string(R"({"event":"step","step":)") + step +
               R"(,"loss":2,"lr":0.001,"grad_norm":0.5,"group_lr":[0.0625,0.125]})" + "\n";
    const std::string plain = log_of(4, 3, false);
    for (const std::string& page : {report_html(log, "one"), runs_report_html({{"g", log}, {"p", plain}})}) {
        CHECK(has(page, "Of each group of train.groups, and of parameters in none."));
        for (const char* part : {"in no group", "norm*", "a, &lt;b&gt;", "3: 0.0625<", "3: 0.125<"})
            CHECK_MESSAGE(has(page, part), part);
    }
    CHECK(has(runs_report_html({{"g", log}, {"p", plain}}), "<h2>Learning rates of g</h2>"));
    CHECK_FALSE(has(runs_report_html({{"p", plain}}), "Learning rates of"));
    CHECK(has(report_html(plain, "one"), "Warm-up, then decay."));
    for (const char* odd : {"7", "{}", "[\"x\",null]", "[]"})
        CHECK(has(
            report_html(R"({"event":"step","step":1,"lr":1,"group_lr":)" + std::string(odd) + "}\n", "odd"),
            "</html>"));
}

TEST_CASE("a run's long name stands at its line's end as far as there is room, and whole in the legend") {
    const std::string name = "größer-als-je-" + std::string(60, 'x');
    const std::string page = runs_report_html({{name, log_of(4, 9, true)}, {"second", log_of(5, 7, false)}});
    CHECK(has(page, ">größer-als-je-xxxx"));
    CHECK(has(page, "x…</text>"));
    CHECK_FALSE(has(page, name + "</text>"));
    CHECK(has(page, "\"></span>" + name + " "));
}

TEST_CASE("linnet report takes runs' folders and logs, and refuses what is none") {
    Workplace work;
    write_text(work.s / "config", tiny_config());
    CHECK(work("for n in a b; do $LINNET train config --data text --threads 1 --out $n --steps 12 --quiet || "
               "exit; "
               "done; mkdir c empty; cp a/log.jsonl c/")
              .exit == 0);
    Outcome outcome = work("$LINNET report a b c/log.jsonl -o page.html");
    CHECK(outcome.exit == 0);
    CHECK(has(outcome.err, "wrote page.html"));
    const std::string page = work.file("page.html");
    CHECK(has(page, "3 training runs"));
    CHECK(has(page, "Validation loss, against FLOPs"));
    Outcome none = work("$LINNET report a empty -o other.html");
    CHECK(none.exit == 3);
    CHECK(is_one_error_line(none.err));
    CHECK(has(none.err, "log.jsonl"));
    CHECK(work("$LINNET report nothing -o other.html").exit == 4);
    none = work("head -c 3000 /dev/urandom > c/log.jsonl; $LINNET report a c -o other.html");
    CHECK(none.exit == 3);
    CHECK(has(none.err, "c/log.jsonl: expected a log of a training run, got a file without a record of one"));
    const Outcome onto = work("$LINNET report a -o a/log.jsonl --overwrite");
    CHECK(onto.exit == 2);
    CHECK_MESSAGE(has(onto.err, "--out: expected another file than the logs"), onto.err);
    CHECK(work("$LINNET report -o other.html").exit == 2);
    CHECK(work("$LINNET report a").exit == 2);
}

TEST_CASE("bench train --profile tells time, arithmetic and share by op and direction") {
    Workplace work;
    write_text(work.s / "config", tiny_config());
    Outcome outcome = work("$LINNET bench train config --steps 2 --threads 1 --profile");
    CHECK(outcome.exit == 0);
    for (const char* part : {"op by op", "linear             forward", "linear             backward",
                             "cross_entropy      both", "adamw              update"})
        CHECK_MESSAGE(has(outcome.out, part), part << "\n" << outcome.out);
    Outcome json = work("$LINNET bench train config --steps 2 --threads 1 --profile --json");
    CHECK(json.exit == 0);
    const auto record = nlohmann::json::parse(json.out);
    double share = 0;
    for (const auto& entry : record["profile"]) share += entry["share"].get<double>();
    CHECK(share == doctest::Approx(1));
}

TEST_CASE("bench train counts the arithmetic of whole steps as its profile does op by op, experts' too") {
    Workplace work;
    write_text(work.s / "config", tiny_config());
    for (const char* more :
         {"", " --set train.accumulate=3",
          " --set model.experts.count=8 --set model.experts.used=2 --set model.experts.width=16 "
          "--set model.ffn.bias=false"}) {
        CAPTURE(more);
        const Outcome timed =
            work("$LINNET bench train config --steps 1 --threads 1 --profile --json" + std::string(more));
        REQUIRE_MESSAGE(timed.exit == 0, timed.err);
        const auto record = nlohmann::json::parse(timed.out);
        double flops = 0;
        for (const auto& entry : record["profile"])
            flops += entry["ms"].get<double>() * entry["flops_per_s"].get<double>();
        CHECK(flops > 0);
        CHECK(flops ==
              doctest::Approx(record["step_ms"].get<double>() * record["flops_per_s"].get<double>()));
    }
}
