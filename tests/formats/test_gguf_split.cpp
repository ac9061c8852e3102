// Files in several parts: opened whole by the name of any of them; what does not fit together is refused with
// a line that names the part.
#include <doctest/doctest.h>

#include "base/error.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// What one part says, right unless a test changes it.
struct Part {
    std::uint32_t number, count = 3, tensors = 4;
    std::vector<std::string> names;
    std::string architecture;     // "": not said
    std::uint32_t alignment = 0;  // 0: not said
};

void write_part(const std::string& path, const Part& part) {
    GgufWriter out;
    if (!part.architecture.empty()) out.add("general.architecture", std::string_view(part.architecture));
    if (part.alignment > 0) out.add("general.alignment", part.alignment);
    out.add("split.no", part.number);
    out.add("split.count", part.count);
    out.add("split.tensors.count", part.tensors);
    for (const std::string& name : part.names)
        out.add_tensor(name, DType::f32, Shape(8), [name](const GgufWriter::Sink& sink) {
            std::vector<float> values(8, static_cast<float>(name.back()));
            sink(values.data(), 32);
        });
    out.write(path);
}

/// Three parts of four tensors, the first without any.
struct Parts {
    Scratch scratch;
    std::vector<Part> all{{0, 3, 4, {}, "llama"}, {1, 3, 4, {"a", "b"}, ""}, {2, 3, 4, {"c", "d"}, ""}};

    std::string path(std::size_t i) const {
        return scratch / ("m-0000" + std::to_string(i + 1) + "-of-00003.gguf");
    }
    void write() const {
        for (std::size_t i = 0; i < all.size(); i++) write_part(path(i), all[i]);
    }
    /// The error of opening the part, or "accepted".
    std::string opening(std::size_t i = 0) const {
        return linnet::test::refusal([&] { Gguf file(path(i)); });
    }
};

}  // namespace

TEST_CASE("a split file is opened whole by the name of any part, its tensors where they are mapped") {
    Parts parts;
    parts.write();
    for (std::size_t i = 0; i < 3; i++) {
        Gguf file(parts.path(i));
        CHECK(file.path() == parts.path(0));
        CHECK(file.string("general.architecture") == "llama");
        REQUIRE(file.tensors().size() == 4);
        for (const char* name : {"a", "b", "c", "d"}) {
            const GgufTensor* tensor = file.tensor(name);
            REQUIRE(tensor);
            CHECK(*reinterpret_cast<const float*>(tensor->bytes.data()) == static_cast<float>(name[0]));
            CHECK(file.path_of(*tensor) == parts.path(name[0] < 'c' ? 1 : 2));
        }
        std::uint64_t bytes = 0;
        for (std::size_t k = 0; k < 3; k++) bytes += read_text(parts.path(k)).size();
        CHECK(file.file_bytes() == bytes);
        Gguf moved = std::move(file);
        CHECK(moved.path_of(*moved.tensor("d")) == parts.path(2));
    }
    // One part alone, for what asks for no more.
    CHECK(Gguf(MappedFile(parts.path(1))).tensors().size() == 2);
}

TEST_CASE("parts that are missing, doubled or of another model are refused, and the line names the part") {
    auto refusal = [](auto change) {
        Parts parts;
        parts.write();
        change(parts);
        std::string line = parts.opening();
        return line.replace(0, parts.scratch.path.size() + 1, "");
    };
    CHECK(refusal([](Parts& p) { remove(p.path(1).c_str()); }) ==
          "m-00002-of-00003.gguf: expected part 2 of 3, beside the others, got no such file");
    CHECK(refusal([](Parts& p) { write_text(p.path(2), read_text(p.path(1))); }) ==
          "m-00003-of-00003.gguf: key 'split.no': expected 2 in part 3 of 3, got 1 (the same part twice?)");
    CHECK(refusal([](Parts& p) {
              write_part(p.path(2), {2, 4, 4, {"c", "d"}, ""});
          }) == "m-00003-of-00003.gguf: key 'split.count': expected 3, as its name says, got 4");
    CHECK(
        refusal([](Parts& p) {
            write_part(p.path(1), {1, 3, 5, {"a", "b"}, ""});
        }) ==
        "m-00002-of-00003.gguf: key 'split.tensors.count': expected the value that it has in the first part, "
        "got another one (a part of another model?)");
    CHECK(refusal([](Parts& p) {
              write_part(p.path(1), {1, 3, 4, {"a", "b"}, "qwen2"});
          }) ==
          "m-00002-of-00003.gguf: key 'general.architecture': expected the value that it has in the first "
          "part, "
          "got another one (a part of another model?)");
    CHECK(refusal([](Parts& p) {
              write_part(p.path(2), {2, 3, 4, {"c", "b"}, ""});
          }).starts_with("m-00003-of-00003.gguf: tensor 'b': expected it in one part alone, got it in "));
    CHECK(refusal([](Parts& p) {
              write_part(p.path(2), {2, 3, 4, {"c"}, ""});
          }) ==
          "m-00001-of-00003.gguf: key 'split.tensors.count': expected 3, as many as the parts hold, got 4");
    CHECK(refusal([](Parts& p) {
              write_text(p.path(1), read_text(p.path(1)).substr(0, 200));
          }).starts_with("m-00002-of-00003.gguf: "));
    CHECK(
        refusal([](Parts& p) { write_text(p.path(1), "GGML"); }).starts_with("m-00002-of-00003.gguf: magic"));
    CHECK(refusal([](Parts& p) {
              write_part(p.path(0), {7, 3, 4, {}, "llama"});
          }) == "m-00001-of-00003.gguf: key 'split.no': expected a number below split.count, 3, got 7");
    CHECK(refusal([](Parts& p) {
              write_part(p.path(0), {0, 65536, 4, {}, "llama"});
          }) == "m-00001-of-00003.gguf: key 'split.count': expected an integer from 0 to 65535, got 65536");
    // The first one's name and numbers: those of a second, which then is the first's twin.
    CHECK(refusal([](Parts& p) {
              write_part(p.path(0), {1, 3, 4, {"a", "b"}, ""});
          }).starts_with("m-00001-of-00003.gguf: expected a name that ends in -00002-of-00003.gguf"));
    // 65535 parts that are not there end at the first.
    CHECK(refusal([](Parts& p) {
              write_part(p.path(0), {0, 65535, 4, {}, "llama"});
          }).starts_with("m-00001-of-00003.gguf: expected a name that ends in -00001-of-65535.gguf"));
}

TEST_CASE("a part under another name is refused; one that counts itself alone is a whole file") {
    Parts parts;
    parts.write();
    write_text(parts.scratch / "renamed.gguf", read_text(parts.path(0)));
    CHECK_THROWS_AS(Gguf(parts.scratch / "renamed.gguf"), Error);
    write_part(parts.scratch / "one.gguf", {0, 1, 1, {"a"}, "llama"});
    CHECK(Gguf(parts.scratch / "one.gguf").tensors().size() == 1);
}

TEST_CASE("each part of a split file may have an alignment of its own") {
    Parts parts;
    for (std::size_t i = 0; i < 3; i++) parts.all[i].alignment = std::uint32_t{8} << i;
    parts.write();
    CHECK(Gguf(parts.path(0)).tensors().size() == 4);
}
