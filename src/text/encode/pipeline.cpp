#include "text/encode/pipeline.h"

#include <algorithm>

#include "base/arena.h"
#include "base/error.h"
#include "base/ordered.h"
#include "text/naming.h"

namespace linnet {
namespace {

/// A text is worked on in blocks of about this size: large enough that a block's overhead vanishes, small
/// enough that the normalized copy stays in the second-level cache.
constexpr std::size_t block_bytes = 256u << 10;

/// Spellings of control tokens at which every runtime stops, whatever the metadata says.
constexpr std::string_view end_spellings[] = {
    "<|endoftext|>",      "<|im_end|>",      "<|end|>", "<|eot_id|>", "<|eom_id|>",
    "<end_of_turn>",      "<|end_of_text|>", "<EOT>",   "[EOT]",      "<｜end▁of▁sentence｜>",
    "<end_of_utterance>", "<|return|>",
};

/// WordPiece's cleanup of one decoded token (Hugging Face's decoder applies it to one token at a time).
void clean_up(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> rules[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    std::string out;
    for (auto [from, to] : rules) {
        out.clear();
        std::size_t at = 0;
        for (std::size_t hit; (hit = text.find(from, at)) != std::string::npos; at = hit + from.size())
            out.append(text, at, hit - at).append(to);
        out.append(text, at);
        text.swap(out);
    }
}

std::string with_spaces(std::string_view spelling, std::string_view mark) {
    std::string out;
    for (std::size_t i = 0; i < spelling.size();) {
        if (spelling.substr(i, mark.size()) == mark) {
            out += ' ';
            i += mark.size();
        } else {
            out += spelling[i++];
        }
    }
    return out;
}

std::string decoded_piece(const Decoder& decoder, const Vocabulary& vocabulary, TokenId id) {
    const std::string_view spelling = vocabulary.spelling(id);
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::control || type == TokenType::unknown) return {};
    if (type == TokenType::byte)
        if (int byte = byte_of_spelling(spelling); byte >= 0) return std::string(1, static_cast<char>(byte));
    if (type == TokenType::user_defined) return std::string(spelling);
    std::string out;
    switch (decoder.kind) {
        case Decoder::Kind::bytes:
            byte_alphabet::unspell(spelling, out);
            break;
        case Decoder::Kind::marks:
            if (int byte = byte_of_spelling(spelling); byte >= 0)
                return std::string(1, static_cast<char>(byte));
            out =
                with_spaces(spelling, decoder.marker.empty() ? space_mark : std::string_view(decoder.marker));
            break;
        case Decoder::Kind::pieces:
            if (decoder.word_mark)
                out = with_spaces(spelling, space_mark);
            else if (spelling.starts_with(decoder.marker) && !decoder.marker.empty())
                out = spelling.substr(decoder.marker.size());
            else
                out = " " + std::string(spelling);
            if (decoder.cleanup) clean_up(out);
            break;
        case Decoder::Kind::suffix:
            out = spelling;
            if (!decoder.marker.empty() && spelling.ends_with(decoder.marker))
                out.replace(out.size() - decoder.marker.size(), decoder.marker.size(), " ");
            break;
        case Decoder::Kind::plain:
            out = spelling;
            break;
    }
    return out;
}

}  // namespace

struct Pipeline::Scratch {
    std::unique_ptr<ModelScratch> model;
    std::string text;
    PreTokenizer::Words words;
};

/// A scratch from the pool, back in it when the work is done: as many exist as threads were ever inside at
/// once.
class Pipeline::Lease {
  public:
    explicit Lease(const Pipeline& owner) : owner_(owner) {
        {
            std::lock_guard lock(owner_.pool_mutex_);
            if (!owner_.pool_.empty()) {
                scratch_ = std::move(owner_.pool_.back());
                owner_.pool_.pop_back();
            } else {
                // Room for it to come back: a destructor cannot say that memory ran out.
                owner_.pool_.reserve(owner_.made_ + 1);
                owner_.made_++;
            }
        }
        if (!scratch_) {
            scratch_ = std::make_unique<Scratch>();
            scratch_->model = owner_.parts_.model->scratch();
        }
    }
    ~Lease() {
        std::lock_guard lock(owner_.pool_mutex_);
        owner_.pool_.push_back(std::move(scratch_));
    }
    Scratch& operator*() { return *scratch_; }

  private:
    const Pipeline& owner_;
    std::unique_ptr<Scratch> scratch_;
};

void settle_mask(Parts& parts) {
    for (AddedToken& token : parts.added) {
        if (!token.special || (token.content != "[MASK]" && token.content != "<mask>")) continue;
        token.lstrip = true;
        parts.special.mask = token.id;
    }
}

Pipeline::Pipeline(Parts parts) : parts_(std::move(parts)) {
    std::vector<AddedToken> added = parts_.added;
    const bool normalizes = !parts_.normalizer.empty();
    const bool mixed = std::ranges::any_of(added, &AddedToken::normalized) &&
                       !std::ranges::all_of(added, &AddedToken::normalized);
    for (AddedToken& token : added)
        // "Normalized" tokens are compared after normalization, and so are they themselves.
        if (token.normalized && normalizes)
            parts_.normalizer.apply(token.content, false);
        else
            token.normalized &= mixed;  // where there is but one kind, one pass will do
    added_ = AddedTokens(added);
    late_added_ = normalizes && added_.any(true, true);
    second_pass_ = !normalizes && mixed;
    for (const AddedToken& token : added) longest_added_ = std::max(longest_added_, token.content.size());
    const auto& steps = parts_.pre_tokenizer.steps;
    if (!normalizes && !parts_.pre_tokenizer.has_spelled()) {
        if (steps.empty()) direct_ = Split::whole;
        if (steps.size() == 1 && steps[0].kind == PreTokenizerStep::Kind::words) direct_ = steps[0].words;
    }
    for (TokenId id = 0; id < size(); id++)
        if (parts_.vocabulary->type(id) == TokenType::control)
            for (std::string_view name : end_spellings)
                if (parts_.vocabulary->spelling(id) == name) parts_.ends.push_back(id);
}

Pipeline::~Pipeline() = default;

void Pipeline::encode(std::string_view text, std::vector<TokenId>& out, const EncodeOptions& options) const {
    if (text.size() > block_bytes && out.empty()) {
        // More than most texts need: what is not used is never touched. Beyond 2^28 it grows as it comes.
        const std::size_t likely = std::min<std::size_t>(text.size() / 4 * 3, std::size_t{1} << 28);
        out.reserve(likely);
        prefer_large_pages(out.data(), likely * sizeof(TokenId));
    }
    encode_blocks(text, options,
                  [&](std::span<const TokenId> ids) { out.insert(out.end(), ids.begin(), ids.end()); });
}

void Pipeline::encode_plain(std::string_view text, Place place, const EncodeOptions& options, IdSink& out,
                            Scratch& scratch) const {
    if (direct_) return parts_.model->encode_words(text, *direct_, out, *scratch.model);
    std::string normalized(text);
    parts_.normalizer.apply(normalized, place.opens, place.closes);
    std::size_t at = 0;
    while (at < normalized.size()) {
        // (Normalizing moved what options.plain names.)
        AddedTokens::Match match;
        if (late_added_) match = added_.next(normalized, at, options.parse_special && !options.plain, true);
        const std::size_t end = match.id < 0 ? normalized.size() : match.begin;
        if (end > at) {
            scratch.text.assign(normalized, at, end - at);
            parts_.pre_tokenizer.apply(scratch.text, place.first && at == 0, place.opens, scratch.words);
            for (auto [b, e] : scratch.words)
                parts_.model->encode(std::string_view(scratch.text).substr(b, e - b), out, *scratch.model);
        }
        if (match.id < 0) break;
        out.push(match.id);
        at = match.end;
    }
}

/// Whether a text may be cut for size: at a space behind a letter, which no splitter and no step here looks
/// across.
bool Pipeline::may_cut() const {
    if (direct_ && *direct_ != Split::whole) return true;
    if (parts_.kind == "char" || parts_.kind == "byte") return true;
    if (late_added_) return false;
    using Normal = NormalizerStep::Kind;
    for (const NormalizerStep& step : parts_.normalizer.steps) {
        if (step.kind == Normal::strip || step.kind == Normal::collapse_spaces ||
            step.kind == Normal::precompiled)
            return false;
        if (step.kind == Normal::replace &&
            (step.regex || (step.pattern != " " && step.pattern.find(' ') != std::string::npos)))
            return false;
    }
    using Pre = PreTokenizerStep::Kind;
    bool marks = false, removed = false, at_spaces = false;
    for (const NormalizerStep& step : parts_.normalizer.steps)
        marks |= step.kind == Normal::replace && step.pattern == " ";
    for (std::size_t i = 0; i < parts_.pre_tokenizer.steps.size(); i++) {
        const PreTokenizerStep& step = parts_.pre_tokenizer.steps[i];
        // From here on a space is a letter like others: words are cut further, not the text.
        if (i == parts_.pre_tokenizer.spelled_from) return at_spaces;
        // What begins a text gets a mark; a block's first word, whose space is gone by then, would get none.
        if (removed && (step.kind == Pre::metaspace || step.kind == Pre::prefix_space)) return false;
        removed |= step.kind == Pre::whitespace || step.kind == Pre::whitespace_split ||
                   step.kind == Pre::bert || step.behavior == SplitBehavior::removed;
        marks |= step.kind == Pre::metaspace;
        if (step.kind == Pre::pattern) {
            if (step.regex || step.literal != " " || step.behavior == SplitBehavior::merged_with_previous)
                return false;
            at_spaces = true;
        } else if (step.kind == Pre::words || step.kind == Pre::whitespace ||
                   step.kind == Pre::whitespace_split || step.kind == Pre::bert ||
                   (step.kind == Pre::metaspace && step.each)) {
            at_spaces = true;
        }
    }
    return at_spaces || (marks && parts_.model->cuts_before_marks());
}

std::size_t Pipeline::cut(std::string_view text, std::size_t from) const {
    if (!may_cut()) return text.size();
    std::size_t at = safe_cut(text, from, !direct_);
    // Not within an added token; behind one, no word goes on.
    const std::size_t near = at - std::min(at, longest_added_);
    for (std::size_t before = SIZE_MAX; before != at;) {
        before = at;
        for (bool normalized : {false, true})
            for (AddedTokens::Match match = added_.next(text, near, false, normalized);
                 match.id >= 0 && match.begin < at; match = added_.next(text, match.end, false, normalized))
                at = std::max(at, match.end);
    }
    return at;
}

/// Cuts a text into blocks for the threads: at added tokens, and for size where no word is touched.
class Pipeline::Blocks {
  public:
    Blocks(const Pipeline& owner, std::string_view text, const EncodeOptions& options)
        : owner_(owner), text_(text), options_(options), cut_(owner.may_cut()) {}

    /// [begin, end) of the text: the added token `id`, or plain text where that is -1.
    struct Segment {
        std::size_t begin, end;
        TokenId id;
        Place place;
    };
    bool next(std::vector<Segment>& segments) {
        segments.clear();
        for (std::size_t bytes = 0; bytes < block_bytes && at_ < text_.size();) {
            if (at_ >= stretch_end_) find_stretch();
            std::size_t end = stretch_end_;
            if (cut_ && end - at_ > block_bytes - bytes + block_bytes / 4)
                end = std::min(end, safe_cut(text_, at_ + block_bytes - bytes, !owner_.direct_));
            const Place place{at_ == 0 && !options_.continues, opens_, !match_.joins};
            if (end > at_ || (place.opens && !place.closes)) segments.push_back({at_, end, -1, place});
            bytes += end - at_ + 1;
            opens_ = false;
            at_ = end;
            if (at_ == stretch_end_ && match_.id >= 0) {
                segments.push_back({match_.begin, match_.end, match_.id, {}});
                at_ = stretch_end_ = match_.end;
            }
        }
        return !segments.empty();
    }
    void encode(std::span<const Segment> segments, IdSink& out) const {
        Lease lease(owner_);
        for (const Segment& s : segments)
            if (s.id >= 0)
                out.push(s.id);
            else
                behind(s.begin, [&] {
                    owner_.encode_plain(text_.substr(s.begin, s.end - s.begin), s.place, options_, out,
                                        *lease);
                });
        out.flush();
    }

  private:
    /// The plain text at at_, up to the next added token.
    void find_stretch() {
        auto next = [&](std::size_t end, bool normalized) {
            return owner_.added_.next(text_.substr(0, end), at_, options_.parse_special, normalized,
                                      options_.plain);
        };
        opens_ = !match_.joins && (at_ > 0 || !options_.continues);
        if (at_ >= searched_) {
            first_pass_ = next(text_.size(), false);
            searched_ = first_pass_.id < 0 ? text_.size() : first_pass_.end;
        }
        match_ = first_pass_;
        if (owner_.second_pass_) {
            const std::size_t left = first_pass_.id < 0 ? text_.size() : first_pass_.begin;
            if (const AddedTokens::Match match = next(left, true); match.id >= 0) match_ = match;
        }
        stretch_end_ = match_.id < 0 ? text_.size() : match_.begin;
    }
    const Pipeline& owner_;
    std::string_view text_;
    const EncodeOptions& options_;
    const bool cut_;
    std::size_t at_ = 0, stretch_end_ = 0;  // [at, stretch_end) is plain text
    AddedTokens::Match match_;              // what follows it
    AddedTokens::Match first_pass_;         // the next of the first pass, which ends at searched_
    std::size_t searched_ = 0;
    bool opens_ = true;
};

void Pipeline::encode_blocks(std::string_view text, const EncodeOptions& options,
                             const BlockSink& sink) const {
    if (options.add_special && !parts_.prefix.empty()) sink(parts_.prefix);
    Blocks blocks(*this, text, options);
    if (text.size() <= block_bytes) {  // not worth several threads, nor ids of its own
        IdSink out(sink);
        for (std::vector<Blocks::Segment> segments; blocks.next(segments);) blocks.encode(segments, out);
    } else {
        struct Block {
            std::vector<Blocks::Segment> segments;
            std::vector<TokenId> ids;
        };
        auto encode = [&](Block& block) {
            block.ids.clear();
            block.ids.reserve(block_bytes / 2);
            const BlockSink keep = [&](std::span<const TokenId> ids) {
                block.ids.insert(block.ids.end(), ids.begin(), ids.end());
            };
            IdSink out(keep);
            blocks.encode(block.segments, out);
        };
        const auto threads = static_cast<int>(std::min<std::size_t>(
            text.size() / block_bytes + 1, static_cast<std::size_t>(std::max(options.threads, 1))));
        run_ordered<Block>(threads, {[&](Block& block) { return blocks.next(block.segments); }, encode,
                                     [&](Block& block) {
                                         if (!block.ids.empty()) sink(block.ids);
                                         return true;
                                     }});
    }
    if (options.add_special && !parts_.suffix.empty()) sink(parts_.suffix);
}

std::vector<std::string> Pipeline::words(std::string_view text) const {
    std::vector<std::string> out;
    std::string normalized(text);
    parts_.normalizer.apply(normalized, true);
    PreTokenizer::Words words;
    parts_.pre_tokenizer.apply(normalized, true, true, words);
    for (auto [b, e] : words) out.push_back(normalized.substr(b, e - b));
    return out;
}

void Pipeline::build_decoded() const {
    decoded_begin_.reserve(static_cast<std::size_t>(size()) + 1);
    for (TokenId id = 0; id < size(); id++) {
        decoded_begin_.push_back(static_cast<std::uint32_t>(decoded_.size()));
        decoded_ += decoded_piece(parts_.decoder, *parts_.vocabulary, id);
    }
    decoded_begin_.push_back(static_cast<std::uint32_t>(decoded_.size()));
}

void Pipeline::decode(TokenId id, bool first, std::string& out) const {
    if (!parts_.vocabulary->valid(id))
        fail_input("tokens", "decode", "ids from 0 to " + std::to_string(size() - 1), std::to_string(id));
    std::call_once(decoded_once_, [this] { build_decoded(); });
    const std::size_t i = static_cast<std::size_t>(id);
    std::string_view bytes =
        std::string_view(decoded_).substr(decoded_begin_[i], decoded_begin_[i + 1] - decoded_begin_[i]);
    if (first && parts_.decoder.strip_first && bytes.starts_with(' ')) bytes.remove_prefix(1);
    out += bytes;
}

std::string_view Pipeline::piece(TokenId id) const {
    return parts_.vocabulary->valid(id) ? parts_.vocabulary->spelling(id) : std::string_view();
}

bool Pipeline::is_control(TokenId id) const {
    return parts_.vocabulary->valid(id) && parts_.vocabulary->type(id) == TokenType::control;
}

bool Pipeline::add_bos() const {
    return !parts_.prefix.empty() && parts_.special.bos && parts_.prefix[0] == *parts_.special.bos;
}

bool Pipeline::is_end(TokenId id) const {
    return id == parts_.special.eos || id == parts_.special.eot || id == parts_.special.eom ||
           std::find(parts_.ends.begin(), parts_.ends.end(), id) != parts_.ends.end();
}

}  // namespace linnet
