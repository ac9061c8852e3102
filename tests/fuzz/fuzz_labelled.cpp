// libFuzzer: a byte of choices, then any bytes as lines of pairs, classes or tags are examples, or an Error.
#include <cstdlib>

#include "base/error.h"
#include "data/labelled/lines.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const std::size_t choices = input.choice(12);
    LabelledOptions options;
    options.inputs = {folder.with("lines", input.rest())};
    options.format = choices & 1 ? "jsonl" : "text";
    options.skip_bad = choices & 2;
    try {
        const LabelledData lines = read_labelled(static_cast<LabelledKind>(choices / 4), options);
        if (lines.all.empty()) std::abort();
        for (const LabelledExample& line : lines.all) {
            if (line.first.empty() || line.line < 1) std::abort();
            lines.place(line);
            held_out(line, 0.5);
        }
    } catch (const Error&) {
    }
    return 0;
}
