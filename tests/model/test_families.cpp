// Models of the families in models/architectures, held to the logits that llama.cpp gave for the same files
// (families.py makes the files; families.json has the numbers).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support.h"

using namespace linnet;

TEST_CASE("files of every family get llama.cpp's logits") {
    test::Scratch scratch;
    if (test::run_shell("command -v python3").exit != 0)
        return test::skip("needs python3, which makes the files");
    test::Outcome made = test::run_shell("python3 tests/model/families.py '" + scratch.path + "'");
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    auto recorded = nlohmann::json::parse(test::read_text("tests/model/families.json"));
    CHECK(recorded["logits"].size() >= 17);
    for (const auto& [name, theirs] : recorded["logits"].items()) {
        CAPTURE(name);
        test::Outcome outcome = test::run_linnet({"inspect", "logits", "-m", scratch / (name + ".gguf"), "-p",
                                                  recorded["text"].get<std::string>()});
        REQUIRE_MESSAGE(outcome.exit == 0, outcome.err);
        std::istringstream lines(outcome.out);
        std::vector<double> ours;
        for (double x; lines >> x;) ours.push_back(x);
        REQUIRE(ours.size() == theirs.size());
        auto n = static_cast<double>(ours.size());
        double mean = 0, variance = 0, error = 0;
        std::size_t top = 0;
        for (std::size_t i = 0; i < ours.size(); i++) {
            mean += theirs[i].get<double>() / n;
            if (theirs[i].get<double>() > theirs[top].get<double>()) top = i;
        }
        for (std::size_t i = 0; i < ours.size(); i++) {
            variance += std::pow(theirs[i].get<double>() - mean, 2) / n;
            error += std::pow(theirs[i].get<double>() - ours[i], 2) / n;
        }
        CHECK(std::sqrt(error) < 0.02 * std::sqrt(variance));  // llama.cpp keeps keys and values as f16
        CHECK(ours[top] > *std::max_element(ours.begin(), ours.end()) - 0.02 * std::sqrt(variance));
    }
}
