// Conversions straight from one format to another: the same bytes as by way of a GGUF file, in little memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "commands/tiny.h"
#include "model/family_files.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

/// A GPT-2 of 93 MB in f32: every matrix but the tables is transposed in a folder, one table has 40 MiB.
void write_wide_model(const std::string& path) {
    FamilyFile file = family_file("gpt2-tied");
    file.layers = 1, file.width = 1024, file.heads = file.kv_heads = 16, file.ffn = 4096,
    file.context = 10240;
    write_family_file(file, path);
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("every conversion of a model takes less memory than its largest tensor, and gives the same bytes") {
    // Linux counts against RLIMIT_DATA what is private and writable: anonymous memory, touched or not.
    Workplace place("export OMP_NUM_THREADS=1");
    write_wide_model(place.s / "m.gguf");
    struct Row {
        const char *in, *out, *options, *same;  // same: an earlier row's output
    };
    constexpr Row rows[] = {
        {"m.gguf", "hf", "", ""},
        {"hf", "a.gguf", "", ""},
        {"m.gguf", "m.bin", "", ""},
        {"hf", "hf2", "", "hf"},
        {"hf", "b.bin", "", "m.bin"},
        {"m.bin", "hf3", "-t m.gguf", "hf"},
        {"m.bin", "c.gguf", "-t m.gguf", ""},
        {"m.gguf", "half", "--type bf16", ""},
        {"hf", "half2", "--type bf16", "half"},
        {"half", "half3", "", "half"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.out);
        const Outcome made = place(std::string("ulimit -d 40000; $LINNET convert ") + row.in + " " + row.out +
                                   " " + row.options);
        CHECK_MESSAGE(made.exit == 0, made.err);
        if (*row.same)
            for (const char* name : {"", "/model.safetensors"}) {
                const std::string now = place.s / (std::string(row.out) + name),
                                  before = place.s / (std::string(row.same) + name);
                if (fs::is_regular_file(now)) CHECK(place("cmp '" + now + "' '" + before + "'").exit == 0);
            }
    }
    for (const char* file : {"a.gguf", "c.gguf"})
        CHECK(place(std::string("$LINNET inspect logits -m ") + file + " -p 12 --threads 1").out ==
              place("$LINNET inspect logits -m m.gguf -p 12 --threads 1").out);
}
#endif
