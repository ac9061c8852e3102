// Configs whose sides differ, and such as cannot be learned, as whole commands take or refuse them.
#include <doctest/doctest.h>

#include "support.h"
#include "train/kinds.h"

using namespace linnet::test;

TEST_CASE("experts of a decoder that is deeper than its encoder: lists are checked to their end") {
    const Place place(kind_named("pairs"));
    auto with = [&](const char* count) {
        std::vector<std::string> all =
            set({"model.layers=1", "model.decoder_layers=2", "model.experts.used=2", "model.ffn.gated=true",
                 "model.ffn.bias=false"});
        all.insert(all.end(), {"--set", std::string("model.experts.count=") + count});
        return all;
    };
    for (const auto& [count, got] : {std::pair{"[4,8]", "8"}, {"[8,4]", "4"}}) {
        const Outcome refused = place.train("no", 1, with(count));
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(
            has(refused.err, std::string("model.experts.count: expected one number, or 0, got ") + got),
            refused.err);
    }
    const Outcome trained = place.train("m", 2, with("[0,8]"));
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    CHECK(run_linnet({"generate", "-m", place.s / "m", "-p", "17", "-n", "4"}).exit == 0);
    // The same file with another config in it.
    std::string file = read_text(place.s / "m/model.gguf");
    const std::string says = R"("count":[0,8])";
    REQUIRE(has(file, says));
    for (std::size_t at = 0; (at = file.find(says, at)) != file.npos;)
        file.replace(at, says.size(), R"("count":[4,8])");
    write_text(place.s / "crafted.gguf", file);
    const Outcome crafted =
        run_linnet({"eval", "-m", place.s / "crafted.gguf", "--file", place.data, "--windows", "2"});
    CHECK(crafted.exit == 3);
    CHECK_MESSAGE(has(crafted.err, "model.experts.count: expected one number, or 0, got 8"), crafted.err);
}

TEST_CASE("DeepNorm stands on both sides of an encoder-decoder") {
    const Place place(kind_named("pairs"));
    const Outcome trained =
        place.train("m", 20, set({"model.norm.placement=deep", "model.decoder_layers=3", "model.dropout=0"}));
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    const std::vector<double> losses = place.losses("m");
    CHECK(losses.back() < losses.front());
    CHECK(run_linnet({"generate", "-m", place.s / "m", "-p", "17", "-n", "4"}).exit == 0);
}

TEST_CASE("a run from nothing is refused where a router could not learn, or factors would be ones") {
    const Place place(kind_named("pairs"));
    const Outcome router = place.train("no", 1,
                                       set({"model.experts.count=4", "model.experts.used=1",
                                            "model.ffn.gated=true", "model.ffn.bias=false"}));
    CHECK(router.exit == 3);
    CHECK_MESSAGE(has(router.err, "model.experts.renormalize: expected false, as model.experts.used is 1"),
                  router.err);
    const Outcome factors =
        place.train("no", 1, set({"model.position.kind=rope", "model.position.factors=true"}));
    CHECK(factors.exit == 3);
    CHECK_MESSAGE(has(factors.err, "model.position.factors: expected false in a model that begins from"),
                  factors.err);
}

TEST_CASE("experts without gates, one to a token, learn, and their file reads as it wrote") {
    const Place place(kind_named("spans"));
    const Outcome trained =
        place.train("m", 2,
                    set({"model.experts.count=4", "model.experts.used=1", "model.experts.renormalize=false",
                         "model.ffn.gated=false", "model.ffn.activation=relu", "model.experts.shared=8"}));
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    CHECK(run_linnet({"inspect", place.s / "m", "--check"}).exit == 0);
    CHECK(run_linnet({"inspect", "graph", "-m", place.s / "m"}).exit == 0);
}
