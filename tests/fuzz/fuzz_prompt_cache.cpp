// libFuzzer: a prompt cache with any of its bytes changed, and a checksum that fits, is read or is an Error.
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "generate/prompt_cache.h"
#include "small_model.h"

namespace {

using namespace linnet;

fuzz::Folder& folder() {
    static fuzz::Folder one;
    return one;
}

EngineSource& source() {
    static EngineSource one(fuzz::small_model(), {.context = 8, .threads = 1});
    return one;
}

/// One that linnet has written, without its checksum.
const std::string& written() {
    static const std::string bytes = [] {
        const std::string path = folder().path() + "/written";
        const std::vector<TokenId> tokens = {1, 2, 3};
        const std::span<const float> logits = source().sequence(0).append(tokens, Phase::read);
        save_prompt_cache(path, source(), {tokens, {logits.begin(), logits.end()}});
        const std::string whole(MappedFile(path).text());
        return whole.substr(0, whole.size() - 64);
    }();
    return bytes;
}

}  // namespace

/// Of the input, two bytes are a place and the third what stands there; a rest of one or two bytes cuts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string bytes = written();
    for (; size >= 3; data += 3, size -= 3)
        bytes[(data[0] | data[1] << 8) % bytes.size()] = static_cast<char>(data[2]);
    if (size > 0) bytes.resize(bytes.size() * data[0] / 255);
    bytes += sha256(bytes);
    try {
        load_prompt_cache(folder().with("cache", bytes), source());
    } catch (const Error&) {
    }
    return 0;
}
