#include "data/documents.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/signals.h"
#include "base/utf8.h"

namespace linnet {
namespace {

constexpr std::uint64_t split_seed = 0x73706C6974;  // "split"

std::size_t tail_begin(std::string_view text, double fraction) {
    auto at = static_cast<std::size_t>(std::floor(static_cast<double>(text.size()) * (1.0 - fraction)));
    return character_start(text, std::min(at, text.size()));
}

}  // namespace

std::string Documents::sha256() const {
    if (count() <= 1) return linnet::sha256(text);
    Sha256 sum;
    for (std::size_t i = 0; i < count(); i++) {
        std::uint64_t size = (*this)[i].size();
        sum.update(&size, sizeof size);
        sum.update((*this)[i].data(), size);
    }
    return sum.hex();
}

Documents::Place Documents::place(std::string_view part) const {
    const auto at = static_cast<std::size_t>(part.data() - text.data());
    const auto end = std::upper_bound(ends.begin(), ends.end(), at);
    return {numbers[static_cast<std::size_t>(end - ends.begin())],
            at - (end == ends.begin() ? 0 : *std::prev(end))};
}

Documents read_documents(const std::vector<std::string>& inputs, ReadOptions options) {
    // The text is held whole, so a document may be read in pieces cut anywhere between characters.
    options.cut = [](std::string_view text, std::size_t from) { return character_start(text, from); };
    std::vector<std::string> files = expand_inputs(inputs, options.except);
    Documents documents;
    documents.files = files.size();
    DocumentReader reader(std::move(files), std::move(options));
    for (DocumentPart part; reader.next(documents.text, part);) {
        if (int signal = stop_signal()) throw Stopped{signal};
        if (part.first) documents.hashes.push_back(part.hash), documents.numbers.push_back(part.number);
        if (part.last) documents.ends.push_back(documents.text.size());
    }
    static_cast<Skipped&>(documents) = reader.skipped();
    if (documents.count() == 0)
        fail_input(inputs_name(inputs[0], inputs.size()), "", "a text",
                   documents.skipped > 0  ? documents.bad_alone()
                   : documents.files == 1 ? "an empty file"
                                          : "files without text");
    return documents;
}

bool held_out(std::uint64_t document_hash, double fraction) {
    // 2^64 is the first hash that no fraction reaches; 1.0 of them all is thus all.
    return static_cast<double>(hash_bytes({}, document_hash ^ split_seed)) < fraction * 0x1p64;
}

TextSplit split_documents(const Documents& documents, double fraction) {
    TextSplit split{{}, {}, &documents};
    if (documents.count() >= many_documents) {
        for (std::size_t i = 0; i < documents.count(); i++)
            (held_out(documents.hashes[i], fraction) ? split.validation : split.train)
                .push_back(documents[i]);
        if (!split.train.empty() && (fraction == 0 || !split.validation.empty())) return split;
        split.train.clear(), split.validation.clear();
    }
    for (std::size_t i = 0; i < documents.count(); i++) {
        std::string_view document = documents[i];
        std::size_t cut = tail_begin(document, fraction);
        if (cut > 0) split.train.push_back(document.substr(0, cut));
        if (cut < document.size()) split.validation.push_back(document.substr(cut));
    }
    return split;
}

}  // namespace linnet
