// libFuzzer: any bytes as an unfinished corpus's progress.json say how far it is, and say it again once
// written, or are an Error.
#include "base/error.h"
#include "data/corpus_progress.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder, written;
    folder.with("progress.json", fuzz::Input(data, size).rest());
    CorpusProgress read, again;
    try {
        if (!read_corpus_progress(folder.path(), read)) std::abort();
    } catch (const Error&) {
        return 0;
    }
    write_corpus_progress(written.path(), read);  // an Error about this is a fault
    if (!read_corpus_progress(written.path(), again)) std::abort();
    if (again.settings != read.settings || again.batches != read.batches ||
        again.input_hash != read.input_hash || again.replaces != read.replaces)
        std::abort();
    for (int i = 0; i < 2; i++)
        if (again.splits[i].finished.size() != read.splits[i].finished.size() ||
            again.splits[i].open.tokens != read.splits[i].open.tokens)
            std::abort();
    return 0;
}
