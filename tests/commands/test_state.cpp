// --kv-type, and models in several parts, as a person runs them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

namespace {

double nll(const std::string& model, const std::string& text, std::vector<std::string> more) {
    std::vector<std::string> all{"eval", "-m", model, "--file", text, "--windows", "8", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    Outcome outcome = run_linnet(all);
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    return json::parse(outcome.out).at("nll").get<double>();
}

}  // namespace

TEST_CASE("keys and values are kept in the type that --kv-type says, f16 where it is left out") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    const std::string text = scratch / "text";
    const double f32 = nll(tiny_model(), text, {"--kv-type", "f32"});
    CHECK(nll(tiny_model(), text, {}) == nll(tiny_model(), text, {"--kv-type", "f16"}));
    CHECK(nll(tiny_model(), text, {}) == doctest::Approx(f32).epsilon(1e-3));
    CHECK(nll(tiny_model(), text, {"--kv-type", "q8_0"}) == doctest::Approx(f32).epsilon(0.03));
    CHECK(nll(tiny_model(), text, {"--kv-type", "q8_0"}) != f32);
    std::string expected;
    for (const char* type : {"f32", "f16", "q8_0"}) {
        Outcome made = run_linnet(
            {"generate", "-m", tiny_model(), "-p", "one two ", "-n", "20", "--temp", "0", "--kv-type", type});
        CHECK(made.exit == 0);
        if (expected.empty()) expected = made.out;
        CHECK(made.out == expected);
        CHECK(run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one", "--kv-type", type}).exit ==
              0);
        CHECK(run_linnet({"bench", "-m", tiny_model(), "-p", "4", "-n", "4", "-r", "1", "--kv-type", type})
                  .exit == 0);
    }
    Outcome wrong = run_linnet({"generate", "-m", tiny_model(), "-p", "one", "--kv-type", "q4_0"});
    CHECK(wrong.exit == 2);
    CHECK(has(wrong.err, "--kv-type: expected f16, q8_0 or f32, got 'q4_0'"));
}

TEST_CASE("greedy ids of a trained model are the same with keys and values in f32 and f16") {
    const auto model = shared_data("data/stories260k/stories260k.gguf");
    if (!model) return;
    auto ids = [&](const char* type) {
        return run_linnet({"generate", "-m", *model, "-p", "Once upon a time", "-n", "100", "--temp", "0",
                           "--format", "ids", "--kv-type", type})
            .out;
    };
    CHECK(ids("f16") == ids("f32"));
    CHECK(has(run_linnet({"generate", "-m", *model, "-p", "Once upon a time", "-n", "40", "--temp", "0"}).out,
              ", there was a little girl named Lily. She loved to play outside in the park."));
}

TEST_CASE("a model in parts runs as the whole one does; a part that is missing is named, with exit code 3") {
    Scratch scratch;
    const Gguf whole(tiny_model());
    for (std::uint32_t part = 0; part < 2; part++) {
        GgufWriter out;
        for (std::size_t i = 0; part == 0 && i < whole.values().size(); i++)
            out.add_stored(std::string(whole.values()[i].first), whole.stored_value(i));
        out.add("split.no", part);
        out.add("split.count", std::uint32_t{2});
        out.add("split.tensors.count", static_cast<std::int32_t>(whole.tensors().size()));
        for (std::size_t i = part; i < whole.tensors().size(); i += 2) {
            const GgufTensor& t = whole.tensors()[i];
            out.add_tensor(std::string(t.name), t.type, t.shape,
                           [&t](const GgufWriter::Sink& sink) { sink(t.bytes.data(), t.bytes.size()); });
        }
        out.write(scratch / (part == 0 ? "m-00001-of-00002.gguf" : "m-00002-of-00002.gguf"));
    }
    auto text = [&](const std::string& model) {
        return run_linnet({"generate", "-m", model, "-p", "one two ", "-n", "20", "--temp", "0"}).out;
    };
    CHECK(text(scratch / "m-00001-of-00002.gguf") == text(tiny_model()));
    CHECK(text(scratch / "m-00002-of-00002.gguf") == text(tiny_model()));
    CHECK(run_linnet({"quantize", scratch / "m-00001-of-00002.gguf", scratch / "q.gguf", "--type", "f16"})
              .exit == 0);
    CHECK(text(scratch / "q.gguf").size() > 20);
    CHECK(!Gguf(scratch / "q.gguf").find("split.count"));
    remove((scratch / "m-00002-of-00002.gguf").c_str());
    for (const char* command : {"inspect", "generate"}) {
        std::vector<std::string> arguments{command, "-m", scratch / "m-00001-of-00002.gguf"};
        if (std::string(command) == "generate") arguments.insert(arguments.end(), {"-p", "one"});
        Outcome missing = run_linnet(arguments);
        CHECK(missing.exit == 3);
        CHECK(is_one_error_line(missing.err));
        CHECK(has(missing.err, "m-00002-of-00002.gguf: expected part 2 of 2, beside the others"));
    }
}
