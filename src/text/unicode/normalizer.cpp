#include "text/unicode/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/naming.h"
#include "text/unicode/charsmap.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

using Step = NormalizerStep;

/// False as soon as the text would be longer than `most` bytes.
bool replace_all(std::string& text, const Step& step, std::size_t most) {
    std::string out;
    std::size_t at = 0;
    auto put = [&](std::size_t begin, std::size_t end) {
        out.append(text, at, begin - at);
        out += step.content;
        at = end;
        return out.size() <= most;
    };
    if (step.regex) {
        Regex::Matches matches(*step.regex, text);
        for (std::size_t begin, end; matches.next(begin, end);)
            if (!put(begin, end)) return false;
    } else if (!step.pattern.empty()) {
        for (std::size_t hit; (hit = text.find(step.pattern, at)) != std::string::npos;)
            if (!put(hit, hit + step.pattern.size())) return false;
    }
    out.append(text, at);
    text.swap(out);
    return text.size() <= most;
}

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void drop_invalid(std::string& text) {
    std::string out;
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        Char c = decode_utf8(p, end);
        if (c.valid) out.append(p, c.size);
        p += c.size;
    }
    text.swap(out);
}

/// f(code, out) says what becomes of every character.
template <class F>
void transform(std::string& text, F&& f) {
    std::string out;
    out.reserve(text.size());
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        Char c = decode_utf8(p, end);
        f(c.code, out);
        p += c.size;
    }
    text.swap(out);
}

/// NFC, NFD, NFKC, NFKD. utf8proc orders marks by exchanging neighbours, which is quadratic in a run of them;
/// a stable sort of each run is not.
void normalize(std::string& text, bool compatible, bool compose) {
    if (is_ascii(text)) return;
    std::vector<utf8proc_int32_t> codes;
    codes.reserve(text.size());
    const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    const char *p = text.data(), *end = p + text.size();
    auto ccc = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
    while (p < end) {
        Char c = decode_utf8(p, end);
        p += c.size;
        if (c.code < 0x80) {
            codes.push_back(static_cast<utf8proc_int32_t>(c.code));
            continue;
        }
        utf8proc_int32_t parts[32];
        int boundary = 0;
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts, 32,
                                    static_cast<utf8proc_option_t>(options), &boundary);
        if (n < 0 || n > 32)
            codes.push_back(static_cast<utf8proc_int32_t>(c.code));
        else
            codes.insert(codes.end(), parts, parts + n);
    }
    for (std::size_t i = 0; i < codes.size();) {
        if (codes[i] < 0x300 || !ccc(codes[i])) {
            i++;
            continue;
        }
        std::size_t j = i + 1;
        while (j < codes.size() && ccc(codes[j])) j++;
        if (j - i > 1)
            std::stable_sort(codes.begin() + static_cast<std::ptrdiff_t>(i),
                             codes.begin() + static_cast<std::ptrdiff_t>(j),
                             [&](auto a, auto b) { return ccc(a) < ccc(b); });
        i = j;
    }
    if (compose) {
        const utf8proc_ssize_t n =
            utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (n >= 0) codes.resize(static_cast<std::size_t>(n));
    }
    text.clear();
    for (utf8proc_int32_t code : codes) append_utf8(text, static_cast<char32_t>(code));
}

void lowercase(std::string& text) {
    transform(text, [](char32_t c, std::string& out) {
        if (c < 0x80) {
            out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
        } else if (c == 0x130) {  // the one letter whose full mapping is longer than its simple one
            out += "i\xCC\x87";
        } else {
            append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        }
    });
}

void strip_marks(std::string& text, bool only_nonspacing) {
    if (is_ascii(text)) return;
    transform(text, [&](char32_t c, std::string& out) {
        const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
        const bool gone =
            category == UTF8PROC_CATEGORY_MN ||
            (!only_nonspacing && (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME));
        if (!gone) append_utf8(out, c);
    });
}

bool is_space(char32_t c) {
    return ClassTable::get().of(c) & char_class::space;
}

void bert(std::string& text, const Step& step) {
    if (step.clean_text || step.cjk)
        transform(text, [&](char32_t c, std::string& out) {
            if (step.clean_text) {
                if (c == 0 || c == 0xFFFD || (!is_space(c) && is_control_char(c))) return;
                if (is_space(c)) c = ' ';
            }
            const bool apart = step.cjk && is_cjk(c);
            if (apart) out += ' ';
            append_utf8(out, c);
            if (apart) out += ' ';
        });
    if (step.accents) {
        normalize(text, false, false);
        strip_marks(text, true);
    }
    if (step.lowercase) lowercase(text);
}

void strip(std::string& text, bool left, bool right) {
    const char *begin = text.data(), *end = begin + text.size(), *p = begin;
    if (left)
        while (p < end) {
            Char c = decode_utf8(p, end);
            if (!is_space(c.code)) break;
            p += c.size;
        }
    if (right)
        while (end > p) {
            const char* q = end - 1;
            while (q > p && is_tail(*q)) q--;
            if (!is_space(decode_utf8(q, end).code)) break;
            end = q;
        }
    text = std::string(p, static_cast<std::size_t>(end - p));
}

/// What SentencePiece's NMT rules do to control characters and odd spaces.
void nmt(std::string& text) {
    transform(text, [](char32_t c, std::string& out) {
        if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
            return;
        const bool is_space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                              (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                              c == 0xFEFF || c == 0xFFFD;
        append_utf8(out, is_space ? U' ' : c);
    });
}

void collapse_spaces(std::string& text, bool at_begin, bool at_end) {
    std::string out;
    for (char c : text)
        if (c != ' ' || (out.empty() ? !at_begin : out.back() != ' ')) out += c;
    if (at_end && !out.empty() && out.back() == ' ') out.pop_back();
    text.swap(out);
}

}  // namespace

bool Normalizer::needs_utf8() const {
    for (const Step& step : steps)
        if (step.regex || (step.kind != Step::Kind::replace && step.kind != Step::Kind::prepend &&
                           step.kind != Step::Kind::collapse_spaces && step.kind != Step::Kind::precompiled))
            return true;
    return false;
}

void Normalizer::apply(std::string& text, bool opens, bool closes) const {
    if (needs_utf8())
        if (std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
            if (steps[0].kind != Step::Kind::bert || !steps[0].clean_text)
                throw TextError({.byte = valid,
                                 .expected = "UTF-8",
                                 .got = "an invalid byte",
                                 .hint = "this vocabulary's normalizer is defined on characters"});
            drop_invalid(text);  // BERT's clean-up ignores them
        }
    const std::size_t most = longest(text.size());
    for (const Step& step : steps) {
        bool fits = true;
        switch (step.kind) {
            case Step::Kind::nfc:
                normalize(text, false, true);
                break;
            case Step::Kind::nfd:
                normalize(text, false, false);
                break;
            case Step::Kind::nfkc:
                normalize(text, true, true);
                break;
            case Step::Kind::nfkd:
                normalize(text, true, false);
                break;
            case Step::Kind::lowercase:
                lowercase(text);
                break;
            case Step::Kind::strip:
                strip(text, step.left, step.right);
                break;
            case Step::Kind::strip_accents:
                strip_marks(text, false);
                break;
            case Step::Kind::replace:
                fits = replace_all(text, step, most);
                break;
            case Step::Kind::prepend:
                fits = step.content.size() <= most;
                if (fits && opens && !(text.empty() && closes)) text.insert(0, step.content);
                break;
            case Step::Kind::bert:
                bert(text, step);
                break;
            case Step::Kind::precompiled:
                fits = step.charsmap->apply(text, most);
                break;
            case Step::Kind::nmt:
                nmt(text);
                break;
            case Step::Kind::collapse_spaces:
                collapse_spaces(text, opens, closes);
                break;
        }
        if (!fits || text.size() > most)
            throw TextError({.found_by = "normalizer",
                             .expected = "at most " + std::to_string(most) + " bytes from this text",
                             .got = "more",
                             .hint = "the vocabulary's replacements make it grow"});
    }
}

}  // namespace linnet
