#include "text/split/pre_tokenizer.h"

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/regex.h"

namespace linnet {
namespace {

using Words = PreTokenizer::Words;
using Step = PreTokenizerStep;

/// Collects what a step makes of one piece: separators and what lies between them, in order.
class Cutter {
  public:
    Cutter(SplitBehavior behavior, bool invert, Words& out)
        : behavior_(behavior), invert_(invert), out_(out) {}

    void begin(std::size_t at) {
        at_ = at;
        first_ = out_.size();
        last_separator_ = false;
        pending_ = false;
    }
    void separator(std::size_t begin, std::size_t end) {
        put(at_, begin, invert_);
        put(begin, end, !invert_);
        at_ = end;
    }
    void finish(std::size_t end) {
        put(at_, end, invert_);
        if (pending_) out_.emplace_back(pending_begin_, end);
        pending_ = false;
    }

  private:
    void put(std::size_t begin, std::size_t end, bool separator) {
        if (begin == end) return;
        const bool mine = out_.size() > first_;  // there is a word of this piece to extend
        switch (behavior_) {
            case SplitBehavior::removed:
                if (!separator) out_.emplace_back(begin, end);
                return;
            case SplitBehavior::isolated:
                out_.emplace_back(begin, end);
                return;
            case SplitBehavior::contiguous:
                if (mine && separator == last_separator_)
                    out_.back().second = end;
                else
                    out_.emplace_back(begin, end);
                break;
            case SplitBehavior::merged_with_previous:
                if (mine && separator && !last_separator_)
                    out_.back().second = end;
                else
                    out_.emplace_back(begin, end);
                break;
            case SplitBehavior::merged_with_next:
                if (separator) {
                    if (pending_) out_.emplace_back(pending_begin_, begin);
                    pending_ = true;
                    pending_begin_ = begin;
                } else {
                    out_.emplace_back(pending_ ? pending_begin_ : begin, end);
                    pending_ = false;
                }
                break;
        }
        last_separator_ = separator;
    }

    SplitBehavior behavior_;
    bool invert_;
    Words& out_;
    std::size_t at_ = 0, first_ = 0, pending_begin_ = 0;
    bool last_separator_ = false, pending_ = false;
};

/// Every character for which `is` holds is a separator of its own.
template <class Is>
void cut_characters(const std::string& text, const Words& words, SplitBehavior behavior, Words& out,
                    Is&& is) {
    Cutter cutter(behavior, false, out);
    for (auto [b, e] : words) {
        cutter.begin(b);
        for (std::size_t i = b; i < e;) {
            Char c = decode_utf8(text.data() + i, text.data() + e);
            if (c.valid && is(c.code)) cutter.separator(i, i + c.size);
            i += c.size;
        }
        cutter.finish(e);
    }
}

void cut_matches(const Step& step, const std::string& text, const Words& words, Words& out) {
    Cutter cutter(step.behavior, step.invert, out);
    // Bytes that are no UTF-8 are SUB characters to an expression; the ids come from the bytes themselves.
    std::string clean;
    std::string_view subject = text;
    if (step.regex && valid_utf8_prefix(text) < text.size()) {
        clean = text;
        for (std::size_t i = valid_utf8_prefix(text); i < clean.size();) {
            Char c = decode_utf8(clean.data() + i, clean.data() + clean.size());
            if (!c.valid) clean[i] = '\x1A';
            i += c.size;
        }
        subject = clean;
    }
    for (auto [b, e] : words) {
        cutter.begin(b);
        const std::string_view piece = subject.substr(b, e - b);
        if (step.regex) {
            Regex::Matches matches(*step.regex, piece);
            for (std::size_t from, to; matches.next(from, to);) cutter.separator(b + from, b + to);
        } else {
            for (std::size_t at = 0; (at = piece.find(step.literal, at)) != std::string_view::npos;
                 at += step.literal.size())
                cutter.separator(b + at, b + at + step.literal.size());
        }
        cutter.finish(e);
    }
}

void cut_words(Split split, const std::string& text, const Words& words, Words& out) {
    const ClassTable& table = ClassTable::get();
    splitting::with_splitter(split, [&]<class S>() {
        for (auto [b, e] : words)
            for (const char *p = text.data() + b, *end = text.data() + e; p < end;) {
                const char* q = S::next(p, end, table);
                out.emplace_back(p - text.data(), q - text.data());
                p = q;
            }
    });
}

/// \w+|[^\w\s]+
void cut_word_runs(const std::string& text, const Words& words, Words& out) {
    for (auto [b, e] : words) {
        int kind_before = 0;
        for (std::size_t i = b; i < e;) {
            Char c = decode_utf8(text.data() + i, text.data() + e);
            const bool space = c.valid && ClassTable::get().of(c.code) & char_class::space;
            const int kind = space ? 0 : c.valid && is_word_char(c.code) ? 1 : 2;
            if (kind && kind == kind_before)
                out.back().second = i + c.size;
            else if (kind)
                out.emplace_back(i, i + c.size);
            kind_before = kind;
            i += c.size;
        }
    }
}

/// Puts `lead` before every piece that does not begin with it, and `mark` for every space where it is given.
void rewrite(std::string& text, Words& words, std::string_view lead, std::string_view mark, bool all,
             bool first_piece) {
    std::string out;
    out.reserve(text.size() + text.size() / 4 + lead.size());
    for (std::size_t i = 0; i < words.size(); i++) {
        auto& [b, e] = words[i];
        const std::size_t begin = out.size();
        std::string_view piece = std::string_view(text).substr(b, e - b);
        const bool has = piece.starts_with(lead) || (!mark.empty() && piece.starts_with(' '));
        if (!has && (i == 0 ? first_piece : all)) out += lead;
        if (mark.empty())
            out += piece;
        else
            for (char c : piece)
                if (c == ' ')
                    out += mark;
                else
                    out += c;
        b = begin;
        e = out.size();
    }
    text.swap(out);
}

/// The words alone, each as `respell(word, out)` appends it.
void respell_all(std::string& text, Words& words, void (*respell)(std::string_view, std::string&)) {
    std::string out;
    for (auto& [b, e] : words) {
        const std::size_t begin = out.size();
        respell(std::string_view(text).substr(b, e - b), out);
        b = begin, e = out.size();
    }
    text.swap(out);
}

void cut_at_marks(const Step& step, const std::string& text, const Words& words, Words& out) {
    Cutter cutter(SplitBehavior::merged_with_next, false, out);
    for (auto [b, e] : words) {
        cutter.begin(b);
        const std::string_view piece = std::string_view(text).substr(0, e);
        for (std::size_t at = b; (at = piece.find(step.literal, at)) != std::string_view::npos;
             at += step.literal.size())
            cutter.separator(at, at + step.literal.size());
        cutter.finish(e);
    }
}

}  // namespace

void PreTokenizer::apply(std::string& text, bool first, bool opens, Words& words) const {
    words.clear();
    if (!text.empty()) words.emplace_back(0, text.size());
    Words next;
    for (std::size_t i = 0; i < steps.size(); i++) {
        const Step& step = steps[i];
        if (i == spelled_from) respell_all(text, words, byte_alphabet::spell);
        next.clear();
        switch (step.kind) {
            case Step::Kind::words:
                cut_words(step.words, text, words, next);
                break;
            case Step::Kind::pattern:
                cut_matches(step, text, words, next);
                break;
            case Step::Kind::digits:
                cut_characters(text, words, step.each ? SplitBehavior::isolated : SplitBehavior::contiguous,
                               next, [](char32_t c) { return ClassTable::get().of(c) & char_class::number; });
                break;
            case Step::Kind::punctuation:
                cut_characters(text, words, step.behavior, next,
                               [](char32_t c) { return is_bert_punctuation(c); });
                break;
            case Step::Kind::whitespace:
                cut_word_runs(text, words, next);
                break;
            case Step::Kind::whitespace_split:
            case Step::Kind::bert:
                cut_characters(text, words, SplitBehavior::removed, next,
                               [](char32_t c) { return ClassTable::get().of(c) & char_class::space; });
                if (step.kind == Step::Kind::bert) {
                    words.swap(next);
                    next.clear();
                    cut_characters(text, words, SplitBehavior::isolated, next,
                                   [](char32_t c) { return is_bert_punctuation(c); });
                }
                break;
            case Step::Kind::prefix_space:
                rewrite(text, words, " ", {}, true, opens);
                next = words;
                break;
            case Step::Kind::metaspace: {
                const bool always = step.prepend == Step::Prepend::always;
                rewrite(text, words, step.literal, step.literal, always,
                        opens && (always || (step.prepend == Step::Prepend::first && first)));
                if (step.each)
                    cut_at_marks(step, text, words, next);
                else
                    next = words;
                break;
            }
        }
        words.swap(next);
    }
    if (has_spelled()) respell_all(text, words, byte_alphabet::unspell);
}

}  // namespace linnet
