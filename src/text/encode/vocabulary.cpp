#include "text/encode/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/keyed_hash.h"

namespace linnet {

static std::uint32_t hash_of(std::string_view spelling) {
    return static_cast<std::uint32_t>(keyed_hash(spelling));
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
    blob_.reserve(bytes);
    begin_.reserve(tokens + 1);
    types_.reserve(tokens);
    scores_.reserve(tokens);
    if (types_.empty()) slots_.assign(std::bit_ceil(std::max<std::size_t>(tokens * 2, 16)), {0, -1});
}

void Vocabulary::grow() {
    Slots old(std::max<std::size_t>(slots_.size() * 2, 16), {0, -1});
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.id < 0) continue;
        std::size_t i = slot.hash & mask;
        while (slots_[i].id >= 0) i = (i + 1) & mask;
        slots_[i] = slot;
    }
}

std::size_t Vocabulary::slot_of(std::string_view spelling, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].id >= 0 && !(slots_[i].hash == hash && this->spelling(slots_[i].id) == spelling))
        i = (i + 1) & mask;
    return i;
}

TokenId Vocabulary::add(std::string_view spelling, TokenType type, double score) {
    if (slots_.size() < (types_.size() + 1) * 2) grow();
    const TokenId id = size();
    const std::uint32_t hash = hash_of(spelling);
    Slot& slot = slots_[slot_of(spelling, hash)];
    const TokenId found = slot.id;
    if (found < 0) slot = {hash, id};
    blob_ += spelling;
    begin_.push_back(blob_.size());
    types_.push_back(type);
    scores_.push_back(score);
    return found;
}

TokenId Vocabulary::find(std::string_view spelling) const {
    return slots_.empty() ? -1 : slots_[slot_of(spelling, hash_of(spelling))].id;
}

void Vocabulary::find(std::span<const std::string_view> spellings, TokenId* ids) const {
    std::uint32_t hashes[most_at_once];
    if (slots_.empty()) {
        std::fill_n(ids, spellings.size(), -1);
        return;
    }
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = 0; i < spellings.size(); i++) {
        hashes[i] = hash_of(spellings[i]);
        __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    for (std::size_t i = 0; i < spellings.size(); i++) {
        ids[i] = slots_[hashes[i] & mask].id;
        if (ids[i] >= 0) __builtin_prefetch(&begin_[ids[i]]);
    }
    for (std::size_t i = 0; i < spellings.size(); i++)
        if (ids[i] >= 0) __builtin_prefetch(blob_.data() + begin_[ids[i]]);
    for (std::size_t i = 0; i < spellings.size(); i++) ids[i] = slots_[slot_of(spellings[i], hashes[i])].id;
}

std::size_t Vocabulary::longest_probe() const {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < slots_.size(); i++)
        if (slots_[i].id >= 0) longest = std::max(longest, ((i - slots_[i].hash) & (slots_.size() - 1)) + 1);
    return longest;
}

void refuse_long(std::string_view spelling) {
    if (spelling.size() > longest_searched)
        fail_input("tokenizer", "vocabulary",
                   "tokens of at most " + std::to_string(longest_searched) + " bytes for this kind",
                   "one of " + std::to_string(spelling.size()));
}

int byte_of_spelling(std::string_view s) {
    auto hex = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    if (s.size() != 6 || s.substr(0, 3) != "<0x" || s[5] != '>') return -1;
    int high = hex(s[3]), low = hex(s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string spelling_of_byte(std::uint8_t byte) {
    constexpr char digits[] = "0123456789ABCDEF";
    return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

}  // namespace linnet
