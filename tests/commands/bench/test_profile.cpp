#include "commands/bench/profile.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("a profile has of each op the median of its times in several rounds") {
    const auto round = [](double linear, double norm, double written) {
        ModelProfile one;
        one.reading = {{"linear", "f32", linear, 2e9, 8}, {"norm", "", norm}};
        one.writing = {{"linear", "f32", written, 2, 4e9}};
        one.written = 2;
        return one;
    };
    // One round has a slow product, another a slow norm: no round's times are those of the table.
    const ModelProfile median = median_profile({round(0.9, 0.1, 4), round(0.2, 0.8, 2), round(0.3, 0.2, 3)});
    CHECK(median.rounds == 3);
    CHECK(median.written == 2);
    REQUIRE(median.reading.size() == 2);
    CHECK(median.reading[0].seconds == 0.3);
    CHECK(median.reading[1].seconds == 0.2);
    CHECK(median.reading[0].flops == 2e9);
    REQUIRE(median.writing.size() == 1);
    CHECK(median.writing[0].seconds == 3);
    const nlohmann::ordered_json told = profile_json(median);
    CHECK(told["reading"][0]["ms"].get<double>() == doctest::Approx(300));
    CHECK(told["reading"][0]["share"].get<double>() == doctest::Approx(0.6));
    CHECK(told["writing"][0]["ms"].get<double>() == doctest::Approx(1500));  // of a token
    const std::string text = profile_text(median, 1);
    CHECK(has(text, "reading op by op, 0.500 s, medians of 3 rounds;"));
    CHECK(has(text, "writing op by op, 1.500 s per token, medians of 3 rounds;"));
    CHECK(has(profile_text(median_profile({round(1, 1, 1)}), 1), "2.000 s, one round;"));
}
