// linnet eval, on a model that the program made itself.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

TEST_CASE("eval prints the mean over disjoint windows, as text and as JSON") {
    Scratch scratch;
    write_text(scratch / "text", counting_text().substr(0, 320 + 7));
    Outcome line = run_linnet({"eval", "-m", tiny_model(), "--file", scratch / "text"});
    CHECK(line.exit == 0);
    double nll, ppl, bpb;
    long tokens;
    REQUIRE(std::sscanf(line.out.c_str(), "nll %lf  ppl %lf  bpb %lf  tokens %ld\n", &nll, &ppl, &bpb,
                        &tokens) == 4);
    CHECK(tokens == 10 * 31);  // the last 7 characters are no window
    CHECK(ppl == doctest::Approx(std::exp(nll)).epsilon(1e-3));
    CHECK(bpb == doctest::Approx(nll / std::log(2.0)).epsilon(1e-3));  // a character is a byte here
    CHECK(nll < 2.9);                                                  // below chance: ln 19
    Outcome object = run_linnet({"eval", "-m", tiny_model(), "--file", scratch / "text", "--json"});
    json score = json::parse(object.out);
    CHECK(score["nll"].get<double>() == doctest::Approx(nll).epsilon(1e-5));
    CHECK(score["tokens"] == tokens);
    Outcome two = run_linnet(
        {"eval", "-m", tiny_model(), "--file", scratch / "text", "--ctx", "16", "--windows", "2", "--json"});
    CHECK(json::parse(two.out)["tokens"] == 2 * 15);
}

TEST_CASE("eval's figure is what the logits say") {
    Scratch scratch;
    std::string text = "one two three fo";
    write_text(scratch / "text", text);
    double sum = 0;
    std::istringstream ids(
        run_linnet({"generate", "-m", tiny_model(), "-p", text, "-n", "0", "--echo", "--format", "ids"}).out);
    std::vector<int> tokens;
    for (int id; ids >> id;) tokens.push_back(id);
    REQUIRE(tokens.size() == text.size());
    for (std::size_t i = 1; i < text.size(); i++) {
        std::istringstream in(
            run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", text.substr(0, i)}).out);
        double z = 0, target = 0;
        int id = 0;
        for (double x; in >> x; id++) {
            z += std::exp(x);
            if (id == tokens[i]) target = x;
        }
        sum += std::log(z) - target;
    }
    json score = json::parse(
        run_linnet({"eval", "-m", tiny_model(), "--file", scratch / "text", "--ctx", "16", "--json"}).out);
    CHECK(score["nll"].get<double>() == doctest::Approx(sum / 15).epsilon(1e-4));
}
