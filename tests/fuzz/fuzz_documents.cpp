// libFuzzer: a byte of choices, then a file of any bytes, compressed or not: documents of valid UTF-8 in
// parts that follow each other, or an Error.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "data/document_reader.h"
#include "folder.h"
#include "input.h"
#include "text/unicode/unicode.h"

namespace {

using namespace linnet;

constexpr std::size_t most = std::size_t{1} << 18;  // few compressed bytes make many

ReadOptions options_of(std::size_t choices) {
    static const char *const formats[] = {"text", "jsonl"}, *const invalid[] = {"error", "replace", "keep"};
    ReadOptions options;
    options.format = formats[choices & 1], choices >>= 1;
    if (choices & 1) options.separator = "--";
    choices >>= 1;
    options.skip_bad = choices & 1, choices >>= 1;
    if (choices & 1) options.piece = 16;
    choices >>= 1;
    options.invalid = invalid[choices % 3];
    options.longest = most / 4;
    options.cut = [](std::string_view text, std::size_t from) {
        return std::min(text.find(' ', from), text.size());
    };
    return options;
}

void read(DocumentReader& reader, bool keeps_any) {
    std::string text;
    bool open = false;
    for (DocumentPart part; text.size() < most && reader.next(text, part);) {
        if (part.begin > part.end || part.end > text.size() || part.first == open) std::abort();
        open = !part.last;
        const std::string_view own = std::string_view(text).substr(part.begin, part.end - part.begin);
        if (!keeps_any && valid_utf8_prefix(own) != own.size()) std::abort();
    }
    if (open && text.size() < most) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const ReadOptions options = options_of(input.choice(256));
    const std::string path = folder.with("documents", input.rest());
    try {
        DocumentReader reader({path}, options);
        read(reader, options.invalid == "keep" && options.format == "text");
    } catch (const Error&) {
    }
    return 0;
}
