#include "data/train_text.h"

#include <string>
#include <utility>
#include <vector>

#include "base/aside.h"
#include "data/documents.h"

namespace linnet {
namespace {

constexpr std::size_t block_bytes = std::size_t{8} << 20;

struct Block {
    std::string text;
    std::vector<DocumentPart> documents;  // pieces that follow each other in the block are one
    std::uint64_t bytes_read = 0;
};

Block read_block(DocumentReader& reader) {
    Block block;
    DocumentPart part;
    while (block.text.size() < block_bytes && reader.next(block.text, part)) {
        if (part.first || block.documents.empty())
            block.documents.push_back(part);
        else
            block.documents.back().end = part.end;
    }
    block.bytes_read = reader.bytes_read();
    return block;
}

void keep_invalid(ReadOptions& options) {
    if (options.invalid == "error" && !options.skip_bad) options.invalid = "keep";
}

}  // namespace

std::string training_text(const std::vector<std::string>& files, ReadOptions options) {
    keep_invalid(options);
    return std::move(read_documents(files, std::move(options)).text);
}

std::uint64_t train_on_files(VocabularyTrainer& trainer, const std::vector<std::string>& files,
                             ReadOptions options,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    options.cut = training_cut;
    keep_invalid(options);
    DocumentReader reader(expand_inputs(files), std::move(options));
    auto next = aside([&] { return read_block(reader); });
    for (;;) {
        Block block = next.get();
        if (block.documents.empty()) return reader.skipped().skipped;
        next = aside([&] { return read_block(reader); });
        std::vector<std::string_view> texts;
        for (const DocumentPart& part : block.documents)
            texts.push_back(std::string_view(block.text).substr(part.begin, part.end - part.begin));
        trainer.add(texts, !block.documents[0].first);
        if (progress) progress(block.bytes_read, reader.bytes_total());
    }
}

}  // namespace linnet
