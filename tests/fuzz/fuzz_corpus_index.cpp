// libFuzzer: any bytes as a corpus's index.json are an index that says itself again, or an Error.
#include "base/error.h"
#include "data/corpus_index.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    folder.with("index.json", fuzz::Input(data, size).rest());
    std::string json;
    try {
        json = corpus_index_json(read_corpus_index(folder.path()));
    } catch (const Error&) {
        return 0;
    }
    folder.with("index.json", json);  // an Error about this is a fault
    if (corpus_index_json(read_corpus_index(folder.path())) != json) std::abort();
    return 0;
}
