#include <doctest/doctest.h>

#include <cmath>

#include "commands/records.h"
#include "commands/tiny.h"

using namespace linnet::test;

TEST_CASE("inspect attention tells what each head does, as a table and as JSON") {
    Workplace at;
    const std::string model = " -m '" + tiny_model() + "' -p 'one two one two'";
    const Outcome table = at("\"$LINNET\" inspect attention" + model);
    CHECK(table.exit == 0);
    CHECK(table.out.starts_with("layer            head   entropy     first       own  previous induction\n"));
    const Outcome json = at("\"$LINNET\" inspect attention --json" + model);
    REQUIRE(json.exit == 0);
    const auto heads = records(json.out);
    REQUIRE(!heads.empty());
    CHECK(static_cast<std::size_t>(std::count(table.out.begin(), table.out.end(), '\n')) == heads.size() + 1);
    for (const auto& head : heads) {
        const auto& rows = head["weights"];
        CHECK(rows.size() == head["queries"].size());
        for (std::size_t q = 0; q < rows.size(); q++) {
            double sum = 0;
            for (std::size_t k = 0; k < rows[q].size(); k++) {
                sum += rows[q][k].get<double>();
                if (k > q) CHECK(rows[q][k].get<double>() == 0);
            }
            CHECK(std::abs(sum - 1) < 1e-4);
        }
        double own = 0;
        for (std::size_t q = 0; q < rows.size(); q++)
            own += rows[q][q].get<double>() / static_cast<double>(rows.size());
        CHECK(std::abs(own - head["own"].get<double>()) < 1e-5);
    }
    CHECK(heads[0]["queries"][0] == "o");
    CHECK(heads[0]["queries"][3] == "␣");
}

TEST_CASE("inspect attention writes a page, and replaces none unless told") {
    Workplace at;
    const std::string line = "\"$LINNET\" inspect attention -p 'one & two' --html a/page.html";
    CHECK(at(line).exit == 0);
    const std::string page = at.file("a/page.html");
    CHECK(page.find("data:image/png;base64,iVBORw0KGgo") != std::string::npos);
    CHECK(page.find("&amp;") != std::string::npos);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.ends_with("</html>\n"));
    CHECK(page.rfind("<style>") < page.find("</head>"));
    CHECK(has(page, ".heads {"));
    CHECK(at(line).exit == 2);
    CHECK(at(line + " --overwrite").exit == 0);
}

TEST_CASE("inspect attention refuses what it cannot show") {
    Workplace at;
    const Outcome longer = at("\"$LINNET\" inspect attention -m '" + tiny_model() + "' -f text");
    CHECK(longer.exit == 3);
    CHECK(is_one_error_line(longer.err));
    const Outcome answer = at("\"$LINNET\" inspect attention -m '" + tiny_model() + "' -p one --answer two");
    CHECK(answer.exit == 2);
    CHECK(answer.err.find("expected an encoder-decoder") != std::string::npos);
}
