// The tokens of a vocabulary: spelling, type, score, and the way back from a spelling to its id.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "text/tokenizer.h"
#include "text/unicode/byte_alphabet.h"

namespace linnet {

/// GGUF's numbers (tokenizer.ggml.token_type).
enum class TokenType : std::uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
};

/// Spellings in one block, ids in order of adding, one flat hash table. Ids are [0, size()).
class Vocabulary {
  public:
    void reserve(std::size_t tokens, std::size_t bytes);
    /// Adds the next id. Returns the id that already has this spelling, or -1 where it is new. A repeated
    /// spelling is stored too, and find() keeps answering the first.
    TokenId add(std::string_view spelling, TokenType type = TokenType::normal, double score = 0);

    TokenId size() const { return static_cast<TokenId>(types_.size()); }
    bool valid(TokenId id) const { return id >= 0 && id < size(); }
    std::string_view spelling(TokenId id) const {
        return {blob_.data() + begin_[id], static_cast<std::size_t>(begin_[id + 1] - begin_[id])};
    }
    TokenType type(TokenId id) const { return types_[id]; }
    double score(TokenId id) const { return scores_[id]; }
    void set_type(TokenId id, TokenType type) { types_[id] = type; }
    void set_score(TokenId id, double score) { scores_[id] = score; }
    TokenId find(std::string_view spelling) const;  // -1: none
    /// The same for several: the memory that one look-up waits for is on its way during the others', which
    /// takes half of the time where the vocabulary is larger than the caches. At most `most_at_once`.
    void find(std::span<const std::string_view> spellings, TokenId* ids) const;
    static constexpr std::size_t most_at_once = 64;
    /// The most slots that a find() of a spelling that is there looks at.
    std::size_t longest_probe() const;

  private:
    struct Slot {
        std::uint32_t hash;
        TokenId id;  // -1: free
    };
    using Slots = std::vector<Slot, LargePageAllocator<Slot>>;
    void grow();
    /// The slot of this spelling, or the free one where it belongs.
    std::size_t slot_of(std::string_view spelling, std::uint32_t hash) const;
    std::string blob_;
    std::vector<std::uint64_t> begin_ = {0};
    std::vector<TokenType> types_;
    // As their file has them: tokenizer.json's decide between equal sums by the digits that a float lacks.
    std::vector<double> scores_;
    Slots slots_;
};

/// Where tokens are searched for byte by byte at every place of a text, work grows with the longest.
inline constexpr std::size_t longest_searched = 1024;
/// Error(Exit::input) where a token that is searched for is longer.
void refuse_long(std::string_view spelling);

/// The byte of a spelling like "<0x0A>", or -1.
int byte_of_spelling(std::string_view spelling);
std::string spelling_of_byte(std::uint8_t byte);

}  // namespace linnet
