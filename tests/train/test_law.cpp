#include "train/law.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <sstream>

#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

TEST_CASE("the law expects less of a smaller model and of less text, and never the impossible") {
    double before = INFINITY;
    for (double parameters = 1e4; parameters < 1e10; parameters *= 3) {
        const double bits = expected_bits({parameters, 1e7, 1e8});
        CHECK(bits < before);
        CHECK(bits > 0.5);
        before = bits;
    }
    before = INFINITY;
    for (double bytes = 1e3; bytes < 1e13; bytes *= 3) {
        const double bits = expected_bits({1e6, bytes, 1e15});
        CHECK(bits < before);
        before = bits;
    }
    CHECK(std::isfinite(expected_bits({0, 0, 0})));
}

TEST_CASE("what is read again is worth less each time, and has a limit") {
    CHECK(effective_bytes(5e6, 1e7) == 5e6);
    CHECK(effective_bytes(1e7, 1e7) == 1e7);
    double before = 1e7, gained = INFINITY;
    for (int times = 2; times <= 64; times *= 2) {
        const double now = effective_bytes(times * 1e7, 1e7);
        CHECK(now > before);
        CHECK(now < times * 1e7);
        CHECK((now - before) / times < gained);
        gained = (now - before) / times, before = now;
    }
    // Of few readings nearly all counts (Muennighoff et al. 2023: up to four).
    CHECK(effective_bytes(4e7, 1e7) > 3.7e7);
    CHECK(effective_bytes(1e12, 1e7) < 1.7e8);
}

TEST_CASE("twice the parameters want twice the text: both powers are one") {
    // Where models of N and 2 N parameters end alike at the same arithmetic, so do 2 N and 4 N at four times
    // as much.
    const auto gain = [](double parameters, double bytes) {
        return expected_bits({parameters, bytes, 1e15}) - expected_bits({2 * parameters, bytes / 2, 1e15});
    };
    double low = 1e3, high = 1e12;  // bytes at which the larger one is no better yet, and is better
    REQUIRE(gain(1e6, low) < 0);
    REQUIRE(gain(1e6, high) > 0);
    for (int i = 0; i < 100; i++) (gain(1e6, std::sqrt(low * high)) < 0 ? low : high) = std::sqrt(low * high);
    CHECK(gain(2e6, 2 * low) == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("a text's own level is a short run's, and no text is forecast to have no bits left") {
    const double expected = expected_bits({1e6, 1e6, 1e8});
    for (double found : {0.01, 0.5, 1.0, 2.0, 8.0}) {
        const LawCheck check{expected, found};
        CHECK(bits_of_text(expected, check) == doctest::Approx(found));
        double before = found;
        for (double bytes = 2e6; bytes < 1e12; bytes *= 4) {
            const double bits = bits_of_text(expected_bits({1e6, bytes, 1e15}), check);
            CHECK(bits < before);
            CHECK(bits > 0);
            before = bits;
        }
    }
}

TEST_CASE("the law is the one that its runs give, and models/RESULTS.md tells how far it is off") {
    const fs::path checkout = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    if (!fs::exists(checkout / "tools/law_runs.txt")) return test::skip("needs the checkout's tools/");
    std::istringstream runs(test::read_text(checkout / "tools/law_runs.txt"));
    const std::string told = test::read_text(checkout / "models/RESULTS.md");
    int count = 0;
    double balance = 0, squares = 0;
    for (std::string line; std::getline(runs, line);) {
        LawPoint run;
        double found = 0;
        if (line.starts_with('#')) continue;
        REQUIRE(std::sscanf(line.c_str(), "%lf %lf %lf %lf", &run.parameters, &run.bytes_read,
                            &run.text_bytes, &found) == 4);
        const double error = expected_bits(run) / found - 1;
        char row[64];
        std::snprintf(row, sizeof row, "| %.3f | %.3f (%+.1f %%) |", found, expected_bits(run), 100 * error);
        CHECK_MESSAGE(test::has(told, row), "models/RESULTS.md lacks " << std::string(row));
        count++, balance += error / found, squares += error * error;
    }
    CHECK(count >= 9);
    // Of least squares of relative errors: nothing is left of them in the direction of the constant.
    CHECK(std::fabs(balance / count) < 1e-3);
    CHECK(std::sqrt(squares / count) < 0.02);
}
