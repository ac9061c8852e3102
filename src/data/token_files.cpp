#include "data/token_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"
#include "data/shards.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

bool has_llmc_header(const std::string& path) {
    const MappedFile file(path);
    std::int32_t magic = 0;
    if (file.bytes().size() < llmc_header_bytes) return false;
    std::memcpy(&magic, file.bytes().data(), sizeof magic);
    return std::any_of(std::begin(llmc_headers), std::end(llmc_headers),
                       [&](const LlmcHeader& h) { return h.magic == magic; });
}

/// The layout of one token file; null where it is none. nanoGPT's files say nothing of themselves but their
/// names.
const CorpusLayout* layout_of(const std::string& path) {
    const fs::path file(path);
    if (file.extension() != ".bin" || !is_file(path)) return nullptr;
    if (is_file(fs::path(path).replace_extension(".idx").string())) return find_layout("megatron");
    if (has_llmc_header(path)) return find_layout("llmc");
    return find_layout("nanogpt")->owns(file.filename().string()) ? find_layout("nanogpt") : nullptr;
}

/// Whether a word of the name says so: fineweb_val_000000.bin, and not retrieval.bin.
bool is_validation(const std::string& name) {
    std::string word;
    for (const char c : name + ".") {
        const char small = static_cast<char>(c | 0x20);
        if (small >= 'a' && small <= 'z') {
            word += small;
        } else {
            if (word == "val" || word == "valid" || word == "validation") return true;
            word.clear();
        }
    }
    return false;
}

/// Whether a folder's index.json is, or was before it was damaged, that of a corpus of ours: other programs
/// have files of this name too.
bool is_corpus(const std::string& folder) {
    const std::string path = folder + "/" + corpus_index_name;
    return is_file(path) && MappedFile(path).text().substr(0, 4096).find(corpus_format) != std::string::npos;
}

/// Every file of `names` that has the layout of the first that has one.
TokenFiles files_of(const std::string& folder, const std::vector<std::string>& names) {
    TokenFiles found;
    found.folder = folder;
    const CorpusLayout* layout = nullptr;
    for (const std::string& name : names) {
        const std::string path = folder + "/" + name;
        const CorpusLayout* its = layout_of(path);
        if (!layout) layout = its;
        if (!its || its != layout) continue;
        CorpusShard shard;
        shard.file = name;
        shard.split = split_names[is_validation(name) ? 1 : 0];
        shard.tokens = TokenShard(path, *layout).size();
        found.index.tokens += shard.tokens;
        found.index.shards.push_back(std::move(shard));
    }
    if (layout) found.index.layout = layout->name;
    return found;
}

}  // namespace

std::string TokenFiles::tokenizer() const {
    return ours ? folder + "/" + corpus_tokenizer : tokenizer_in(folder);
}

std::string TokenFiles::sha256() const {
    if (ours) return linnet::sha256(MappedFile(folder + "/" + corpus_index_name).text());
    constexpr std::size_t end = std::size_t{1} << 20;
    Sha256 sum;
    for (const CorpusShard& shard : index.shards) {
        const MappedFile file(folder + "/" + shard.file);
        const std::string_view text = file.text();
        sum.update(shard.file + " " + std::to_string(text.size()) + "\n");
        sum.update(text.substr(0, end));
        sum.update(text.substr(text.size() - std::min(end, text.size())));
    }
    return sum.hex();
}

std::optional<TokenFiles> find_token_files(const std::string& path) {
    if (path == "-") return std::nullopt;
    if (is_corpus(path)) return TokenFiles{path, read_corpus_index(path), true};
    std::error_code error;
    const fs::path at(path);
    const std::string folder = at.has_parent_path() ? at.parent_path().string() : ".";
    TokenFiles found;
    if (fs::is_directory(path, error))
        found = files_of(path, names_in(path));
    else if (at.extension() == ".bin")
        found = files_of(folder, {at.filename().string()});
    else if (is_file(path + ".bin") && is_file(path + ".idx"))
        found = files_of(folder, {at.filename().string() + ".bin"});
    if (found.index.shards.empty()) return std::nullopt;
    return found;
}

}  // namespace linnet
