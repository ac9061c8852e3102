// Which type each tensor takes, and files written again by that.
#include "model/quantize/quantize.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

DType type_of(const char* mix, const char* name, std::int64_t columns = 512,
              QuantizeModel model = {16, 2, false}, bool importance = false) {
    GgufTensor tensor{name, DType::f16, Shape(8, columns), {}};
    return quantized_type(*quantize_mix(mix), model, tensor, false, importance);
}

/// A file of one matrix "blk.0.ffn_up.weight" [2, 64], all `value` but for one `odd`, and a vector.
std::string small_file(const Scratch& scratch, float value, float odd) {
    GgufWriter out;
    out.add("general.architecture", "none");
    out.add("general.file_type", std::uint32_t{1});
    std::vector<float> weights(128, value);
    weights[100] = odd;
    out.add_tensor("blk.0.ffn_up.weight", DType::f32, Shape(2, 64),
                   [weights](const GgufWriter::Sink& sink) { sink(weights.data(), 4 * weights.size()); });
    out.add_tensor("output_norm.weight", DType::f32, Shape(64),
                   [weights](const GgufWriter::Sink& sink) { sink(weights.data(), 4 * 64); });
    out.write(scratch / "in.gguf");
    return scratch / "in.gguf";
}

void nothing(double, double) {}

}  // namespace

TEST_CASE("mixes follow llama.cpp's rules") {
    CHECK(type_of("q4_k_m", "blk.0.attn_v.weight") == DType::q6_k);
    CHECK(type_of("q4_k_m", "blk.2.attn_v.weight") == DType::q4_k);
    CHECK(type_of("q4_k_m", "blk.4.ffn_down.weight") == DType::q6_k);
    CHECK(type_of("q4_k_m", "blk.15.ffn_down.weight") == DType::q6_k);
    CHECK(type_of("q4_k_m", "blk.15.ffn_up.weight") == DType::q4_k);
    CHECK(type_of("q4_k", "blk.3.attn_v.weight") == DType::q5_k);
    CHECK(type_of("q2_k", "blk.9.attn_v.weight") == DType::q3_k);
    CHECK(type_of("q2_k", "blk.9.attn_v.weight", 512, {16, 4, false}) == DType::q4_k);
    CHECK(type_of("q3_k_m", "blk.0.ffn_down.weight") == DType::q5_k);
    CHECK(type_of("q4_0", "token_embd.weight") == DType::q6_k);
    CHECK(type_of("q4_0", "token_embd.weight", 512, {16, 2, true}) == DType::q4_0);
    CHECK(type_of("q8_0", "output.weight") == DType::q8_0);
    CHECK(type_of("tq2_0", "output.weight") == DType::q6_k);
    CHECK(type_of("tq2_0", "token_embd.weight", 512, {16, 2, true}) == DType::q4_k);
    CHECK(type_of("q4_0", "blk.0.ffn_down.weight", 512, {16, 2, false}, true) == DType::q4_1);
}

TEST_CASE("rows that are not whole blocks of 256 take llama.cpp's fallback types") {
    CHECK(type_of("q2_k", "blk.0.ffn_up.weight", 96) == DType::iq4_nl);
    CHECK(type_of("q4_k", "blk.0.ffn_up.weight", 96) == DType::q5_0);
    CHECK(type_of("q5_k", "blk.0.ffn_up.weight", 96) == DType::q5_1);
    CHECK(type_of("q6_k", "blk.0.ffn_up.weight", 96) == DType::q8_0);
    CHECK(type_of("tq2_0", "blk.0.ffn_up.weight", 96) == DType::q4_0);
    CHECK(type_of("q4_k_m", "token_embd.weight", 96) == DType::q8_0);
    CHECK(type_of("q4_0", "blk.0.ffn_up.weight", 40) == DType::f16);
}

TEST_CASE("a layer beyond those that a model may have counts as none") {
    for (auto [number, layers] : {std::pair{"4095", 4096}, {"4096", 0}, {"9223372036854775807", 0}}) {
        Scratch scratch;
        GgufWriter out;
        out.add("general.architecture", "none");
        const std::vector<char> zeros(64);
        out.add_tensor("blk." + std::string(number) + ".ffn_down.weight", DType::f32, Shape(1, 16),
                       [&](const GgufWriter::Sink& sink) { sink(zeros.data(), zeros.size()); });
        out.write(scratch / "m.gguf");
        CHECK(quantize_model(Gguf(scratch / "m.gguf")).layers == layers);
    }
}

TEST_CASE("a quantized file has the types, the metadata and the errors of its plan") {
    Scratch scratch;
    Gguf file(small_file(scratch, 0.5f, -0.25f));
    QuantizeOptions options;
    options.mix = quantize_mix("q8_0");
    std::vector<QuantizedTensor> plan = plan_quantization(file, options);
    REQUIRE(plan.size() == 2);
    write_quantized(file, options, plan, scratch / "out.gguf", nothing);
    CHECK(plan[0].error > 0);
    CHECK(plan[0].error < 0.002);
    CHECK(plan[1].error == 0);
    Gguf out(scratch / "out.gguf");
    CHECK(out.tensors()[0].type == DType::q8_0);
    CHECK(out.tensors()[1].type == DType::f32);
    CHECK(*out.integer("general.file_type") == 7);
    CHECK(*out.integer("general.quantization_version") == 2);
    CHECK(*out.string("general.architecture") == "none");

    options.mix = quantize_mix("q4_0");  // from what is quantized already
    CHECK(refusal([&] { plan_quantization(out, options); }).find("--requantize") != std::string::npos);
    options.requantize = true;
    CHECK(plan_quantization(out, options)[0].to == DType::q4_0);
    options.tensors = {{"*", DType::q5_0}, {"*up*", DType::f16}};
    CHECK(plan_quantization(out, options)[0].to == DType::f16);
    options.tensors = {{"output_norm.weight", DType::q5_0}};
    CHECK(has(refusal([&] { plan_quantization(out, options); }, Exit::usage), "the name of a matrix"));
    options.tensors = {{"*", DType::q4_k}};
    CHECK(has(refusal([&] { plan_quantization(out, options); }, Exit::usage), "divide rows of 64"));
}

TEST_CASE("weights that are not finite, or too large for the type, are refused with their row") {
    Scratch scratch;
    QuantizeOptions options;
    for (auto [odd, type] : {std::pair{NAN, "q8_0"},
                             {INFINITY, "q4_k"},
                             {1e30f, "q8_0"},
                             {1e30f, "f16"},
                             {1e17f, "iq4_nl"},  // where the search for scales overflows, and found 0
                             {1e17f, "q5_0"},
                             {-1e17f, "mxfp4"}}) {
        const auto& of_type = type;
        CAPTURE(of_type);
        Gguf file(small_file(scratch, 0.5f, odd));
        options.mix = quantize_mix(type);
        std::vector<QuantizedTensor> plan = plan_quantization(file, options);
        std::string line =
            refusal([&] { write_quantized(file, options, plan, scratch / "out.gguf", nothing); });
        CHECK(line.find("tensor 'blk.0.ffn_up.weight', row 1") != std::string::npos);
    }
    Gguf large(small_file(scratch, 1e9f, -1e9f));  // mxfp4's scales reach as far
    options.mix = quantize_mix("mxfp4");
    std::vector<QuantizedTensor> plan = plan_quantization(large, options);
    write_quantized(large, options, plan, scratch / "out.gguf", nothing);
    CHECK(plan[0].error < 0.15);
}
