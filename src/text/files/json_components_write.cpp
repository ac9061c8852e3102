// Our lists of steps as tokenizer.json's component trees.
#include <algorithm>

#include "base/base64.h"
#include "text/files/json_component_names.h"
#include "text/files/tokenizer_json.h"
#include "text/unicode/regex.h"

namespace linnet {
namespace {

/// null, the one, or a Sequence under the member `list`.
std::string sequence(const std::vector<std::string>& parts, const char* list) {
    if (parts.empty()) return "null";
    if (parts.size() == 1) return parts[0];
    std::string out = std::string(R"({"type": "Sequence", ")") + list + "\": [";
    for (std::size_t i = 0; i < parts.size(); i++) out += (i ? ", " : "") + parts[i];
    return out + "]}";
}

std::string pattern(const std::shared_ptr<const Regex>& regex, const std::string& literal) {
    return regex ? "{\"Regex\": " + json_quoted(regex->pattern()) + "}"
                 : "{\"String\": " + json_quoted(literal) + "}";
}

/// A component of this type; its members begin with a comma.
std::string component(std::string_view type, const std::string& members = "") {
    return R"({"type": ")" + std::string(type) + "\"" + members + "}";
}

std::string normalizer_step(const NormalizerStep& s) {
    using Kind = NormalizerStep::Kind;
    const auto with = [&](const std::string& members) { return component(name_of(s.kind), members); };
    switch (s.kind) {
        case Kind::strip:
            return with(R"(, "strip_left": )" + boolean(s.left) + ", \"strip_right\": " + boolean(s.right));
        case Kind::replace:
            return with(R"(, "pattern": )" + pattern(s.regex, s.pattern) +
                        ", \"content\": " + json_quoted(s.content));
        case Kind::prepend:
            return with(R"(, "prepend": )" + json_quoted(s.content));
        case Kind::bert:
            return with(R"(, "clean_text": )" + boolean(s.clean_text) + ", \"handle_chinese_chars\": " +
                        boolean(s.cjk) + ", \"strip_accents\": " + boolean(s.accents) +
                        ", \"lowercase\": " + boolean(s.lowercase));
        case Kind::precompiled:
            return with(R"(, "precompiled_charsmap": ")" + base64(s.content) + "\"");
        case Kind::collapse_spaces:
            return R"({"type": "Strip", "strip_left": true, "strip_right": true}, )"
                   R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})";
        default:
            return with("");
    }
}

std::string split(const std::string& what, SplitBehavior behavior, bool invert) {
    return component(name_of(PreTokenizerStep::Kind::pattern),
                     R"(, "pattern": )" + what + ", \"behavior\": \"" + std::string(name_of(behavior)) +
                         "\", \"invert\": " + boolean(invert));
}

std::string byte_level(bool prefix_space, bool use_regex) {
    return component(name_of(PreTokenizerStep::Kind::prefix_space),
                     R"(, "add_prefix_space": )" + boolean(prefix_space) +
                         R"(, "trim_offsets": true, "use_regex": )" + boolean(use_regex));
}

std::string pre_step(const PreTokenizerStep& s) {
    using Kind = PreTokenizerStep::Kind;
    const auto with = [&](const std::string& members) { return component(name_of(s.kind), members); };
    switch (s.kind) {
        case Kind::words:
            return split("{\"Regex\": " + json_quoted(split_pattern(s.words)) + "}", SplitBehavior::isolated,
                         false);
        case Kind::pattern:
            return split(pattern(s.regex, s.literal), s.behavior, s.invert);
        case Kind::digits:
            return with(R"(, "individual_digits": )" + boolean(s.each));
        case Kind::punctuation:
            return with(R"(, "behavior": ")" + std::string(name_of(s.behavior)) + "\"");
        case Kind::metaspace: {
            using Prepend = PreTokenizerStep::Prepend;
            const char* scheme = s.prepend == Prepend::always  ? "always"
                                 : s.prepend == Prepend::first ? "first"
                                                               : "never";
            return with(R"(, "replacement": )" + json_quoted(s.literal) + ", \"prepend_scheme\": \"" +
                        scheme + "\", \"split\": " + boolean(s.each));
        }
        case Kind::prefix_space:
            return byte_level(true, false);
        default:
            return with("");
    }
}

}  // namespace

std::string normalizer_to_json(const Normalizer& normalizer) {
    std::vector<std::string> parts;
    for (const NormalizerStep& step : normalizer.steps) parts.push_back(normalizer_step(step));
    // collapse_spaces is two components, so that even one step may need the sequence.
    if (parts.size() == 1 && normalizer.steps[0].kind == NormalizerStep::Kind::collapse_spaces)
        return R"({"type": "Sequence", "normalizers": [)" + parts[0] + "]}";
    return sequence(parts, "normalizers");
}

std::string pre_tokenizer_to_json(const PreTokenizer& pre, bool bytes) {
    using Kind = PreTokenizerStep::Kind;
    std::vector<std::string> parts;
    bool spelled = false, prefix = false;  // ByteLevel is written; its add_prefix_space is waiting
    for (std::size_t i = 0; i < pre.steps.size(); i++) {
        const PreTokenizerStep& s = pre.steps[i];
        const bool last = i + 1 == std::min(pre.spelled_from, pre.steps.size());
        if (i == pre.spelled_from && !spelled) {
            parts.push_back(byte_level(prefix, false));
            spelled = true, prefix = false;
        }
        if (s.kind == Kind::prefix_space) {
            prefix = true;
            continue;
        }
        if (s.kind == Kind::words && s.words == Split::gpt2_digits)
            parts.push_back(R"({"type": "Digits", "individual_digits": true})");
        if (!spelled && (prefix || (bytes && last)) && s.kind == Kind::words &&
            (s.words == Split::gpt2 || s.words == Split::gpt2_digits)) {
            parts.push_back(byte_level(prefix, true));
            spelled = true;
        } else {
            parts.push_back(pre_step(s));
        }
        prefix = false;
    }
    if (prefix || (bytes && !spelled)) parts.push_back(byte_level(prefix, false));
    return sequence(parts, "pretokenizers");
}

std::string decoder_to_json(const Decoder& d) {
    switch (d.kind) {
        case Decoder::Kind::bytes:
            return R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})";
        case Decoder::Kind::marks: {
            const std::string marker = d.marker.empty() ? std::string(space_mark) : d.marker;
            std::string out =
                R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": )" +
                json_quoted(marker) + R"(}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"})";
            if (d.strip_first) out += R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})";
            return out + "]}";
        }
        case Decoder::Kind::pieces:
            return R"({"type": "WordPiece", "prefix": )" + json_quoted(d.word_mark ? "##" : d.marker) +
                   ", \"cleanup\": " + boolean(d.cleanup) + "}";
        case Decoder::Kind::suffix:
            return R"({"type": "BPEDecoder", "suffix": )" + json_quoted(d.marker) + "}";
        case Decoder::Kind::plain:
            return R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})";
    }
    return "null";
}

}  // namespace linnet
