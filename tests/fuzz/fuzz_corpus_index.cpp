// libFuzzer: any bytes as a corpus's index.json are an index that says itself again, or an Error.
#include "base/error.h"
#include "data/corpus_index.h"
#include "folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    try {
        const std::string json =
            corpus_index_json(read_corpus_index(fuzz::folder_with("index.json", data, size)));
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(json.data());
        if (corpus_index_json(read_corpus_index(fuzz::folder_with("index.json", bytes, json.size()))) != json)
            std::abort();
    } catch (const Error&) {
    }
    return 0;
}
