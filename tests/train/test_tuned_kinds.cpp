// linnet finetune of models of every kind, and what their commands say of texts that they cannot read.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "commands/records.h"
#include "commands/text_input.h"
#include "formats/gguf.h"
#include "support.h"
#include "train/kinds.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// The lines without `part` in them.
std::string without(const std::string& lines, const std::string& part) {
    std::string kept;
    for (const std::string_view line : lines_of(lines))
        if (line.find(part) == line.npos) kept += std::string(line) + "\n";
    return kept;
}

Outcome tune(const Place& place, const std::string& data, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"finetune",    "-m",      place.s / "m", "--data",    data, "--out",
                                    place.s / "t", "--steps", "4",           "--threads", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return run_linnet(all);
}

}  // namespace

TEST_CASE("finetune goes on with a model of any kind, and needs not every class in its data") {
    for (const char* name : {"classes", "tags", "pairs", "replaced", "masked"}) {
        CAPTURE(std::string(name));
        const Kind kind = kind_named(name);
        const Place place(kind);
        REQUIRE(place.train("m", 4).exit == 0);
        const std::string data = place.s / ("less-" + kind.file);
        write_text(data, std::string(name) == "classes" ? without(kind.data, "odd")
                         : std::string(name) == "tags"  ? without(kind.data, "B")
                                                        : kind.data);
        const Outcome tuned = tune(place, data);
        REQUIRE_MESSAGE(tuned.exit == 0, tuned.err);
        CHECK(has(tuned.err, "chosen: 4 steps of "));
        const Outcome adapted = tune(place, data, {"--lora", "2", "--overwrite"});
        CHECK_MESSAGE(adapted.exit == 0, adapted.err);
        CHECK(Gguf(place.s / "t/adapter.gguf").tensors().size() > 0);
        if (kind.file != "data.tsv" || std::string(name) == "pairs") continue;
        write_text(data, "one two\tZ Z\n");
        CHECK_MESSAGE(has(tune(place, data, {"--overwrite"}).err,
                          "expected one of the model's classes, got another (of "),
                      name);
    }
}

TEST_CASE("a model of single texts takes no second one, and says which line it cannot read") {
    const Kind kind = kind_named("classes");
    const Place place(kind);
    REQUIRE(place.train("m", 4).exit == 0);
    const std::string m = place.s / "m", bad = place.s / "bad.tsv";
    CHECK(has(run_linnet({"predict", "-m", m, "-p", "one\tone"}).err,
              "--prompt: line 1: expected one text, as the model learned from, got two, separated by a tab"));
    write_text(bad, "one\todd\ntw\xC3\xB6\teven\n");
    for (const std::vector<std::string>& unused :
         {std::vector<std::string>{"--beams", "2"}, {"--resize"}, {"--ctx", "8"}}) {
        std::vector<std::string> all = {"eval", "-m", m, "--file", place.data};
        all.insert(all.end(), unused.begin(), unused.end());
        CHECK_MESSAGE(has(run_linnet(all).err, unused[0] + ": expected "), unused[0]);
    }
    const std::string told = "bad.tsv: line 2: byte 2: expected a character of the vocabulary";
    CHECK(has(run_linnet({"eval", "-m", m, "--file", bad}).err, told));
    CHECK(has(tune(place, bad, {"--set", "train.validation_fraction=0"}).err, told));
    const Outcome skipped = tune(place, bad, {"--set", "train.validation_fraction=0", "--skip-bad"});
    CHECK_MESSAGE(skipped.exit == 0, skipped.err);
    CHECK(has(skipped.err, "1 example left out: characters that the vocabulary lacks; the first: "));
    write_text(bad, "one\ntw\xC3\xB6\n");
    CHECK(has(run_linnet({"predict", "-m", m, "-f", bad}).err, told));
    write_text(bad, "one\n\xFFtwo\n");
    CHECK(has(run_linnet({"predict", "-m", m, "-f", bad}).err, "bad.tsv: line 2: expected UTF-8"));
    write_text(bad, std::string("\xFF\xFEo\0n\0", 6));
    CHECK(has(run_linnet({"predict", "-m", m, "-f", bad}).err, "UTF-16"));
    write_text(bad, "\xEF\xBB\xBFone\n");
    CHECK(run_linnet({"predict", "-m", m, "-f", bad}).out ==
          run_linnet({"predict", "-m", m, "-p", "one"}).out);
}

TEST_CASE("weights of an encoder that are not finite are told, and unknown tags count as wrong alone") {
    const Kind kind = kind_named("tags");
    const Place place(kind);
    REQUIRE(place.train("m", 4).exit == 0);
    const std::string m = place.s / "m/model.gguf", one = place.s / "one.tsv", two = place.s / "two.tsv";
    write_text(one, "one two\tA A\n");
    write_text(two, "one two\tA A\nthree\tUNKNOWN\n");
    auto eval = [&](const std::string& file) {
        return nlohmann::json::parse(run_linnet({"eval", "-m", m, "--file", file, "--json"}).out);
    };
    CHECK(eval(one)["nll"] == eval(two)["nll"]);
    CHECK(eval(two)["unknown"] == 1);
    CHECK(eval(two)["words"] == 3);
    std::string bytes = read_text(m);
    {
        const Gguf file(m);
        const GgufTensor* t = file.tensor("blk.0.attn_output.weight");
        REQUIRE(t);
        const float none = NAN;
        const std::size_t at = bytes.find({reinterpret_cast<const char*>(t->bytes.data()), t->bytes.size()});
        std::memcpy(&bytes.at(at), &none, sizeof none);
    }
    write_text(m, bytes);
    for (const std::vector<std::string>& command : {std::vector<std::string>{"predict", "-m", m, "-p", "one"},
                                                    {"embed", "-m", m, "-p", "one"},
                                                    {"eval", "-m", m, "--file", one}}) {
        const Outcome told = run_linnet(command);
        CHECK(told.exit == 3);
        CHECK_MESSAGE(has(told.err, "damaged"), told.err);
    }
}
