// Files that come by a name while something long is being written to it: whatever writes, they are kept.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "commands/tiny.h"
#include "formats/safetensors.h"
#include "model/adapter.h"
#include "model/convert/sinks.h"
#include "model/convert/source.h"
#include "model/quantize/quantize.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// `write` is handed something to call in the midst of its work, when another program makes the file `path`.
/// That stays, and the command line is what is wrong.
void keeps(const std::string& path, const std::function<void(const std::function<void()>& appear)>& write) {
    CAPTURE(path);
    bool appeared = false;
    try {
        write([&] {
            write_text(path, "mine");
            appeared = true;
        });
        FAIL("a file was replaced");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::usage);
        CHECK_MESSAGE(has(error.what(), "--overwrite"), error.what());
    }
    CHECK(appeared);
    CHECK(read_text(path) == "mine");
}

}  // namespace

TEST_CASE("a file that comes by the name of one being written is kept, whatever writes") {
    Scratch scratch;
    const float one = 1;
    keeps(scratch / "a.gguf", [&](const auto& appear) {
        GgufWriter writer;
        writer.add_tensor("x", DType::f32, Shape(1), [&](const GgufWriter::Sink& sink) {
            appear();
            sink(&one, sizeof one);
        });
        writer.write(scratch / "a.gguf", Existing::keep);
    });
    keeps(scratch / "a.safetensors", [&](const auto& appear) {
        SafetensorsWriter writer;
        writer.add_tensor("x", DType::f32, Shape(1), [&](const SafetensorsWriter::Sink& sink) {
            appear();
            sink(&one, sizeof one);
        });
        writer.write(scratch.path, "a", 0, Existing::keep);
    });
    const Gguf model(tiny_model());
    keeps(scratch / "q.gguf", [&](const auto& appear) {
        QuantizeOptions options;
        options.mix = quantize_mix("q8_0"), options.existing = Existing::keep;
        std::vector<QuantizedTensor> plan = plan_quantization(model, options);
        write_quantized(model, options, plan, scratch / "q.gguf", [&](double, double) { appear(); });
    });
    SinkOptions options;
    write_folder(model, nullptr, scratch / "folder", options);
    keeps(scratch / "c.gguf", [&](const auto& appear) {
        write_gguf(open_folder(scratch / "folder", {}), scratch / "c.gguf", Existing::keep,
                   [&](double, double) { appear(); });
    });
    for (const char* name : {"generation_config.json", "model-x.safetensors", "config.json"})
        keeps(scratch / (std::string("other-") + name + "/" + name), [&](const auto& appear) {
            options.progress = [&](double, double) { appear(); };
            write_folder(model, nullptr, scratch / (std::string("other-") + name), options);
        });
}

TEST_CASE("merged models and adapters do not replace a file that is to be kept") {
    Scratch scratch;
    const std::shared_ptr<const Model> base = Model::open(tiny_model());
    keeps(scratch / "m.gguf", [&](const auto& appear) {
        appear();
        merge_adapters(*base, {}, std::nullopt, scratch / "m.gguf", Existing::keep);
    });
    keeps(scratch / "a.gguf", [&](const auto& appear) {
        appear();
        save_adapter(scratch / "a.gguf", "llama", {}, {}, 1, "a", {}, Existing::keep);
    });
}
