// Weights that a smaller type cannot hold: refused on every way into it, by the tensor and row they stand in.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "kernels/kernels.h"
#include "model/adapter_support.h"
#include "model/convert/outgoing.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/convert/tensor_rows.h"
#include "model/narrow.h"
#include "model/quantize/quantize.h"
#include "model/rewrite.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr const char* matrix = "blk.0.ffn_up.weight";

/// The model at `from` with one element of a tensor so large, and that tensor of f32.
void with_weight(const std::string& from, const std::string& to, std::string_view name, std::size_t place,
                 float value) {
    const Gguf file(from);
    rewrite_model(file, to, {}, [&](const GgufTensor& t) -> std::optional<NewTensor> {
        if (t.name != name) return std::nullopt;
        std::vector<float> values(static_cast<std::size_t>(t.shape.count()));
        kernels().load(t.shape.count(), t.type, t.bytes.data(), values.data());
        values.at(place) = value;
        return NewTensor{DType::f32, [values](const GgufWriter::Sink& sink) {
                             sink(values.data(), values.size() * sizeof(float));
                         }};
    });
}

/// The tiny model with 1e6 in row 3, column 1 of a matrix.
std::string large_model(const Scratch& s) {
    const std::int64_t columns = Gguf(tiny_model()).tensor(matrix)->shape.dim[1];
    with_weight(tiny_model(), s / "m.gguf", matrix, static_cast<std::size_t>(3 * columns + 1), 1e6F);
    return s / "m.gguf";
}

SinkOptions as(std::optional<DType> type) {
    SinkOptions options;
    options.type = type;
    return options;
}

}  // namespace

TEST_CASE("exactly the finite values that are stored as infinite are told, by the first one's place") {
    const float inf = INFINITY;
    const float values[] = {0,          -65504,      65519.996F,  65520,          -65520,       1e38F,
                            3.3895e38F, 3.39617e38F, 0x1.FEp127F, 0x1.FF8p127F,   -0x1.FFp127F, 3.4028235e38F,
                            inf,        -inf,        NAN,         0x1.FEFFFEp127F};
    for (DType type : {DType::f16, DType::bf16, DType::f32})
        for (const float value : values) {
            CAPTURE(info(type).name);
            CAPTURE(value);
            float stored = 0, back = 0;
            const bool lost = store_narrowed(1, type, &value, &stored) == 0;
            kernels().load(1, type, &stored, &back);
            CHECK(lost == (std::isfinite(value) && !std::isfinite(back)));
        }
    for (const double value :
         {0.0, 1e300, -1e300, 0x1.FFFFFFp127, 0x1.FFFFFEFFp127, double{inf}, double{NAN}}) {
        CAPTURE(value);
        float back = 0;
        const bool lost = narrow(1, &value, &back) == 0;
        CHECK(lost == (std::isfinite(value) && !std::isfinite(back)));
    }
    std::vector<float> many(5000, 1), out(5000);
    CHECK(store_narrowed(5000, DType::f16, many.data(), out.data()) == 5000);
    many[4321] = 7e4F, many[4400] = 8e4F;
    CHECK(store_narrowed(5000, DType::f16, many.data(), out.data()) == 4321);
    CHECK(convert_elements(5000, DType::f32, many.data(), DType::f16, out.data()) == 4321);
    many[4100] = 100;  // whose negative exponential is infinite
    CHECK(convert_elements(5000, DType::f32, many.data(), DType::f32, out.data(), ValueTransform::log) ==
          4100);
}

TEST_CASE("a weight that f16 cannot hold is refused by every conversion, with its tensor and row") {
    Scratch s;
    const std::string path = large_model(s), says = ": expected weights that f16 can hold, got larger ones";
    const Gguf model(path);
    CHECK(refusal([&] { write_folder(model, nullptr, s / "half", as(DType::f16)); }) ==
          path + ": tensor 'blk.0.ffn_up.weight', row 3" + says);
    CHECK(!std::filesystem::exists(s / "half/config.json"));
    write_folder(model, nullptr, s / "bf16", as(DType::bf16));  // which can
    write_folder(model, nullptr, s / "full", as(std::nullopt));
    // There it is transposed: the column is the row.
    OpenOptions half;
    half.type = DType::f16;
    CHECK(refusal([&] {
              write_gguf(open_folder(s / "full", half), s / "o.gguf", Existing::keep, [](double, double) {});
          }) == s / "full/model.safetensors" + ": tensor 'transformer.h.0.mlp.c_fc.weight', row 1" + says);
    CHECK(!std::filesystem::exists(s / "o.gguf"));
    const float values[] = {1, 2, 3, 7e4F};
    const Tensor tensor{const_cast<float*>(values), DType::f32, Shape(2, 2)};
    CHECK(refusal([&] {
              emit_tensor(
                  tensor, DType::f16, [](const void*, std::size_t) {}, "f", "w");
          }) == "f: tensor 'w', row 1" + says);
}

TEST_CASE("a vector that f16 cannot hold stays f32 in a folder of f16 that was not asked for a type") {
    Scratch s;
    QuantizeOptions options;
    options.mix = quantize_mix("f16");
    const Gguf tiny(tiny_model());
    std::vector<QuantizedTensor> plan = plan_quantization(tiny, options);
    write_quantized(tiny, options, plan, s / "half.gguf", [](double, double) {});
    with_weight(s / "half.gguf", s / "m.gguf", "output_norm.weight", 2, 1e6F);
    write_folder(Gguf(s / "m.gguf"), nullptr, s / "f", as(std::nullopt));
    const Safetensors file = Safetensors::open(s / "f/model.safetensors");
    REQUIRE(file.tensor("transformer.ln_f.weight"));
    CHECK(file.tensor("transformer.ln_f.weight")->type->name == "F32");
    CHECK(file.tensor("transformer.h.0.mlp.c_fc.weight")->type->name == "F16");
}

TEST_CASE("doubles beyond f32 are refused where a folder's tensors are narrowed") {
    Scratch s;
    SafetensorsWriter out;
    const double values[] = {1, 2, 3, 4, 1e300, 6};
    out.add_tensor("w", DType::f64, Shape(2, 3),
                   [&](const SafetensorsWriter::Sink& sink) { sink(values, sizeof values); });
    out.write(s.path, "m");
    const Safetensors file = Safetensors::open(s / "m.safetensors");
    ParameterRows rows;
    rows.tensors = {"w"}, rows.shape = Shape(2, 3), rows.rows = rows.all = 2, rows.columns = 3;
    const ParameterReader reader(file, rows);
    float to[6];
    reader.read({0, 1, 0, 3}, DType::f32, reinterpret_cast<std::byte*>(to));
    CHECK(to[2] == 3);
    CHECK(refusal([&] {
              reader.read({0, 2, 0, 3}, DType::f32, reinterpret_cast<std::byte*>(to));
          }) ==
          s / "m.safetensors" + ": tensor 'w', row 1: expected weights that f32 can hold, got larger ones");
}

TEST_CASE("a number whose logarithm a folder is to hold is refused where it is not negative") {
    const float values[] = {-1, -2, -1e-4F, 0.5F};
    ParameterValues from{DType::f32, Shape(4), reinterpret_cast<const std::byte*>(values), nullptr, "m", "a"};
    WindowReader reader(DType::f32);
    const auto* logs = reinterpret_cast<const float*>(reader.read(from, {0, 3, 0, 1}, ValueTransform::log));
    CHECK(logs[1] == static_cast<float>(std::log(2.0)));
    CHECK(refusal([&] {
              reader.read(from, {0, 4, 0, 1}, ValueTransform::log);
          }) == "m: tensor 'a', row 3: expected negative numbers, whose logarithms are written, got others");
}

TEST_CASE("merging refuses sums that are not finite, or that the type cannot hold") {
    Scratch s;
    const std::shared_ptr<const Model> base = Model::open(large_model(s));
    const auto merged = [&](double scale, std::optional<DType> type) {
        return refusal(
            [&] { merge_adapters(*base, {random_adapter(*base, 2, scale, 1)}, type, s / "o.gguf"); });
    };
    CHECK(merged(1, DType::f32) == "accepted");
    CHECK(merged(1, DType::bf16) == "accepted");
    CHECK(merged(1, DType::f16) == s / "m.gguf" +
                                       ": tensor 'blk.0.ffn_up.weight', row 3: expected weights "
                                       "that f16 can hold, got larger ones");
    CHECK_MESSAGE(has(merged(1e39, DType::f32),
                      "row 0: expected finite weights with the adapter's change, got one that is not"),
                  merged(1e39, DType::f32));
}
