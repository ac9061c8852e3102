// Models without attention, and hybrids, as a user trains and runs them.
#include <doctest/doctest.h>

#include "base/sha256.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Kind {
    const char* name;
    std::vector<std::string> settings;
};
const Kind kinds[] = {
    {"mamba", {"mixer=mamba", "position.kind=none", "ffn.kind=none", "norm.kind=rms", "ssm.state=4"}},
    {"hybrid", {"mixer=[mamba2,attention]", "layers=2", "ssm.heads=2", "ssm.state=4", "position.kind=rope"}},
    {"rwkv7", {"mixer=rwkv7", "position.kind=none", "ffn.kind=channel-mix"}},
    {"lstm", {"mixer=lstm", "position.kind=none", "ffn.kind=none"}},
    {"linear", {"mixer=linear-attention", "position.kind=sinusoidal"}},
};

struct Place {
    Scratch s;
    Place() {
        write_text(s / "text", counting_text());
        write_text(s / "config.json", tiny_config());
    }
    Outcome train(const Kind& kind, const std::string& out, std::vector<std::string> more = {}) const {
        std::vector<std::string> all{"train", s / "config.json", "--data", s / "text",
                                     "--out", s / out,           "--set",  "train.schedule.kind=constant"};
        for (const std::string& setting : kind.settings) all.insert(all.end(), {"--set", "model." + setting});
        all.insert(all.end(), more.begin(), more.end());
        return run_linnet(all);
    }
    std::string hash(const std::string& out) const { return sha256(read_text(s / (out + "/model.gguf"))); }
};

}  // namespace

TEST_CASE("a recurrent model is the same for any number of threads, and after a resume" *
          doctest::test_suite("long")) {
    Place place;
    for (const Kind& kind : kinds) {
        INFO(std::string(kind.name));
        const std::string name = kind.name;
        REQUIRE(place.train(kind, name, {"--threads", "1"}).exit == 0);
        REQUIRE(place.train(kind, name + "3", {"--threads", "3"}).exit == 0);
        CHECK(place.hash(name + "3") == place.hash(name));
        REQUIRE(place.train(kind, name + "cut", {"--steps", "40"}).exit == 0);
        Outcome resumed = place.train(kind, name + "cut", {"--resume", "--steps", "60"});
        CHECK_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK(place.hash(name + "cut") == place.hash(name));
        // It has learnt to count, with guesses and without, from a cache, and in company.
        const std::string model = place.s / (name + "/model.gguf");
        auto text = [&](std::vector<std::string> more) {
            more.insert(more.begin(), {"generate", "-m", model, "-p", "one two three four five six seve",
                                       "-n", "24", "--temp", "0", "--ctx-shift"});
            Outcome done = run_linnet(more);
            CHECK_MESSAGE(done.exit == 0, done.err);
            return done.out;
        };
        const std::string plain = text({});
        CHECK(has(plain, " "));
        CHECK(text({"--speculate"}) == plain);
        CHECK(text({"--prompt-cache", place.s / (name + ".state")}) == plain);
        CHECK(text({"--prompt-cache", place.s / (name + ".state"), "--threads", "2"}) == plain);
    }
}

TEST_CASE("a config whose mixers contradict it is refused in one line, exit 3, and nothing is written") {
    Place place;
    const std::pair<Kind, const char*> wrong[] = {
        {{"", {"mixer=mamba"}}, "model.position.kind: expected none, as no layer has attention, got learned"},
        {{"", {"mixer=[mamba,attention,lstm]"}},
         "model.mixer: expected at most 1 values, one per layer, got 3"},
        {{"", {"mixer=hyena"}}, "model.mixer: expected one of attention, mamba"},
        {{"", {"mixer=rwkv7", "position.kind=none", "head_width=4"}},
         "model.head_width: expected width / heads"},
        {{"", {"ffn.kind=none", "residual.kind=parallel"}}, "model.residual.kind: expected sequential"},
    };
    for (const auto& [kind, line] : wrong) {
        Outcome done = place.train(kind, "none");
        CHECK(done.exit == 3);
        CHECK(is_one_error_line(done.err));
        CHECK_MESSAGE(has(done.err, line), done.err);
        CHECK(run_shell("test ! -e '" + (place.s / "none") + "'").exit == 0);
    }
}
