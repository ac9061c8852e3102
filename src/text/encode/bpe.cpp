#include "text/encode/bpe.h"

#include <algorithm>

#include "base/error.h"
#include "text/encode/word_cache.h"
#include "text/naming.h"

namespace linnet {

SafeBorders::SafeBorders() : start_(65536), end_(65536), triples_((1u << 19) / 64) {}

void SafeBorders::add_token(std::string_view t) {
    if (t.size() < 2) return;
    start_[byte(t[0]) << 8 | byte(t[1])] = 1;
    end_[byte(t[t.size() - 2]) << 8 | byte(t[t.size() - 1])] = 1;
    for (std::size_t i = 2; i < t.size(); i++) {
        std::size_t s = slot(byte(t[i - 2]), byte(t[i - 1]), byte(t[i]));
        triples_[s >> 6] |= std::uint64_t{1} << (s & 63);
    }
}

/// 16 MiB for words of up to 16 bytes, 1 MiB for those of up to 32. On an idle machine that beats caches that
/// fit the second level by a quarter on English, as a miss costs a merge; twice as large gains nothing.
struct BpeModel::Scratch final : ModelScratch {
    WordCache<2, 3> small{14, 18};
    WordCache<4, 7> large{10, 13};
    Merger merger;
    std::vector<TokenId> ids;
    std::string text;
};

BpeModel::BpeModel(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options,
                   std::vector<char32_t> extra_characters)
    : vocabulary_(vocabulary),
      merges_(std::move(merges)),
      options_(std::move(options)),
      extra_(std::move(extra_characters)) {
    const std::size_t symbols = static_cast<std::size_t>(vocabulary_.size()) + extra_.size();
    if (symbols > static_cast<std::size_t>(MergeTable::most_symbols))
        fail_input(
            "tokenizer", "vocabulary",
            "at most " + std::to_string(MergeTable::most_symbols) + " tokens and characters that are none",
            std::to_string(symbols));
    auto name_symbol = [&](char32_t code, TokenId symbol) {
        character_symbol_.add(0, code, static_cast<std::uint32_t>(symbol));
    };
    for (std::size_t i = 0; i < extra_.size(); i++)
        name_symbol(extra_[i], vocabulary_.size() + static_cast<TokenId>(i));
    byte_symbol_.fill(-1);
    std::string bytes;
    for (TokenId id = 0; id < vocabulary_.size(); id++) {
        std::string_view spelling = vocabulary_.spelling(id);
        const TokenType type = vocabulary_.type(id);
        if (int b = byte_of_spelling(spelling); b >= 0 && !options_.byte_level) byte_symbol_[b] = id;
        if (type != TokenType::normal && type != TokenType::user_defined && type != TokenType::unused)
            continue;
        if (options_.byte_level) {
            bytes.clear();
            byte_alphabet::unspell(spelling, bytes);
            borders_.add_token(bytes);
            continue;
        }
        borders_.add_token(spelling);
        for (std::size_t at = space_mark.size();
             (at = spelling.find(space_mark, at)) != std::string_view::npos; at++)
            if (spelling.substr(at - space_mark.size(), space_mark.size()) != space_mark)
                cuts_before_marks_ = false;
        const char *p = spelling.data(), *end = p + spelling.size();
        while (p < end) {
            Char c = decode_utf8(p, end);
            if (c.valid && c.size == spelling.size()) name_symbol(c.code, vocabulary_.find(spelling));
            p += c.size;
        }
    }
    if (options_.byte_level)
        for (int b = 0; b < 256; b++)
            byte_symbol_[b] = vocabulary_.find(byte_alphabet::spell(static_cast<std::uint8_t>(b)));
    // Any other mark at offset 1 or 2 stands behind a character of one or two bytes.
    for (TokenId id = 0; id < vocabulary_.size() && cuts_before_marks_; id++) {
        const std::size_t at = vocabulary_.spelling(id).find(space_mark);
        if (at == 1 || at == 2) cuts_before_marks_ = false;
    }
    has_affixes_ = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
    // Unknown characters to be fused may stand on both sides of a border; with all bytes there are none.
    const bool all_bytes =
        (options_.byte_level || options_.byte_fallback) &&
        std::all_of(byte_symbol_.begin(), byte_symbol_.end(), [](TokenId id) { return id >= 0; });
    may_cut_ = !has_affixes_ && (!options_.fuse_unknown || all_bytes);
}

void MergeReader::add(std::string_view left, std::string_view right) {
    waiting_[waiting_count_++] = left;
    waiting_[waiting_count_++] = right;
    if (waiting_count_ == std::size(waiting_)) resolve();
}

MergeTable MergeReader::take() {
    resolve();
    return std::move(table_);
}

void MergeReader::resolve() {
    TokenId ids[std::size(waiting_)];
    vocabulary_.find({waiting_, waiting_count_}, ids);
    for (std::size_t i = 0; i < waiting_count_; i += 2) add(waiting_[i], waiting_[i + 1], ids[i], ids[i + 1]);
    waiting_count_ = 0;
}

void MergeReader::add(std::string_view left, std::string_view right, TokenId left_id, TokenId right_id) {
    if (left_id < 0 || right_id < 0) fail_(next_, "two tokens of the vocabulary");
    if (!continuing_.empty() && right.starts_with(continuing_)) right.remove_prefix(continuing_.size());
    joined_.assign(left).append(right);
    // Most lists are in the order of the tokens that they make, so that the next id is tried before a look-up
    // (not where a spelling may be repeated: there find() says which).
    const TokenId guess = last_ + 1;
    const bool is_next = vocabulary_.valid(guess) && vocabulary_.type(guess) == TokenType::normal &&
                         vocabulary_.spelling(guess) == joined_;
    last_ = is_next ? guess : vocabulary_.find(joined_);
    if (last_ < 0) fail_(next_, "a merge whose joined spelling is a token");
    table_.add(left_id, right_id, next_++, last_);
}

std::unique_ptr<ModelScratch> BpeModel::scratch() const {
    return std::make_unique<Scratch>();
}

void BpeModel::encode(std::string_view word, IdSink& out, ModelScratch& scratch) const {
    if (word.empty()) return;
    encode_word(word.data(), word.size(), word.data() + word.size(), out, static_cast<Scratch&>(scratch));
}

void BpeModel::encode_words(std::string_view text, Split split, IdSink& out, ModelScratch& scratch) const {
    splitting::with_splitter(split,
                             [&]<class S>() { this->run<S>(text, out, static_cast<Scratch&>(scratch)); });
}

template <class Splitter>
void BpeModel::run(std::string_view text, IdSink& out, Scratch& scratch) const {
    const ClassTable& table = ClassTable::get();
    const char *p = text.data(), *end = p + text.size();
    // In batches: while words are still being found, the buckets of those before them are on their way.
    struct Found {
        const char* begin;
        std::size_t size;
    } words[64];
    while (p < end) {
        std::size_t count = 0;
        for (; count < std::size(words) && p < end; count++) {
            const char* q = Splitter::next(p, end, table);
            const std::size_t size = static_cast<std::size_t>(q - p);
            words[count] = {p, size};
            if (size <= scratch.small.max_bytes) scratch.small.prefetch(scratch.small.key(p, size, end).hash);
            p = q;
        }
        for (std::size_t i = 0; i < count; i++) {
            const auto [word, size] = words[i];
            if (size <= scratch.small.max_bytes) {
                const auto key = scratch.small.key(word, size, end);
                if (const auto* entry = scratch.small.find(key)) {
                    if (entry->count <= std::size(entry->ids)) [[likely]]
                        out.append(entry->ids, entry->count);
                    else
                        out.append(scratch.small.ids(*entry));
                    continue;
                }
            }
            encode_word(word, size, end, out, scratch);
        }
    }
}

void BpeModel::encode_word(const char* p, std::size_t size, const char* limit, IdSink& out,
                           Scratch& scratch) const {
    std::vector<TokenId>& ids = scratch.ids;
    if (size > scratch.large.max_bytes) {
        each_piece(p, size, [&](const char* piece, std::size_t bytes) {
            ids.clear();
            encode_piece(piece, bytes, limit, ids, scratch);
            out.append(ids);
        });
        if (ids.capacity() > (1u << 20)) std::vector<TokenId>().swap(ids);
        return;
    }
    auto encode = [&](auto& cache) {
        const auto key = cache.key(p, size, limit);
        if (const auto* entry = cache.find(key)) return out.append(cache.ids(*entry));
        ids.clear();
        each_piece(p, size, [&](const char* piece, std::size_t bytes) {
            if (bytes == size)
                merge_piece({piece, bytes}, ids, scratch);
            else
                encode_piece(piece, bytes, limit, ids, scratch);
        });
        cache.put(key, ids);
        out.append(ids);
    };
    if (size <= scratch.small.max_bytes)
        encode(scratch.small);
    else
        encode(scratch.large);
}

/// f(piece, size) for the pieces of a word that no token lies across.
template <class F>
void BpeModel::each_piece(const char* p, std::size_t size, F&& f) const {
    std::size_t begin = 0;
    for (std::size_t i = 1; i < size && may_cut_; i++) {
        if (!options_.byte_level && is_tail(p[i])) continue;
        if (!borders_.safe({p, size}, i)) continue;
        f(p + begin, i - begin);
        begin = i;
    }
    f(p + begin, size - begin);
}

void BpeModel::encode_piece(const char* p, std::size_t size, const char* limit, std::vector<TokenId>& ids,
                            Scratch& scratch) const {
    if (size > scratch.small.max_bytes) return merge_piece({p, size}, ids, scratch);
    const auto key = scratch.small.key(p, size, limit);
    if (const auto* entry = scratch.small.find(key)) {
        const auto known = scratch.small.ids(*entry);
        ids.insert(ids.end(), known.begin(), known.end());
        return;
    }
    const std::size_t before = ids.size();
    merge_piece({p, size}, ids, scratch);
    scratch.small.put(key, std::span(ids).subspan(before));
}

void BpeModel::merge_piece(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const {
    if (options_.ignore_merges) {
        TokenId whole = -1;
        if (options_.byte_level) {
            scratch.text.clear();
            if (piece.size() <= 256) {
                for (char c : piece) scratch.text += byte_alphabet::spell(static_cast<std::uint8_t>(c));
                whole = vocabulary_.find(scratch.text);
            }
        } else {
            whole = vocabulary_.find(piece);
        }
        if (whole >= 0) {
            out.push_back(whole);
            return;
        }
    }
    if (!options_.byte_level) return merge_characters(piece, out, scratch);
    std::vector<TokenId>& symbols = scratch.merger.symbols();
    symbols.clear();
    for (std::size_t i = 0; i < piece.size(); i++) {
        const std::uint8_t byte = static_cast<std::uint8_t>(piece[i]);
        TokenId symbol = byte_symbol_[byte];
        if (has_affixes_) symbol = affixed(byte_alphabet::spell(byte), i == 0, i + 1 == piece.size());
        if (symbol < 0) {
            finish(out, scratch);
            put_unknown(piece.substr(i, 1), out);
        } else {
            symbols.push_back(symbol);
        }
    }
    finish(out, scratch);
}

/// The token of one character (or byte, as it is spelled) at its place in a word.
TokenId BpeModel::affixed(std::string_view character, bool first, bool last) const {
    std::string spelling = first ? std::string() : options_.continuing_prefix;
    spelling += character;
    if (last) spelling += options_.end_suffix;
    return vocabulary_.find(spelling);
}

void BpeModel::finish(std::vector<TokenId>& out, Scratch& scratch) const {
    std::vector<TokenId>& symbols = scratch.merger.symbols();
    if (symbols.empty()) return;
    scratch.merger.apply(merges_);
    for (TokenId symbol : symbols) {
        if (symbol < vocabulary_.size()) {
            out.push_back(symbol);
            continue;
        }
        std::string character;
        append_utf8(character, extra_[static_cast<std::size_t>(symbol - vocabulary_.size())]);
        put_unknown(character, out);
    }
    symbols.clear();
    scratch.merger.trim();
}

TokenId BpeModel::symbol_of(char32_t code) const {
    const std::uint32_t symbol = character_symbol_.find(0, code);
    return symbol == character_symbol_.none ? -1 : static_cast<TokenId>(symbol);
}

void BpeModel::merge_characters(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const {
    std::vector<TokenId>& symbols = scratch.merger.symbols();
    symbols.clear();
    const char *begin = piece.data(), *p = begin, *end = p + piece.size();
    while (p < end) {
        Char c = decode_utf8(p, end);
        TokenId symbol = -1;
        if (!has_affixes_) {
            if (c.valid) symbol = symbol_of(c.code);
        } else {
            symbol = affixed({p, c.size}, p == begin, p + c.size == end);
        }
        if (symbol < 0) {
            finish(out, scratch);
            put_unknown({p, c.size}, out);
        } else {
            symbols.push_back(symbol);
        }
        p += c.size;
    }
    finish(out, scratch);
}

void BpeModel::put_unknown(std::string_view character, std::vector<TokenId>& out) const {
    if (options_.byte_fallback) {
        bool whole = true;
        for (char c : character) whole = whole && byte_symbol_[static_cast<std::uint8_t>(c)] >= 0;
        if (whole) {
            for (char c : character) out.push_back(byte_symbol_[static_cast<std::uint8_t>(c)]);
            return;
        }
    }
    if (options_.unknown >= 0) {
        if (!options_.fuse_unknown || out.empty() || out.back() != options_.unknown)
            out.push_back(options_.unknown);
        return;
    }
    std::string hex;
    for (char c : character) hex += spelling_of_byte(static_cast<std::uint8_t>(c));
    throw TextError({.found_by = "tokenizer",
                     .expected = "characters of the vocabulary",
                     .got = hex,
                     .hint = "it has no token for them and no unknown token"});
}

}  // namespace linnet
