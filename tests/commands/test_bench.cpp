// linnet bench, on a model that the program made itself.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

TEST_CASE("bench prints the keys that it promises") {
    json model = json::parse(
        run_linnet({"bench", "-m", tiny_model(), "-p", "16", "-n", "8", "-r", "1", "--json"}).out);
    for (const char* key : {"pp_tps", "pp_flops_per_s", "tg_tps", "tg_bytes_per_s", "load_s", "peak_rss_mib"})
        CHECK(model.at(key).get<double>() > 0);
    CHECK(model.at("pp_least") == model.at("pp_most"));
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    json tokens =
        json::parse(run_linnet({"bench", "tokenize", "-m", tiny_model(), scratch / "text", "--json"}).out);
    CHECK(tokens.at("mb_per_s").get<double>() > 0);
    json steps =
        json::parse(run_linnet({"bench", "train", scratch / "config", "--steps", "2", "--json"}).out);
    for (const char* key : {"step_ms", "tokens_per_s", "flops_per_s", "mfu"})
        CHECK(steps.at(key).get<double>() > 0);
}

TEST_CASE("bench --profile has a line for each op and type of weights, in shares that make 100 %") {
    Outcome outcome =
        run_linnet({"bench", "-m", tiny_model(), "-p", "16", "-n", "2", "-r", "1", "--profile"});
    CHECK(outcome.exit == 0);
    for (const char* part : {"reading op by op", "writing op by op"}) {
        std::istringstream lines(outcome.out.substr(outcome.out.find(part)));
        std::string line;
        double shares = 0;
        bool product = false;
        std::getline(lines, line);
        while (std::getline(lines, line) && !line.empty()) {
            product |= line.find("linear") != std::string::npos && line.find("f32") != std::string::npos;
            shares += std::stod(line.substr(line.find(" ms") + 3));
        }
        CHECK(product);
        CHECK(shares > 99);
        CHECK(shares < 101);
    }
    const json record = json::parse(
        run_linnet({"bench", "-m", tiny_model(), "-p", "16", "-n", "2", "-r", "1", "--profile", "--json"})
            .out);
    for (const char* part : {"reading", "writing"}) {
        double share = 0;
        for (const json& row : record.at("profile").at(part)) share += row.at("share").get<double>();
        CHECK(share == doctest::Approx(1));
    }
}

TEST_CASE("bench machine measures what it promises") {
    const json peaks = json::parse(run_linnet({"bench", "machine", "--json"}).out);
    CHECK(peaks.at("f32_flops").get<double>() > 0);
    CHECK(peaks.at("memory_read_bytes_per_s").get<double>() > 0);
    const int streams = peaks.at("memory_read_streams").get<int>();
    CHECK((streams == 1 || streams == 4 || streams == 8));
}
