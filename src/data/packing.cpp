#include "data/packing.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "data/permutation.h"

namespace linnet {
namespace {

constexpr std::uint64_t pack_stream = 0x7061636b;  // "pack": this purpose's stream of the seed

}  // namespace

PackedTexts::PackedTexts(const std::vector<PackedText> (&texts)[2], bool cut, const Tokenizer& tokenizer,
                         std::uint64_t seed, std::int64_t T, const std::string& name)
    : seed_(seed), T_(static_cast<std::size_t>(T)) {
    for (int i = 0; i < 2; i++) {
        std::vector<Piece> pieces;
        Split& split = splits_[i];
        for (const PackedText& text : texts[i]) take(split, text, cut, pieces);
        std::string spelled;
        for (const Piece& piece : pieces)
            for (std::size_t k = piece.begin + 1; k < piece.begin + piece.length; k++) {
                if (!split.counts[k]) continue;
                split.scored++;
                tokenizer.decode(split.ids[k], false, spelled);
                split.bytes += spelled.size();
                spelled.clear();
            }
        pack(split, std::move(pieces));
    }
    if (splits_[0].bins.empty())
        fail_input(name, "training split",
                   "a text with something to learn within " + std::to_string(T) + " tokens", "none",
                   "a longer train.sequence, or more text");
}

void PackedTexts::take(Split& split, const PackedText& text, bool cut, std::vector<Piece>& pieces) {
    const std::size_t size = text.ids.size();
    const std::size_t before = pieces.size();
    for (std::size_t begin = 0; begin + 1 < size; begin += T_) {
        const std::size_t length = std::min(T_ + 1, size - begin);
        const auto first = static_cast<std::ptrdiff_t>(begin),
                   last = first + static_cast<std::ptrdiff_t>(length);
        if (std::count(text.scored.begin() + first + 1, text.scored.begin() + last, 1) > 0) {
            pieces.push_back({split.ids.size(), length});
            split.ids.insert(split.ids.end(), text.ids.begin() + first, text.ids.begin() + last);
            split.counts.insert(split.counts.end(), text.scored.begin() + first, text.scored.begin() + last);
        }
        if (!cut) break;
    }
    if (size > T_ + 1 && !cut) (pieces.size() > before ? shortened_ : left_out_)++;
}

void PackedTexts::pack(Split& split, std::vector<Piece> pieces) const {
    std::stable_sort(pieces.begin(), pieces.end(), [](Piece a, Piece b) { return a.length > b.length; });
    std::multimap<std::size_t, std::size_t> room;  // rows left -> bin
    for (const Piece& piece : pieces) {
        const std::size_t rows = piece.length - 1;
        auto fits = room.lower_bound(rows);
        std::size_t bin = split.bins.size(), left = T_;
        if (fits == room.end()) {
            split.bins.emplace_back();
        } else {
            left = fits->first, bin = fits->second;
            room.erase(fits);
        }
        split.bins[bin].push_back(piece);
        if (left > rows) room.emplace(left - rows, bin);
    }
}

std::uint64_t PackedTexts::train_bin(std::uint64_t index) const {
    const std::uint64_t count = splits_[0].bins.size();
    return permuted(Rng(seed_, pack_stream + index / count), index % count, count);
}

std::int64_t PackedTexts::targets(DataSplit split, std::uint64_t bin) const {
    std::int64_t count = 0;
    for (const Piece& piece : at(split).bins[bin]) {
        const auto first = at(split).counts.begin() + static_cast<std::ptrdiff_t>(piece.begin);
        count += std::count(first + 1, first + static_cast<std::ptrdiff_t>(piece.length), 1);
    }
    return count;
}

void PackedTexts::add(DataSplit split, std::uint64_t bin, Batch& batch) const {
    const Split& from = at(split);
    for (const Piece& piece : from.bins[bin]) {
        const std::size_t rows = piece.length - 1;
        batch.add(from.ids.data() + piece.begin, static_cast<std::int64_t>(rows), 0,
                  static_cast<std::int64_t>(batch.rows.segments.size()));
        for (std::size_t k = piece.begin + 1; k <= piece.begin + rows; k++)
            batch.targets.push_back(from.counts[k] ? from.ids[k] : -1);
    }
}

std::string PackedTexts::held_out_beginning(const Tokenizer& tokenizer) const {
    constexpr std::size_t most = 16;  // tokens of a text that counts from its first on
    const Split& from = splits_[1];
    if (from.bins.empty()) return {};
    const Piece& piece = from.bins[0].back();  // the shortest there
    std::size_t length = 1;
    while (length < piece.length && !from.counts[piece.begin + length]) length++;
    if (length == 1) length = std::min(most, piece.length);
    return tokenizer.decode(std::span(from.ids).subspan(piece.begin, length));
}

}  // namespace linnet
