#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode/regex.h"

#include <pcre2.h>
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/utf8.h"

namespace linnet {
namespace {

/// PCRE2's own \s takes U+180E and its \w leaves out marks, so they are spelled out.
constexpr std::string_view space_members =
    "\\t-\\r\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view word_members = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}";

/// What only PCRE2 understands, what would make matches go backwards or end within a character, and what asks
/// where a search began.
std::string_view refused_part(std::string_view rest) {
    for (std::string_view part : {"(*", "\\K", "\\G", "\\C"})
        if (rest.starts_with(part)) return part;
    return {};
}

struct Translation {
    std::string text;
    std::string_view refused;  // a part that is no such expression's
};

/// Rewrites an expression for PCRE2. Besides classes, these mean something else to Oniguruma: \h (a digit of
/// a hexadecimal number), \v (U+000B), (?m) (a dot is any character), and ^ and $, which match at every line
/// (PCRE2_MULTILINE).
class Translator {
  public:
    explicit Translator(std::string_view pattern) : pattern_(pattern) {}

    Translation run() {
        for (; at_ < pattern_.size(); at_++) {
            const std::string_view rest = pattern_.substr(at_);
            if (const std::string_view part = refused_part(rest); !inside_ && !part.empty())
                return {{}, part};
            if (inside_ && rest.starts_with("&&")) return {{}, "&&"};  // intersections: PCRE2 has none
            if (rest.size() > 1 && rest[0] == '\\')
                escaped(rest[1]);
            else if (inside_)
                member(rest);
            else if (rest[0] == '[')
                open();
            else if (rest.starts_with("(?"))
                group(rest);
            else
                out_ += rest[0];
        }
        return {out_, {}};
    }

  private:
    void open() {
        inside_ = true;
        out_ += '[';
        if (pattern_.substr(at_ + 1, 1) == "^") out_ += pattern_[++at_];
        // A bracket right after the opening is itself, to PCRE2 and to Oniguruma.
        if (pattern_.substr(at_ + 1, 1) == "]") {
            out_ += "\\]";
            at_++;
        }
    }
    void member(std::string_view rest) {
        if (rest[0] == '[') return posix(rest);
        inside_ = rest[0] != ']';
        out_ += rest[0];
    }
    /// A bracket within a class: that of [:alpha:] and its like, or itself. PCRE2's classes of these names
    /// are of fewer characters.
    void posix(std::string_view rest) {
        constexpr std::pair<std::string_view, std::string_view> classes[] = {
            {"[:alpha:]", "\\p{Alphabetic}"}, {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"},
            {"[:lower:]", "\\p{Lowercase}"},  {"[:upper:]", "\\p{Uppercase}"},
            {"[:space:]", space_members},     {"[:word:]", word_members}};
        const std::size_t end = rest.starts_with("[:") ? rest.find(":]") : std::string_view::npos;
        if (end == std::string_view::npos ||
            rest.substr(0, end).find_first_of("\\]") != std::string_view::npos) {
            out_ += "\\[";
            return;
        }
        std::string_view written = rest.substr(0, end + 2);
        at_ += written.size() - 1;
        for (const auto& [name, members] : classes)
            if (written == name) written = members;
        out_ += written;
    }
    /// (?m) and (?m: are PCRE2's (?s) and (?s:.
    void group(std::string_view rest) {
        const std::size_t end =
            std::min(rest.find_first_not_of("-abcdefghijklmnopqrstuvwxyz", 2), rest.size());
        const bool options = rest.substr(end, 1) == ":" || rest.substr(end, 1) == ")";
        if (!options) return void(out_ += rest[0]);
        for (char c : rest.substr(0, end)) out_ += c == 'm' ? 's' : c;
        at_ += end - 1;
    }
    /// A class as a list of its members, and as that of all others.
    void members(std::string_view list, bool negated) {
        if (!inside_) out_ += negated ? "[^" : "[";
        out_ += list;
        if (!inside_) out_ += "]";
    }
    void escaped(char c) {
        at_++;
        if (c == 's')
            members(space_members, false);
        else if (c == 'S' && !inside_)
            members(space_members, true);
        else if (c == 'S')
            out_ += "\\P{White_Space}";
        else if (c == 'w')
            members(word_members, false);
        else if (c == 'W' && !inside_)
            members(word_members, true);
        else if (c == 'h')
            members("0-9A-Fa-f", false);
        else if (c == 'H')
            members(inside_ ? "\\x00-/:-@G-`g-\\x{10FFFF}" : "0-9A-Fa-f", true);
        else if (c == 'v')
            out_ += "\\x0B";
        else
            (out_ += '\\') += c;
    }

    std::string_view pattern_;
    std::string out_;
    std::size_t at_ = 0;
    bool inside_ = false;  // a class
};

Translation translated(std::string_view pattern) {
    // This one is tried from every space of a long run; but a match always begins where its run begins, and
    // saying so makes it linear.
    if (pattern == "\\s+$") {
        const std::string space = "[" + std::string(space_members) + "]";
        return {"(?<!" + space + ")(?:" + space + "++\\z|" + space + "+(?=\\n))", {}};
    }
    return Translator(pattern).run();
}

/// Whether a match was given up because it took too many steps.
bool is_limit(int code) {
    return code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT || code == PCRE2_ERROR_HEAPLIMIT;
}

// Steps that PCRE2 may take from one place: in a search, and where the place is tried by itself.
constexpr std::uint32_t few_steps = 10'000, most_steps = 10'000'000;
/// Bytes of larger windows that a text may cost, beside so many times its own.
constexpr std::size_t spared_bytes = std::size_t{1} << 30, spared_times = 256;

template <auto release>
struct Release {
    void operator()(auto* owned) const { release(owned); }
};

/// A thread's own workspace for matching.
struct Workspace {
    std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>> data{
        pcre2_match_data_create(1, nullptr)};
    std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>> context{
        pcre2_match_context_create(nullptr)};
    Workspace() {
        if (!data || !context) throw std::bad_alloc();
        pcre2_set_depth_limit(context.get(), 1'000'000);
    }
};

/// The calling thread's. Not a thread_local object: for one with a destructor glibc ends the program where
/// there is no memory to note it.
Workspace& own_workspace() {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        if (pthread_key_create(&made, [](void* own) { delete static_cast<Workspace*>(own); }) != 0)
            throw std::bad_alloc();
        return made;
    }();
    if (void* own = pthread_getspecific(key)) return *static_cast<Workspace*>(own);
    auto made = std::make_unique<Workspace>();
    if (pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
}

std::string message_of(int code) {
    char text[256] = "";
    pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
    return text;
}

}  // namespace

struct Regex::Compiled {
    pcre2_code* code = nullptr;
    ~Compiled() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern, std::string_view file, std::string_view where)
    : pattern_(pattern), place_(file), compiled_(std::make_unique<Compiled>()) {
    if (pattern.size() > (1u << 16))
        fail_input(file, where, "a pattern of at most 64 KiB", std::to_string(pattern.size()) + " bytes");
    const auto [text, refused] = translated(pattern);
    if (!refused.empty())
        fail_input(file, where, "a regular expression without '" + std::string(refused) + "'",
                   quoted(pattern_));
    int error = 0;
    PCRE2_SIZE offset = 0;
    compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT, &error,
                                    &offset, nullptr);
    if (!compiled_->code && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
    if (!compiled_->code)
        fail_input(file, where, "a regular expression", "'" + pattern_ + "'", message_of(error));
}

Regex::~Regex() = default;

/// The first character that begins behind `at`.
std::size_t Regex::Matches::behind(std::size_t at) const {
    do at++;
    while (at < text_.size() && is_tail(text_[at]));
    return at;
}

/// PCRE2's answer for the window at at_: a search; or, in a larger one, the place at_ alone.
int Regex::Matches::match() {
    const bool alone = window_ > usual_;
    const Workspace& w = own_workspace();
    const std::size_t end = window_ < text_.size() - at_ ? behind(at_ + window_ - 1) : text_.size();
    pcre2_set_match_limit(w.context.get(), alone ? most_steps : few_steps);
    pcre2_set_offset_limit(w.context.get(), alone ? at_ : PCRE2_UNSET);
    // What looks at the window's end is no match there, but an answer of its own.
    const std::uint32_t options = PCRE2_NO_UTF_CHECK | (end < text_.size() ? PCRE2_PARTIAL_HARD : 0u);
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    // Not PCRE2's machine code, which does not count the steps of a repeated character.
    const int code =
        pcre2_match(regex_.compiled_->code, subject, end, at_, options, w.data.get(), w.context.get());
    if (code == PCRE2_ERROR_PARTIAL) {
        at_ = std::max(at_, pcre2_get_ovector_pointer(w.data.get())[0]);
        look_further(window_, "it looks far ahead at too many places of this text");
    } else if (is_limit(code) && !alone) {
        look_further(most_steps, "it backtracks without end on this text");
    } else if (code == PCRE2_ERROR_NOMATCH && (alone || end < text_.size())) {
        at_ = alone ? behind(at_) : end;
        window_ = usual_;
    } else {
        return code;
    }
    return PCRE2_ERROR_PARTIAL;
}

void Regex::Matches::look_further(std::size_t cost, const char* why) {
    window_ *= 2;
    looked_ahead_ += cost;
    if (looked_ahead_ > spared_bytes + spared_times * text_.size())
        fail_input(regex_.place_, "pattern " + quoted(regex_.pattern_),
                   "an expression that matches within limits of look-ahead", "one that exceeds them", why);
}

bool Regex::Matches::next(std::size_t& begin, std::size_t& end) {
    while (at_ <= text_.size()) {
        const int code = match();
        if (code == PCRE2_ERROR_PARTIAL) continue;
        if (code == PCRE2_ERROR_NOMATCH) {
            at_ = text_.size() + 1;
            return false;
        }
        if (code == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
        if (code < 0)
            fail_input(regex_.place_, "pattern " + quoted(regex_.pattern_),
                       "an expression that matches within limits of backtracking", message_of(code),
                       is_limit(code) ? "it backtracks without end on this text" : "");
        const PCRE2_SIZE* found = pcre2_get_ovector_pointer(own_workspace().data.get());
        if (found[0] < at_ || found[1] < found[0])
            fail_input(regex_.place_, "pattern " + quoted(regex_.pattern_), "matches that go forwards",
                       "one that ends before it begins");
        begin = found[0];
        end = found[1];
        window_ = usual_;
        // An empty match separates nothing: go on one character further.
        at_ = end > begin ? end : behind(end);
        if (end > begin) return true;
    }
    return false;
}

}  // namespace linnet
