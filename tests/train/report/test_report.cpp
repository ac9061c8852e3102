#include <doctest/doctest.h>

#include <cmath>

#include "support.h"
#include "train/live.h"
#include "train/report/chart.h"
#include "train/report/logged_run.h"
#include "train/report/report.h"

using namespace linnet;
using linnet::test::has;

namespace {

const std::string start =
    R"({"event":"start","config":{"model":{"width":128,"ffn":{"gated":false}}},"parameters":804096,"isa":"avx2"})"
    "\n";

std::string step(int n, double loss) {
    return R"({"event":"step","step":)" + std::to_string(n) + R"(,"loss":)" + std::to_string(loss) +
           R"(,"lr":0.001,"grad_norm":0.5,"tokens_per_s":1000,"mfu":0.5,"seconds":)" + std::to_string(n) +
           "}\n";
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
    return n;
}

}  // namespace

TEST_CASE("a report shows curves, config, samples and where it comes from, on one page") {
    std::string log = start;
    for (int n = 1; n <= 10; n++) log += step(n, 4.0 - 0.1 * n);
    log += R"({"event":"eval","step":5,"loss":3.75,"bpb":5.41})"
           "\n";
    log += R"({"event":"sample","step":5,"text":"ROMEO: <b>&\""})"
           "\n";
    log += R"({"event":"end","step":10,"seconds":65,"reason":"steps"})"
           "\n";
    std::string page = report_html(log, "my <run>");
    CHECK(page.starts_with("<!doctype html>"));
    CHECK(has(page, "<h1>my &lt;run&gt;</h1>"));
    CHECK(has(page, "ended after its last step"));
    CHECK(has(page, "ROMEO: &lt;b&gt;&amp;&quot;"));
    CHECK_FALSE(has(page, "<b>&"));
    CHECK(has(page, "<th>model.ffn.gated</th><td>false</td>"));
    CHECK(has(page, "<th>isa</th><td>avx2</td>"));
    CHECK(has(page, "<b>804k</b>"));
    CHECK(has(page, "<b>3.75</b>"));
    CHECK(has(page, "<b>1m 05s</b>"));
    CHECK(count(page, "<svg class=\"wide\"") == 5);  // loss, rate, norm, speed, share
    CHECK(count(page, "<svg class=\"narrow\"") == 5);
    CHECK_FALSE(has(page, "<script"));
    CHECK_FALSE(has(page, "http"));  // nothing is fetched from anywhere
}

TEST_CASE("a report of a run whose numbers were no longer finite says so, until it is resumed") {
    const std::string broken = start + step(1, 4) + R"({"event":"diverged","step":2,"loss":"nan"})" + "\n";
    CHECK(has(report_html(broken, "run"), "no longer finite"));
    CHECK(has(report_html(broken + R"({"event":"resume","step":1})" + "\n", "run"), "not ended yet"));
}

TEST_CASE("a report shows what was taken for what at the last evaluation, and passes over what is none") {
    auto told = [](int step, const std::string& labels, const std::string& counts) {
        return R"({"event":"confusion","step":)" + std::to_string(step) + ",\"labels\":" + labels +
               ",\"counts\":" + counts + "}\n";
    };
    const std::string last = told(2, R"(["cat","<dog>"])", "[[3,1],[0,5]]");
    std::string page = report_html(start + told(1, R"(["bird"])", "[[7]]") + last, "classes");
    CHECK(has(page, "at step 2"));
    CHECK_FALSE(has(page, "bird"));
    CHECK(has(page, "<tr><th></th><th>cat</th><th>&lt;dog&gt;</th></tr>"));
    CHECK(has(page,
              "<tr><th>cat</th><td><i style=\"opacity:0.56\"></i><span>3</span></td>"
              "<td><i style=\"opacity:0.19\"></i><span>1</span></td></tr>"));
    CHECK(has(page, "<th>&lt;dog&gt;</th><td><i style=\"opacity:0.00\"></i><span></span></td>"));
    CHECK_FALSE(has(report_html(start + last + R"({"event":"resume","step":1})" + "\n", "r"), "taken for"));
    for (const char* counts : {"3", "{}", "[]", "[3]", "[[\"x\",-2],{}]", "[null,[1e999]]", "[[1,2,3,4]]"})
        CHECK(report_html(start + told(1, R"(["a",{"b":1}])", counts), "odd").ends_with("</html>\n"));
    CHECK_FALSE(has(report_html(start + told(1, "3", "[[1]]"), "odd"), "taken for"));
}

TEST_CASE("of an objective whose losses do not compare a report shows the last evaluation") {
    const auto eval = [](int step, double loss, const std::string& more) {
        return R"({"event":"eval","step":)" + std::to_string(step) + R"(,"loss":)" + std::to_string(loss) +
               more + "}\n";
    };
    CHECK(
        has(report_html(start + eval(1, 2, "") + eval(2, 3, ""), "r"), "<b>2</b><span>best validation loss"));
    const std::string generator = R"(,"generator_loss":4)";
    CHECK(has(report_html(start + eval(1, 2, generator) + eval(2, 3, generator), "r"),
              "<b>3</b><span>last validation loss"));
}

TEST_CASE("a report shows how experts are used, and passes over what is no record of it") {
    std::string page = report_html(
        start + step(1, 4) +
            R"({"event":"experts","step":1,"layers":[{"layer":0,"shares":[0.5,0.5]},{"layer":1,"shares":[0.9,0.1]}]})"
            "\n" +
            R"({"event":"experts","step":2,"layers":[3,{"layer":{},"shares":"x"},{"shares":[]},{"layer":2,"shares":[0.25,"y"]}]})"
            "\n" +
            R"({"event":"experts","step":3,"layers":"none"})"
            "\n",
        "mixture");
    CHECK(has(page, "Use of experts"));
    CHECK(has(page, "busiest"));
    CHECK_FALSE(has(page, "layer 2"));  // of the last record alone
    page = report_html(
        start + R"({"event":"experts","step":1,"layers":[{"layer":1,"shares":[0.9,0.1]}]})" + "\n",
        "mixture");
    CHECK(has(page, "<span>layer 1</span>"));
    CHECK(has(page, "title=\"expert 0: 1.8\""));
    CHECK_FALSE(has(report_html(start + step(1, 4), "plain"), "experts"));
}

TEST_CASE("steps done again after a resume stand once, and a cut line is passed over") {
    std::string log = start + step(1, 4) + step(2, 3.5) + step(3, 99) + R"({"event":"step","st)";
    log +=
        "\n"
        R"({"event":"resume","step":2})"
        "\n" +
        step(3, 3.25);
    std::string page = report_html(log, "run");
    CHECK_FALSE(has(page, "3: 99<"));
    CHECK(has(page, "3: 3.25<"));
    CHECK(has(page, "<th>resumed</th><td>1 time</td>"));
    CHECK(has(page, "not ended yet"));
}

TEST_CASE("a report shows the number of steps that the run came to have") {
    const std::string first = R"({"event":"start","config":{"train":{"steps":799}}})"
                              "\n",
                      plan = R"({"event":"plan","step":1,"steps":741})"
                             "\n",
                      resume = R"({"event":"resume","step":1,"steps":900})"
                               "\n";
    CHECK(has(report_html(first, "run"), "<th>train.steps</th><td>799</td>"));
    CHECK(has(report_html(first + plan, "run"), "<th>train.steps</th><td>741</td>"));
    CHECK(has(report_html(first + plan + resume, "run"), "<th>train.steps</th><td>900</td>"));
    for (const char* odd : {"[]", "5", "{\"train\":[]}", "null"})
        CHECK(has(report_html(R"({"event":"start","config":)" + std::string(odd) + "}\n" + plan, "run"),
                  "</html>"));
}

TEST_CASE("a report of nothing, of nonsense and of values that are no numbers is still a page") {
    for (const std::string& log :
         {std::string(), std::string("null\n[]\n{}\n\xFF\n{\"event\":5}\n{\"event\":\"sample\"}\n"), start,
          start + R"({"event":"step","step":1,"loss":null})"
                  "\n",
          start + R"({"event":"step","step":"x","loss":"y"})"
                  "\n"}) {
        std::string page = report_html(log, "run");
        CHECK(page.ends_with("</html>\n"));
        CHECK_FALSE(has(page, "nan<"));
        CHECK_FALSE(has(page, "inf<"));
        CHECK_FALSE(has(page, "\"nan"));
    }
}

TEST_CASE("a million steps make a small page") {
    std::string log = start;
    for (int n = 1; n <= 100000; n++) log += step(n, 2 + 1.0 / n);
    CHECK(report_html(log, "run").size() < 500000);
}

TEST_CASE("a generator's held-out loss has a chart") {
    auto page = [](const std::string& more) {
        return report_html(start + R"({"event":"eval","step":1,"loss":0.2)" + more + "}\n", "run");
    };
    CHECK(has(page(R"(,"generator_loss":8)"), "Loss of the generator"));
    CHECK_FALSE(has(page(""), "Loss of the generator"));
}

TEST_CASE("a run of any length is read back into so many records, the last and the best among them") {
    std::string log = start;
    auto eval = [](int n, double loss) {
        return R"({"event":"eval","step":)" + std::to_string(n) + R"(,"loss":)" + std::to_string(loss) +
               "}\n";
    };
    const int steps = 5 * static_cast<int>(LoggedRun::most_steps) + 7;
    for (int n = 1; n <= steps; n++) {
        log += step(n, n);
        if (n % 20 == 0)
            log += eval(n, n == 400 ? 1.5 : 2) + R"({"event":"sample","step":)" + std::to_string(n) +
                   ",\"text\":\"x\"}\n";
    }
    LoggedRun run = read_logged_run(log);
    CHECK(run.steps.size() <= LoggedRun::most_steps);
    CHECK(run.steps.size() > LoggedRun::most_steps / 2);
    CHECK(run.evals.size() <= LoggedRun::most_records);
    CHECK(run.samples.size() <= LoggedRun::most_records);
    REQUIRE(best_eval(run));
    CHECK(number_of(*best_eval(run), "step") == 400);
    CHECK(run.steps.rbegin()->first == steps);
    CHECK(number_of(run.steps.rbegin()->second, "loss") == steps);
    CHECK(run.evals.rbegin()->first == steps / 20 * 20);
    // Means of the steps that they stand for: those lie at and before their places.
    std::int64_t before = 0;
    for (const auto& [at, record] : run.steps) {
        CHECK(number_of(record, "loss") == doctest::Approx(static_cast<double>(before + 1 + at) / 2));
        before = at;
    }
    // A resume takes back what came after it.
    run = read_logged_run(log + R"({"event":"resume","step":400})" + "\n" + step(401, 7));
    CHECK(run.steps.rbegin()->first == 401);
    CHECK(run.evals.rbegin()->first <= 400);
}

TEST_CASE("write_report names the page after its folder") {
    test::Scratch scratch;
    write_report(scratch / "report.html", read_logged_run(start + step(1, 4)));
    std::string folder = scratch.path.substr(scratch.path.rfind('/') + 1);
    CHECK(has(test::read_text(scratch / "report.html"), "<h1>" + folder + "</h1>"));
}

TEST_CASE("ticks are round, cover the range and keep to their number") {
    CHECK(ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
    CHECK(ticks(1.4, 4.2, 6) == std::vector<double>{1.5, 2, 2.5, 3, 3.5, 4});
    for (double high : {1e-9, 0.37, 1.0, 99.0, 12345.0, 1e15})
        for (int n = 2; n < 12; n++) {
            auto t = ticks(0, high, n);
            CHECK(t.size() >= 2);
            CHECK(t.size() <= static_cast<std::size_t>(n) + 1);
            CHECK(t.back() <= high * (1 + 1e-6));
        }
    CHECK(ticks(0x1p60, 0x1p60 + 1024, 8).size() < 11);  // steps that make no difference end
    Chart chart;
    chart.series = {{"one", "a", {4e15}, {1}}};
    CHECK_FALSE(has(svg(chart), "nan"));
}

TEST_CASE("the longest number beside an axis leaves room for the axis's label") {
    Chart chart;
    chart.y_label = "rate";
    chart.y_from_zero = true;
    chart.width = Chart::narrow;
    for (double high : {3.0, 0.00123, 0.001, 1234.5}) {
        chart.series = {{"one", "a", {1, 2}, {0, high}}};
        const std::string page = svg(chart), ends = "text-anchor=\"end\" class=\"tick\">";
        int ticks_seen = 0;
        for (std::size_t at = 0; (at = page.find(ends, at)) != std::string::npos; at++, ticks_seen++) {
            const std::size_t begin = at + ends.size();
            const double right = std::stod(page.substr(page.rfind("x=\"", at) + 3));
            const auto letters = static_cast<double>(page.find('<', begin) - begin);
            CHECK_MESSAGE(right - 7 * letters >= 20, high);  // the label stands at 12
        }
        CHECK(ticks_seen > 1);
    }
}

TEST_CASE("lines that end together at the bottom keep their names inside of the chart") {
    for (std::size_t lines : {2, 9, 40}) {
        Chart chart;
        chart.height = 220;
        for (std::size_t i = 0; i < lines; i++)
            chart.series.push_back({"run", "a", {1, 2}, {3, 1 + 1e-4 * static_cast<double>(i)}});
        chart.series.push_back({"top", "a", {1, 2}, {3, 3}});
        const std::string page = svg(chart), name = "class=\"name";
        double before = 0;
        std::size_t seen = 0;
        for (std::size_t at = 0; (at = page.find(name, at)) != std::string::npos; at++, seen++) {
            const double y = std::stod(page.substr(page.rfind(" y=\"", at) + 4));
            CHECK_MESSAGE(y > before, lines);
            CHECK_MESSAGE(y < chart.height, lines);
            if (lines < 10 && seen > 0) CHECK(y - before > 14.8);  // as high as a letter is
            before = y;
        }
        CHECK(seen == lines + 1);
    }
}

TEST_CASE("a number that is rounded up to the next unit has that unit") {
    for (const auto& [value, says] : {std::pair{9999.4, "9999"},
                                      {9999.7, "10k"},
                                      {12300.0, "12.3k"},
                                      {-9999.7, "-10k"},
                                      {999'400.0, "999k"},
                                      {999'936.0, "1M"},
                                      {999'999'999.0, "1G"},
                                      {1e15, "1P"},
                                      {0.0, "0"},
                                      {1234.56, "1235"}})
        CHECK(short_number(value) == says);
}

TEST_CASE("the live line leaves out what matters least where the terminal is narrow") {
    Progress p;
    p.step = 120;
    p.steps = 2000;
    p.loss = 2.9131;
    p.validation = 3.02;
    p.lr = 9.8e-4;
    p.tokens_per_s = 41234;
    p.peak_share = 0.571;
    p.seconds_left = 130;
    CHECK(
        progress_line(p, 200) ==
        "step  120/2000    6%  loss 2.913  val 3.020  lr 9.8e-04  41.2k tokens/s  57% of peak  2m 10s left");
    CHECK(progress_line(p, 79) == "step  120/2000    6%  loss 2.913  val 3.020  41.2k tokens/s  2m 10s left");
    CHECK(progress_line(p, 30) == "step  120/2000  loss 2.913");
    CHECK(progress_line(p, 1) == "step  120/2000");
    p.validation = p.peak_share = NAN;
    CHECK_FALSE(has(progress_line(p, 200), "val"));
    CHECK_FALSE(has(progress_line(p, 200), "peak"));
}
