// linnet inspect: what it shows of a file, logits, and weights that are not finite, in a file of every type.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

TEST_CASE("inspect shows metadata and tensors, of a file and of a training folder") {
    Outcome text = run_linnet({"inspect", tiny_model()});
    CHECK(text.exit == 0);
    for (const char* part : {"general.architecture", "token_embd.weight", "parameters", "tensors ("})
        CHECK(has(text.out, part));
    std::string folder = tiny_model().substr(0, tiny_model().rfind('/'));
    CHECK(run_linnet({"inspect", folder, "--json"}).out ==
          run_linnet({"inspect", tiny_model(), "--json"}).out);
    json file = json::parse(run_linnet({"inspect", tiny_model(), "--json"}).out);
    std::int64_t count = 0;
    for (const json& tensor : file["tensors"]) {
        std::int64_t n = 1;
        for (const json& d : tensor["shape"]) n *= d.get<std::int64_t>();
        count += n;
        CHECK(tensor["bytes"] == 4 * n);
        CHECK(tensor["type"] == "f32");
    }
    CHECK(file["parameters"] == count);
}

TEST_CASE("logits are one number per line in id order; the largest is what generate takes") {
    Outcome logits = run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one "});
    CHECK(logits.exit == 0);
    std::istringstream in(logits.out);
    std::vector<double> values;
    for (double x; in >> x;) values.push_back(x);
    json file = json::parse(run_linnet({"inspect", tiny_model(), "--json"}).out);
    CHECK(values.size() == file["metadata"]["tokenizer.ggml.tokens"]["count"]);
    const Outcome first = run_linnet(
        {"generate", "-m", tiny_model(), "-p", "one ", "-n", "1", "--temp", "0", "--format", "ids"});
    REQUIRE(first.exit == 0);
    CHECK(std::stoi(first.out) == std::max_element(values.begin(), values.end()) - values.begin());
}

TEST_CASE("inspect totals tensors, bytes and bits per weight by type, and tells which do not run") {
    Scratch scratch;
    GgufWriter out;
    out.add("general.architecture", "none");
    auto zeros = [&](const char* name, DType type, Shape shape) {
        const std::size_t bytes = static_cast<std::size_t>(stored_bytes(type, shape.count()));
        out.add_tensor(name, type, shape, [bytes](const GgufWriter::Sink& sink) {
            std::vector<char> none(bytes);
            sink(none.data(), bytes);
        });
    };
    zeros("a", DType::q4_k, Shape(2, 512)), zeros("b", DType::q4_k, Shape(2, 256));
    zeros("c", DType::f16, Shape(4, 8)), zeros("d", DType::iq2_xs, Shape(1, 256));
    out.write(scratch / "m.gguf");
    Outcome text = run_linnet({"inspect", scratch / "m.gguf"});
    CHECK(text.exit == 0);
    CHECK(has(text.out, "in 2 tensors      4.50 bits per weight\n"));
    CHECK(has(text.out, "in 1 tensor      16.00 bits per weight\n"));
    CHECK(has(text.out, "in 1 tensor       2.31 bits per weight  does not run\n"));
    CHECK(has(text.out, "in 4 tensors"));
    CHECK(has(text.out, "tensors of type iq2_xs (1)"));
    const json types = json::parse(run_linnet({"inspect", scratch / "m.gguf", "--json"}).out).at("types");
    CHECK(types.at("q4_k").at("tensors") == 2);
    CHECK(types.at("q4_k").at("weights") == 1536);
    CHECK(types.at("q4_k").at("bytes") == 864);
    CHECK(types.at("q4_k").at("bits_per_weight") == 4.5);
    CHECK(types.at("q4_k").at("runs") == true);
    CHECK(types.at("iq2_xs").at("runs") == false);
    Outcome scanned = run_linnet({"inspect", scratch / "m.gguf", "--check"});
    CHECK(scanned.exit == 0);
    CHECK(scanned.out ==
          "all weights are finite: 3 tensors, 38 blocks; 1 tensors are of types that do not run here\n");
}

TEST_CASE("inspect shows an array by its kind, its length and its first eight elements") {
    Scratch scratch;
    GgufWriter out;
    out.add("a.ints", std::vector<std::int32_t>{1, -2, 3, 4, 5, 6, 7, 8, 9});
    out.add("a.floats", std::vector<float>{0.5F, -1.0F});
    out.add("a.bools", std::vector<bool>{true, false});
    out.add("a.texts", 2, [](std::size_t i) -> std::string_view { return i == 0 ? "" : "one"; });
    out.write(scratch / "m.gguf");
    const json shown = json::parse(run_linnet({"inspect", scratch / "m.gguf", "--json"}).out).at("metadata");
    auto array = [](const char* type, int count, const json& first) {
        return json{{"type", type}, {"count", count}, {"first", first}};
    };
    CHECK(shown.at("a.ints") == array("i32", 9, {1, -2, 3, 4, 5, 6, 7, 8}));
    CHECK(shown.at("a.floats") == array("f32", 2, {0.5, -1.0}));
    CHECK(shown.at("a.bools") == array("bool", 2, {true, false}));
    CHECK(shown.at("a.texts") == array("string", 2, {"", "one"}));
}

TEST_CASE("inspect opens a file whose tensors are of a type that has no name here") {
    Scratch scratch;
    GgufWriter out;
    out.add("general.architecture", "llama");
    const std::string name = "blk.0.ffn_up.weight", bytes(100, 'x');
    out.add_tensor(name, DType::i8, Shape(1, 100),
                   [&](const GgufWriter::Sink& sink) { sink(bytes.data(), bytes.size()); });
    out.write(scratch / "m.gguf");
    std::string file = read_text(scratch / "m.gguf");
    const std::uint32_t strange = 4000;
    std::memcpy(&file[file.find(name) + name.size() + 4 + 2 * 8], &strange, sizeof strange);
    write_text(scratch / "m.gguf", file);
    Outcome text = run_linnet({"inspect", scratch / "m.gguf"});
    CHECK(text.exit == 0);
    CHECK_MESSAGE(has(text.out, "  4000 "), text.out);
    CHECK(has(text.out, "does not run here:\n  tensors of type 4000 (1)\n"));
    const json shown = json::parse(run_linnet({"inspect", scratch / "m.gguf", "--json"}).out);
    CHECK(shown.at("types").at("4000").at("tensors") == 1);
    CHECK(shown.at("runs") == false);
    CHECK(run_linnet({"inspect", scratch / "m.gguf", "--check"}).exit == 0);
    Outcome used = run_linnet({"generate", "-m", scratch / "m.gguf", "-p", "x"});
    CHECK(used.exit == 3);
    CHECK_MESSAGE(has(used.err, "expected a tensor type of ggml, got type 4000"), used.err);
}

TEST_CASE("inspect --check names tensor, row and block of a scale that is not finite, in every type") {
    Scratch scratch;
    for (const DTypeInfo& is : dtypes()) {
        // The scale of mxfp4 is a power of two, of which none is infinite.
        if (!is.is_weight || is.type == DType::mxfp4) continue;
        CAPTURE(is.name);
        // Small numbers throughout, but for one block of bits that are all set: not a number in every float.
        const std::int64_t columns = 3 * is.block, row_bytes = 3 * is.bytes;
        const std::string bytes(static_cast<std::size_t>(4 * row_bytes), '\x01');
        std::string bad = bytes;
        bad.replace(static_cast<std::size_t>(2 * row_bytes + is.bytes), static_cast<std::size_t>(is.bytes),
                    std::string(static_cast<std::size_t>(is.bytes), '\xFF'));
        auto scan = [&](const std::string& data) {
            GgufWriter out;
            out.add_tensor("blk.0.ffn_up.weight", is.type, Shape(4, columns),
                           [&](const GgufWriter::Sink& sink) { sink(data.data(), data.size()); });
            out.write(scratch / "m.gguf");
            return run_linnet({"inspect", scratch / "m.gguf", "--check", "--threads", "2"});
        };
        CHECK(scan(bytes).exit == 0);
        Outcome found = scan(bad);
        CHECK(found.exit == 3);
        CHECK(is_one_error_line(found.err));
        CHECK(has(found.err, "tensor 'blk.0.ffn_up.weight', row 2, block 1: expected finite weights, got "));
    }
}

TEST_CASE("inspect --check passes the models that linnet made, and answers in JSON where asked") {
    CHECK(run_linnet({"inspect", tiny_model(), "--check"}).exit == 0);
    const json report = json::parse(run_linnet({"inspect", tiny_model(), "--check", "--json"}).out);
    CHECK(report.at("finite") == true);
    CHECK(report.at("skipped") == 0);
    CHECK(report.at("tensors").get<int>() > 5);
}

TEST_CASE("inspect --json takes time linear in a file's keys") {
    Scratch scratch;
    GgufWriter out;
    constexpr int keys = 200000;
    for (int i = 0; i < keys; i++) out.add("general.k" + std::to_string(i), std::uint32_t{1});
    out.write(scratch / "m.gguf");
    // Quadratic, it took a minute.
    const Outcome shown = run_shell("timeout 15 $LINNET inspect --json " + (scratch / "m.gguf"));
    REQUIRE(shown.exit == 0);
    CHECK(json::parse(shown.out).at("metadata").size() == keys);
}

TEST_CASE("inspect --check looks at a folder's model whatever else is there, and refuses what has none") {
    Workplace place;
    write_text(place.s / "config", tiny_config());
    REQUIRE(place("$LINNET train config --data text --out run --steps 1 --threads 1 && "
                  "$LINNET convert run hf && $LINNET corpus -t run -o corpus text --no-end-tokens")
                .exit == 0);
    write_text(place.s / "hf/index.json", "{}");
    write_text(place.s / "hf/manifest.json", "{}");
    write_text(place.s / "run/index.json", "{}");
    const std::string finite = "all weights are finite";
    CHECK(has(place("$LINNET inspect hf --check").out, finite));
    CHECK(has(place("$LINNET inspect run --check").out, finite));
    CHECK(has(place("$LINNET inspect $(ls -d run/checkpoints/step-* | tail -1) --check").out, finite));
    CHECK(has(place("$LINNET inspect hf").out, "token_embd.weight"));
    CHECK(has(place("$LINNET inspect run").out, "token_embd.weight"));
    CHECK(has(place("$LINNET inspect $(ls -d run/checkpoints/step-* | tail -1)").out,
              "\"sha256\""));  // a checkpoint's manifest
    CHECK(place("$LINNET inspect corpus").exit == 0);
    const Outcome refused = place("$LINNET inspect corpus --check");
    CHECK(refused.exit == 2);
    CHECK(is_one_error_line(refused.err));
    CHECK_MESSAGE(
        has(refused.err, "--check: expected a model, whose weights it looks at, got corpus/index.json"),
        refused.err);
}

TEST_CASE("inspect opens a folder once, and says once what it has to say of it") {
    Workplace place;
    REQUIRE(place("$LINNET convert " + tiny_model() + " hf && touch hf/pytorch_model.bin").exit == 0);
    for (const char* option : {"", " --json"}) {
        const Outcome shown = place(std::string("$LINNET inspect hf") + option);
        CHECK(has(shown.out, option[0] ? "\"runs\":true" : "runs here"));
        const std::string note = "PyTorch's weights are there, too";
        const std::size_t first = shown.err.find(note);
        REQUIRE(first != std::string::npos);
        CHECK(shown.err.find(note, first + 1) == std::string::npos);
    }
}
