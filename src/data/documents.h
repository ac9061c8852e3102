// What a training run reads: documents from anywhere `linnet corpus` reads them, held in memory, and which of
// them are held out.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/document_reader.h"
#include "text/naming.h"

namespace linnet {

/// The two parts of what a run reads: what it learns from, and what is held out.
enum class DataSplit { train, validation };

/// Documents end to end.
struct Documents : Skipped {
    std::string text;
    std::vector<std::size_t> ends;       // of each in `text`, ascending
    std::vector<std::uint64_t> hashes;   // DocumentPart::hash of each
    std::vector<std::uint64_t> numbers;  // DocumentPart::number of each
    std::uint64_t files = 0;

    std::size_t count() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const {
        std::size_t begin = i == 0 ? 0 : ends[i - 1];
        return std::string_view(text).substr(begin, ends[i] - begin);
    }
    /// Where a part of `text` stands, which lies in one document.
    struct Place {
        std::uint64_t number;  // of the document
        std::size_t before;    // bytes of it that stand before the part
    };
    Place place(std::string_view part) const;
    /// Of one document: of its bytes. Of several: of their bytes and lengths.
    std::string sha256() const;
};

/// Every document of `inputs` (files, folders, "-"). Error(Exit::input) where there is none.
Documents read_documents(const std::vector<std::string>& inputs, ReadOptions options);

/// The two parts of a training text, as documents or pieces of them.
struct TextSplit {
    std::vector<std::string_view> train, validation;
    const Documents* whole = nullptr;  // that they are parts of; none: each is a document of its own
};

/// act(), which encodes parts[i], of `split`: errors of the text `name` say which of several documents it is,
/// and count from that one's beginning.
template <class Act>
auto naming_part(const TextSplit& split, const std::vector<std::string_view>& parts, std::size_t i,
                 const std::string& name, const Act& act) {
    const auto place = [&]() -> Documents::Place {
        return split.whole ? split.whole->place(parts[i]) : Documents::Place{i + 1, 0};
    };
    const auto full_name = [&] {
        const bool several = (split.whole ? split.whole->count() : parts.size()) > 1;
        return several ? name + ": document " + std::to_string(place().number) : name;
    };
    return naming(full_name, [&] { return behind([&] { return place().before; }, act); });
}

/// Few documents (one text, some books): the tail of each is held out, `fraction` of it, cut between
/// characters. Many: whole ones, by the hash of each as `linnet corpus` chooses them, so that equal ones lie
/// on one side.
TextSplit split_documents(const Documents& documents, double fraction);

/// So many are many: a share of fewer, chosen by their hashes, says little.
inline constexpr std::size_t many_documents = 100;

/// Whether a document of this hash is held out, where `fraction` of many are.
bool held_out(std::uint64_t document_hash, double fraction);

}  // namespace linnet
