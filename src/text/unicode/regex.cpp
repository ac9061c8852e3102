#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode/regex.h"

#include <pcre2.h>

#include <new>

#include "base/error.h"

namespace linnet {
namespace {

/// PCRE2's own \s takes U+180E and its \w leaves out marks, so they are spelled out.
constexpr std::string_view space_members =
    "\\t-\\r\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view word_members = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}";

/// What only PCRE2 understands, and what would make matches go backwards.
std::string_view refused_part(std::string_view rest) {
    for (std::string_view part : {"(*", "\\K"})
        if (rest.starts_with(part)) return part;
    return {};
}

struct Translation {
    std::string text;
    std::string_view refused;  // a part that is no such expression's
};

Translation translated(std::string_view pattern) {
    // Anchored at the end, this one is tried from every space of a long run; a match always begins where its
    // run begins, and saying so makes it linear.
    if (pattern == "\\s+$")
        return {"(?<![" + std::string(space_members) + "])[" + std::string(space_members) + "]++$", {}};
    std::string out;
    bool inside = false;
    for (std::size_t i = 0; i < pattern.size(); i++) {
        const char c = pattern[i];
        if (const std::string_view part = refused_part(pattern.substr(i)); !inside && !part.empty())
            return {{}, part};
        if (c != '\\' || i + 1 == pattern.size()) {
            if (c == '[' && !inside) {
                inside = true;
                out += c;
                if (pattern.substr(i + 1, 1) == "^") out += pattern[++i];
                // A bracket right after the opening is itself, to PCRE2 and to Oniguruma.
                if (pattern.substr(i + 1, 1) == "]") {
                    out += "\\]";
                    i++;
                }
                continue;
            }
            if (c == '[' && inside && pattern.substr(i + 1, 1) != ":") out += '\\';
            if (c == ']' && inside) inside = false;
            out += c;
            continue;
        }
        const char next = pattern[++i];
        auto members = [&](std::string_view list, bool negated) {
            if (!inside) out += negated ? "[^" : "[";
            out += list;
            if (!inside) out += "]";
        };
        if (next == 's')
            members(space_members, false);
        else if (next == 'S' && !inside)
            members(space_members, true);
        else if (next == 'w')
            members(word_members, false);
        else if (next == 'W' && !inside)
            members(word_members, true);
        else if (next == 'S')
            out += "\\P{White_Space}";
        else
            (out += '\\') += next;
    }
    return {out, {}};
}

/// Whether a match was given up because it took too many steps.
bool is_limit(int code) {
    return code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
           code == PCRE2_ERROR_HEAPLIMIT || code == PCRE2_ERROR_JIT_STACKLIMIT;
}

/// A thread's own workspace for matching.
struct Workspace {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 64 << 20, nullptr);
    Workspace() {
        if (!data || !context || !stack) throw std::bad_alloc();
        pcre2_set_match_limit(context, 10'000'000);
        pcre2_set_depth_limit(context, 1'000'000);
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
    ~Workspace() {
        pcre2_jit_stack_free(stack);
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
    }
};

std::string message_of(int code) {
    char text[256] = "";
    pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
    return text;
}

}  // namespace

struct Regex::Compiled {
    pcre2_code* code = nullptr;
    bool jit = false;
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
                                    PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    if (!compiled_->code)
        fail_input(file, where, "a regular expression", "'" + pattern_ + "'", message_of(error));
    std::size_t size = 0;  // of machine code; none where the processor or the pattern has no use for it
    compiled_->jit = pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE) == 0 &&
                     pcre2_pattern_info(compiled_->code, PCRE2_INFO_JITSIZE, &size) == 0 && size > 0;
}

Regex::~Regex() = default;

bool Regex::Matches::next(std::size_t& begin, std::size_t& end) {
    thread_local Workspace workspace;
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    while (at_ <= text_.size()) {
        int code = regex_.compiled_->jit
                       ? pcre2_jit_match(regex_.compiled_->code, subject, text_.size(), at_,
                                         PCRE2_NO_UTF_CHECK, workspace.data, workspace.context)
                       : pcre2_match(regex_.compiled_->code, subject, text_.size(), at_, PCRE2_NO_UTF_CHECK,
                                     workspace.data, workspace.context);
        if (code == PCRE2_ERROR_NOMATCH) {
            at_ = text_.size() + 1;
            return false;
        }
        if (code < 0)
            fail_input(regex_.place_, "pattern " + quoted(regex_.pattern_),
                       "an expression that a text is soon matched by", message_of(code),
                       is_limit(code) ? "it backtracks without end on this text" : "");
        const PCRE2_SIZE* found = pcre2_get_ovector_pointer(workspace.data);
        if (found[0] < at_ || found[1] < found[0])
            fail_input(regex_.place_, "pattern " + quoted(regex_.pattern_), "matches that go forwards",
                       "one that ends before it begins");
        begin = found[0];
        end = found[1];
        if (end > begin) {
            at_ = end;
            return true;
        }
        // An empty match separates nothing: go on one character further.
        at_ = end + 1;
        while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80) at_++;
    }
    return false;
}

}  // namespace linnet
