// tokenizer.json's component trees as our lists of steps.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/split.h"
#include "text/encode/vocabulary.h"
#include "text/files/base64_read.h"
#include "text/files/json_component_names.h"
#include "text/files/tokenizer_json.h"
#include "text/unicode/charsmap.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

using Value = Json::Value;

bool flag(Value object, std::string_view key, bool otherwise) {
    Value v = object[key];
    return v.is_null() ? otherwise : v.boolean();
}

std::string text(Value object, std::string_view key, std::string_view otherwise) {
    Value v = object[key];
    return std::string(v.is_null() ? otherwise : v.string());
}

/// Every member must be one of these; what a file says and we do not know would change the ids.
void only(Value object, const std::vector<std::string_view>& known) {
    object.members([&](std::string_view key, Value value) {
        if (key != "type" && std::find(known.begin(), known.end(), key) == known.end())
            value.fail(known.empty() ? "no such member" : "only the members " + joined(known),
                       "'" + std::string(key) + "'");
    });
}

/// A type of component: the members it may have beside that, and what reads them into `Step`.
template <class Step>
struct Component {
    std::string_view name;
    std::vector<std::string_view> members;
    void (*read)(Value, Step&);
};

/// Reads a component of the type that it names, which is one of these.
template <class Step>
void read_component(Value value, const std::vector<Component<Step>>& known, const char* what, Step& step) {
    const Value type = value["type"];
    for (const Component<Step>& component : known)
        if (type.string() == component.name) {
            only(value, component.members);
            return component.read(value, step);
        }
    type.fail(std::string(what) + " (" + joined(names_of(known), " ") + ")", quoted(type.string()));
}

/// {"String": …} or {"Regex": …}
void read_pattern(Value value, std::string& literal, std::shared_ptr<const Regex>& regex) {
    only(value, {"String", "Regex"});
    if (Value s = value["String"]; !s.is_null()) {
        literal = s.string();
        if (literal.empty()) s.fail("a string", "an empty one");
        if (literal.size() > longest_searched)  // it is tried at every place of a text
            s.fail("a string of at most " + std::to_string(longest_searched) + " bytes",
                   std::to_string(literal.size()) + " bytes");
    } else if (Value r = value["Regex"]; !r.is_null()) {
        regex = std::make_shared<const Regex>(r.string(), r.file(), r.path());
    } else {
        value.fail("String or Regex", "neither");
    }
}

/// What a step behind ByteLevel would see is text in GPT-2's alphabet; of normalizers none is made for that.
void refuse_behind_byte_level(Value value, bool byte_level) {
    const Value type = value["type"];
    if (byte_level) type.fail("no such step behind ByteLevel", quoted(type.string()));
}

/// A list of steps on its way out of the file.
struct Normalizing {
    std::vector<NormalizerStep>& steps;
    bool& byte_level;

    NormalizerStep& add(NormalizerStep::Kind kind) {
        steps.emplace_back().kind = kind;
        return steps.back();
    }
    void read(Value value);
};

template <NormalizerStep::Kind kind>
void read_plain(Value, Normalizing& to) {
    to.add(kind);
}

void read_strip(Value value, Normalizing& to) {
    NormalizerStep& step = to.add(NormalizerStep::Kind::strip);
    step.left = flag(value, "strip_left", true);
    step.right = flag(value, "strip_right", true);
}

void read_replace(Value value, Normalizing& to) {
    NormalizerStep& step = to.add(NormalizerStep::Kind::replace);
    read_pattern(value["pattern"], step.pattern, step.regex);
    step.content = value["content"].string();
}

void read_bert(Value value, Normalizing& to) {
    NormalizerStep& step = to.add(NormalizerStep::Kind::bert);
    step.clean_text = flag(value, "clean_text", true);
    step.cjk = flag(value, "handle_chinese_chars", true);
    step.lowercase = flag(value, "lowercase", true);
    step.accents = flag(value, "strip_accents", step.lowercase);
}

void read_precompiled(Value value, Normalizing& to) {
    const Value map = value["precompiled_charsmap"];
    if (map.is_null() || map.string().empty()) return;
    NormalizerStep& step = to.add(NormalizerStep::Kind::precompiled);
    step.content.resize(map.string().size());
    step.content.resize(decode_base64(map.string(), step.content.data()));
    if (step.content.empty()) map.fail("base64", quoted(map.string()));
    step.charsmap = std::make_shared<const CharsMap>(step.content, map.file(), map.path());
}

void Normalizing::read(Value value) {
    using Kind = NormalizerStep::Kind;
    static const std::vector<Component<Normalizing>> known = {
        {"Sequence",
         {"normalizers"},
         [](Value v, Normalizing& to) { v["normalizers"].elements([&](Value each) { to.read(each); }); }},
        {name_of(Kind::nfc), {}, read_plain<Kind::nfc>},
        {name_of(Kind::nfd), {}, read_plain<Kind::nfd>},
        {name_of(Kind::nfkc), {}, read_plain<Kind::nfkc>},
        {name_of(Kind::nfkd), {}, read_plain<Kind::nfkd>},
        {name_of(Kind::nmt), {}, read_plain<Kind::nmt>},
        {name_of(Kind::lowercase), {}, read_plain<Kind::lowercase>},
        {name_of(Kind::strip_accents), {}, read_plain<Kind::strip_accents>},
        {name_of(Kind::strip), {"strip_left", "strip_right"}, read_strip},
        {name_of(Kind::replace), {"pattern", "content"}, read_replace},
        {name_of(Kind::prepend),
         {"prepend"},
         [](Value v, Normalizing& to) { to.add(Kind::prepend).content = v["prepend"].string(); }},
        {name_of(Kind::bert),
         {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"},
         read_bert},
        {name_of(Kind::precompiled), {"precompiled_charsmap"}, read_precompiled},
        {"ByteLevel", {}, [](Value, Normalizing& to) { to.byte_level = true; }},
    };
    if (value["type"].string() != "Sequence") refuse_behind_byte_level(value, byte_level);
    read_component(value, known, "a normalizer", *this);
}

SplitBehavior behavior_of(Value value) {
    if (value.is_null()) return SplitBehavior::isolated;
    for (const auto& [behavior, name] : behavior_names)
        if (value.string() == name) return behavior;
    value.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", value.string());
}

const std::vector<std::string_view> metaspace_members = {"replacement", "prepend_scheme", "add_prefix_space",
                                                         "split", "str_rep"};

PreTokenizerStep metaspace_of(Value value) {
    using Prepend = PreTokenizerStep::Prepend;
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::metaspace;
    step.literal = text(value, "replacement", space_mark);
    const char* const literal = step.literal.data();
    if (step.literal.empty() ||
        decode_utf8(literal, literal + step.literal.size()).size != step.literal.size())
        value["replacement"].fail("one character", quoted(std::string_view(step.literal)));
    step.each = flag(value, "split", true);
    step.prepend = flag(value, "add_prefix_space", true) ? Prepend::always : Prepend::never;
    if (Value scheme = value["prepend_scheme"]; !scheme.is_null()) {
        if (scheme.string() == "always")
            step.prepend = Prepend::always;
        else if (scheme.string() == "first")
            step.prepend = Prepend::first;
        else if (scheme.string() == "never")
            step.prepend = Prepend::never;
        else
            scheme.fail("always, first or never", scheme.string());
    }
    return step;
}

/// A pre-tokenizer on its way out of the file.
struct PreTokenizing {
    PreTokenizer& pre;
    bool& byte_level;

    void add(PreTokenizerStep step) {
        if (byte_level) pre.spelled_from = std::min(pre.spelled_from, pre.steps.size());
        pre.steps.push_back(std::move(step));
    }
    void read(Value value);
};

void read_byte_level(Value value, PreTokenizing& to) {
    refuse_behind_byte_level(value, to.byte_level);  // it may put a space into the text
    to.byte_level = true;
    PreTokenizerStep step;
    if (flag(value, "add_prefix_space", true)) {
        step.kind = PreTokenizerStep::Kind::prefix_space;
        to.pre.steps.push_back(step);
    }
    if (!flag(value, "use_regex", true)) return;
    step.kind = PreTokenizerStep::Kind::words;
    step.words = Split::gpt2;
    to.pre.steps.push_back(step);
}

void read_split(Value value, PreTokenizing& to) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::pattern;
    read_pattern(value["pattern"], step.literal, step.regex);
    step.behavior = behavior_of(value["behavior"]);
    step.invert = flag(value, "invert", false);
    // The known patterns leave nothing unmatched, so that removing the rest removes nothing.
    const bool all = (step.behavior == SplitBehavior::isolated) ||
                     (step.behavior == SplitBehavior::removed && step.invert);
    if (step.regex && all)
        if (Split words = split_of_pattern(step.regex->pattern()); words != Split::whole) {
            step = PreTokenizerStep();
            step.words = words;
        }
    to.add(std::move(step));
}

void read_digits(Value value, PreTokenizing& to) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::digits;
    step.each = flag(value, "individual_digits", false);
    to.add(std::move(step));
}

void read_punctuation(Value value, PreTokenizing& to) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::punctuation;
    step.behavior = behavior_of(value["behavior"]);
    to.add(std::move(step));
}

template <PreTokenizerStep::Kind kind>
void read_plain(Value, PreTokenizing& to) {
    PreTokenizerStep step;
    step.kind = kind;
    to.add(std::move(step));
}

void read_delimiter(Value value, PreTokenizing& to) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::pattern;
    step.literal = value["delimiter"].string();
    step.behavior = SplitBehavior::removed;
    if (step.literal.empty()) value["delimiter"].fail("a character", "an empty string");
    to.add(std::move(step));
}

void PreTokenizing::read(Value value) {
    using Kind = PreTokenizerStep::Kind;
    static const std::vector<Component<PreTokenizing>> known = {
        {"Sequence",
         {"pretokenizers"},
         [](Value v, PreTokenizing& to) { v["pretokenizers"].elements([&](Value each) { to.read(each); }); }},
        {name_of(Kind::prefix_space), {"add_prefix_space", "trim_offsets", "use_regex"}, read_byte_level},
        {name_of(Kind::pattern), {"pattern", "behavior", "invert"}, read_split},
        {name_of(Kind::digits), {"individual_digits"}, read_digits},
        {name_of(Kind::punctuation), {"behavior"}, read_punctuation},
        {name_of(Kind::whitespace), {}, read_plain<Kind::whitespace>},
        {name_of(Kind::whitespace_split), {}, read_plain<Kind::whitespace_split>},
        {name_of(Kind::bert), {}, read_plain<Kind::bert>},
        {name_of(Kind::metaspace), metaspace_members,
         [](Value v, PreTokenizing& to) {
             refuse_behind_byte_level(v, to.byte_level);  // it puts marks into the text
             to.add(metaspace_of(v));
         }},
        {"CharDelimiterSplit", {"delimiter"}, read_delimiter},
    };
    read_component(value, known, "a pre-tokenizer", *this);
}

void read_decoder(Value value, Decoder& decoder) {
    using Kind = Decoder::Kind;
    const std::string_view type = value["type"].string();
    if (type == "Sequence") {
        only(value, {"decoders"});
        value["decoders"].elements([&](Value v) { read_decoder(v, decoder); });
    } else if (type == "ByteLevel") {
        decoder.kind = Kind::bytes;
    } else if (type == "WordPiece") {
        only(value, {"prefix", "cleanup"});
        decoder.kind = Kind::pieces;
        decoder.marker = text(value, "prefix", "##");
        decoder.cleanup = flag(value, "cleanup", true);
        decoder.strip_first = true;
    } else if (type == "Metaspace") {
        only(value, metaspace_members);
        const PreTokenizerStep step = metaspace_of(value);
        decoder.kind = Kind::marks;
        decoder.marker = step.literal;
        decoder.strip_first = step.prepend != PreTokenizerStep::Prepend::never;
    } else if (type == "BPEDecoder") {
        only(value, {"suffix"});
        decoder.kind = Kind::suffix;
        decoder.marker = text(value, "suffix", "</w>");
    } else if (type == "Replace") {
        only(value, {"pattern", "content"});
        std::string literal;
        std::shared_ptr<const Regex> regex;
        read_pattern(value["pattern"], literal, regex);
        if (regex || value["content"].string() != " ")
            value.fail("a replacement of a mark by a space", "another");
        decoder.kind = Kind::marks;
        decoder.marker = literal;
    } else if (type == "Strip") {
        only(value, {"content", "start", "stop"});
        if (value["content"].string() != " " || value["start"].integer(0, 1 << 20) > 1 ||
            value["stop"].integer(0, 1 << 20) > 0)
            value.fail("a strip of one leading space", "another");
        decoder.strip_first = value["start"].integer(0, 1) == 1;
    } else if (type != "ByteFallback" && type != "Fuse") {
        value["type"].fail(
            "a decoder (Sequence ByteLevel WordPiece Metaspace BPEDecoder Replace Strip ByteFallback Fuse)",
            "'" + std::string(type) + "'");
    }
}

TokenId token_id(Value value, const Parts& parts) {
    return static_cast<TokenId>(value.integer(0, parts.vocabulary->size() - 1));
}

/// ["[SEP]", 102]
TokenId named_pair(Value value, const Parts& parts) {
    TokenId id = -1;
    int i = 0;
    value.elements([&](Value v) {
        if (i++ == 1) id = token_id(v, parts);
    });
    if (i != 2) value.fail("a token and its id", std::to_string(i) + " elements");
    return id;
}

/// A list of tokens around a text; what a file asks for is bounded, as every text pays for it.
void put_around(Value value, TokenId id, Parts& parts, std::vector<TokenId>& list) {
    constexpr std::size_t most = 1024;
    if (parts.prefix.size() + parts.suffix.size() == most)
        value.fail("at most " + std::to_string(most) + " tokens around a text", "more");
    list.push_back(id);
}

void read_template(Value value, Parts& parts) {
    only(value, {"single", "pair", "special_tokens"});
    bool behind = false;
    if (value["single"].size() > 1024)
        value["single"].fail("at most 1024 parts", std::to_string(value["single"].size()));
    value["single"].elements([&](Value item) {
        only(item, {"SpecialToken", "Sequence"});
        if (!item["Sequence"].is_null()) {
            behind = true;
            return;
        }
        const std::string_view name = item["SpecialToken"]["id"].string();
        Value special = value["special_tokens"][name];
        if (special.is_null()) item.fail("a name of special_tokens", "'" + std::string(name) + "'");
        special["ids"].elements([&](Value id) {
            put_around(id, token_id(id, parts), parts, behind ? parts.suffix : parts.prefix);
        });
    });
}

}  // namespace

Normalizer normalizer_from_json(Value value, bool& byte_level) {
    Normalizer normalizer;
    if (!value.is_null()) Normalizing{normalizer.steps, byte_level}.read(value);
    return normalizer;
}

PreTokenizer pre_tokenizer_from_json(Value value, bool& byte_level) {
    PreTokenizer pre;
    if (value.is_null()) return pre;
    PreTokenizing{pre, byte_level}.read(value);
    // Digits one by one and then GPT-2's words: one hand-written splitter does both.
    auto& s = pre.steps;
    using Kind = PreTokenizerStep::Kind;
    if (s.size() == 2 && !pre.has_spelled() && s[1].kind == Kind::words && s[1].words == Split::gpt2 &&
        ((s[0].kind == Kind::digits && s[0].each) ||
         (s[0].kind == Kind::pattern && s[0].regex && s[0].regex->pattern() == digit_pattern &&
          s[0].behavior == SplitBehavior::isolated && !s[0].invert))) {
        s.erase(s.begin());
        s[0].words = Split::gpt2_digits;
    }
    return pre;
}

Decoder decoder_from_json(Value value) {
    Decoder decoder;
    decoder.kind = Decoder::Kind::plain;
    if (!value.is_null()) read_decoder(value, decoder);
    return decoder;
}

void post_processor_from_json(Value value, Parts& parts) {
    if (value.is_null()) return;
    const std::string_view type = value["type"].string();
    if (type == "Sequence") {
        only(value, {"processors"});
        value["processors"].elements([&](Value v) { post_processor_from_json(v, parts); });
    } else if (type == "TemplateProcessing") {
        read_template(value, parts);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        only(value, {"sep", "cls", "trim_offsets", "add_prefix_space"});
        put_around(value, named_pair(value["cls"], parts), parts, parts.prefix);
        put_around(value, named_pair(value["sep"], parts), parts, parts.suffix);
    } else if (type != "ByteLevel") {
        value["type"].fail(
            "a post-processor (Sequence TemplateProcessing BertProcessing RobertaProcessing ByteLevel)",
            "'" + std::string(type) + "'");
    }
}

}  // namespace linnet
