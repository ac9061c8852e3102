// The file, in the byte order of the machine:
//   char magic[16]; uint64 tokens, vocabulary, state bytes; char model[64], layout[64] (SHA-256); char
//   isa[16]; int32 ids[tokens]; float logits[vocabulary]; the state; char sha256[64] of all before.
#include "generate/prompt_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "kernels/kernels.h"
#include "model/fingerprint.h"

namespace linnet {
namespace {

constexpr char magic[17] = "linnet prompt 1\n";
constexpr std::size_t digest = 64;

struct Header {
    char magic[16] = {};
    std::uint64_t tokens = 0, vocabulary = 0, state = 0;
    char model[digest] = {}, layout[digest] = {}, isa[16] = {};
};

/// What this program would write, but for the numbers of tokens and bytes.
Header header_of(const EngineSource& source) {
    auto put = [](char* to, std::size_t size, const std::string& text) {
        std::copy_n(text.data(), std::min(size, text.size()), to);
    };
    const Engine& engine = source.engine();
    Header h;
    put(h.magic, sizeof h.magic, magic);
    h.vocabulary = static_cast<std::uint64_t>(engine.model().config().vocabulary);
    put(h.model, sizeof h.model, fingerprint(engine.model()));
    put(h.layout, sizeof h.layout, sha256(engine.state_layout()));
    put(h.isa, sizeof h.isa, kernels().name);
    return h;
}

std::uint64_t bytes_of(const std::vector<std::span<std::byte>>& pieces) {
    std::uint64_t sum = 0;
    for (const auto& piece : pieces) sum += piece.size();
    return sum;
}

template <std::size_t n>
std::string text_of(const char (&text)[n]) {
    return std::string(text, strnlen(text, n));
}

/// The file's header, where it may be used here.
Header checked_header(const MappedFile& file, const EngineSource& source) {
    const std::string_view text = file.text();
    if (text.size() < sizeof(Header) || !text.starts_with(std::string_view(magic, 16)))
        fail_input(file.path(), "", "a prompt cache of this version of linnet", "another file");
    Header found;
    std::memcpy(&found, text.data(), sizeof found);
    const Header own = header_of(source);
    if (std::memcmp(found.model, own.model, digest) != 0 || found.vocabulary != own.vocabulary)
        fail_input(file.path(), "", "the prompt cache of " + source.engine().model().path(),
                   "that of another model", "a new name makes a new one");
    if (text_of(found.isa) != text_of(own.isa))
        fail_input(file.path(), "instruction set", text_of(own.isa), text_of(found.isa),
                   "roundings differ; --isa chooses");
    if (std::memcmp(found.layout, own.layout, digest) != 0)
        fail_input(file.path(), "", "keys and values stored as here", "stored in another way",
                   "--kv-type, --ctx or --parallel was another; a new name makes a new one");
    if (found.tokens == 0 || found.tokens > static_cast<std::uint64_t>(source.context()))
        fail_input(file.path(), "tokens", "1 to " + std::to_string(source.context()) + ", the context",
                   std::to_string(found.tokens));
    return found;
}

}  // namespace

void save_prompt_cache(const std::string& path, EngineSource& source, const CachedPrompt& prompt) {
    const std::vector<std::span<std::byte>> pieces = source.sequence(0).state();
    Header header = header_of(source);
    header.tokens = prompt.tokens.size();
    header.state = bytes_of(pieces);
    AtomicFile file(path, Existing::keep);
    Sha256 hash;
    auto put = [&](const void* data, std::size_t size) {
        hash.update(data, size);
        file.write(data, size);
    };
    put(&header, sizeof header);
    put(prompt.tokens.data(), prompt.tokens.size() * sizeof(TokenId));
    put(prompt.logits.data(), prompt.logits.size() * sizeof(float));
    for (const auto& piece : pieces) put(piece.data(), piece.size());
    file.write(hash.hex());
    file.commit();
}

CachedPrompt load_prompt_cache(const std::string& path, EngineSource& source) {
    const MappedFile file(path);
    const Header header = checked_header(file, source);
    source.sequence(0).set_position(static_cast<std::int64_t>(header.tokens));
    const std::vector<std::span<std::byte>> pieces = source.sequence(0).state();
    const std::uint64_t state = bytes_of(pieces);
    const std::size_t size =
        sizeof header + header.tokens * sizeof(TokenId) + header.vocabulary * sizeof(float) + state + digest;
    const std::string_view text = file.text();
    if (header.state != state && text.size() == size - state + header.state)
        fail_input(path, "", "windows stored in rings as long as here", "others",
                   "--ctx or --parallel was another; a new name makes a new one");
    if (header.state != state || text.size() != size)
        fail_input(path, "", std::to_string(size) + " bytes", std::to_string(text.size()),
                   "the file was cut short or added to");
    if (sha256(text.substr(0, size - digest)) != text.substr(size - digest))
        fail_input(path, "", "its own checksum", "another", "the file is damaged");
    CachedPrompt prompt;
    prompt.tokens.resize(header.tokens);
    prompt.logits.resize(header.vocabulary);
    const char* from = text.data() + sizeof header;
    auto take = [&](void* to, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        from += bytes;
    };
    take(prompt.tokens.data(), prompt.tokens.size() * sizeof(TokenId));
    take(prompt.logits.data(), prompt.logits.size() * sizeof(float));
    for (const auto& piece : pieces) take(piece.data(), piece.size());
    return prompt;
}

}  // namespace linnet
