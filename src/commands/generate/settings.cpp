#include "commands/generate/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/nearest.h"
#include "commands/options.h"
#include "generate/grammar/gbnf.h"
#include "generate/grammar/json_schema.h"

namespace linnet {

std::vector<Field> text_fields(TextSettings& settings) {
    GenerateOptions& g = settings.generate;
    SamplerOptions& s = g.sampler;
    return {
        {"tokens", &g.tokens, "tokens to write; -1: until something else ends it", -1},
        {"temp", &s.temperature, "temperature; 0: always the likeliest token", 0, 1e9},
        {"top-k", &s.top_k, "draw from the K likeliest; 0: all", 0},
        {"top-p", &s.top_p, "draw from the likeliest that together have probability P; 1: all", 0, 1},
        {"min-p", &s.min_p, "draw from those with at least P of the likeliest's probability", 0, 1},
        {"typical", &s.typical_p, "draw from the most typical that together have probability P; 1: all", 0,
         1},
        {"top-nsigma", &s.top_n_sigma, "draw from logits within X standard deviations of the largest; 0: all",
         0, 1e9},
        {"repeat-penalty", &s.repeat_penalty, "above 1: recent tokens become less likely", 1e-3, 1e3},
        {"presence-penalty", &s.presence_penalty, "subtracted from the logits of recent tokens", -1e3, 1e3},
        {"frequency-penalty", &s.frequency_penalty, "subtracted for each recent occurrence of a token", -1e3,
         1e3},
        {"repeat-window", &s.repeat_window, "how many of the last tokens count as recent", 0},
        {"dry-multiplier", &s.dry_multiplier,
         "above 0: tokens that would lengthen a repetition become less likely (DRY)", 0, 1e6},
        {"dry-base", &s.dry_base, "their penalty: multiplier · X^(length - allowed length)", 0, 1e3},
        {"dry-allowed-length", &s.dry_allowed_length, "longest repetition without a penalty", 0},
        {"dry-penalty-last-n", &s.dry_penalty_last_n, "recent tokens that DRY looks at; -1: all", -1},
        {"xtc-probability", &s.xtc_probability,
         "probability of excluding the top choices but the least likely of them (XTC)", 0, 1},
        {"xtc-threshold", &s.xtc_threshold, "probability from which a token is a top choice", 0, 1},
        {"dynatemp-range", &s.dynatemp_range,
         "vary the temperature from T - X to T + X with the entropy; 0: fixed", 0, 1e9},
        {"dynatemp-exp", &s.dynatemp_exponent, "exponent by which it varies", 0, 1e3},
        {"mirostat", &s.mirostat, "2: Mirostat 2 replaces the samplers top_n_sigma to xtc; 0: off", 0, 2},
        {"mirostat-lr", &s.mirostat_lr, "its learning rate", 0, 1e3},
        {"mirostat-ent", &s.mirostat_ent, "its target: surprise per token, in bits", 0, 1e3},
        {"samplers", &s.samplers, "samplers and their order, separated by ;"},
        {"grammar", &settings.grammar, "write only what this grammar allows (GBNF, llama.cpp's notation)"},
        {"json-schema", &settings.json_schema, "write only JSON that this schema allows"},
        {"logprobs", &g.logprobs, "jsonl: log probabilities of each token and of the N likeliest", 0, 1e6},
        {"seed", &settings.seed, "seed of the random numbers: same seed, same text", 0, 9.2e18},
        {"ignore-end", &g.ignore_end, "go on after the model's end token"},
        {"special", &settings.special,
         "parse control tokens written in the prompt, such as <|im_end|>, as tokens, not as text"},
    };
}

std::vector<TextList> text_lists(TextSettings& settings) {
    return {
        {"logit-bias", &settings.logit_bias, "ID=X or \"TOKEN\"=X: add X to a token's logit (-inf: ban it)"},
        {"dry-sequence-breaker", &settings.generate.sampler.dry_breakers,
         "DRY counts no repetition across this text (instead of newline : \" *; none: no such text)"},
        {"stop", &settings.generate.stops, "end before this text"},
    };
}

namespace {

/// How help shows an option, another name that is understood, and what help says of the option alone.
struct Shown {
    const char *key, *type, *value, *also, *more = "";
};
constexpr Shown shown[] = {
    {"tokens", nullptr, nullptr, "--n-predict"},
    {"top-k", "K", nullptr, nullptr},
    {"top-p", "P", nullptr, nullptr},
    {"min-p", "P", nullptr, nullptr},
    {"typical", "P", nullptr, "--typical-p"},
    {"top-nsigma", nullptr, nullptr, "--top-n-sigma"},
    {"repeat-penalty", "R", nullptr, nullptr},
    {"repeat-window", nullptr, nullptr, "--repeat-last-n"},
    {"xtc-probability", "P", nullptr, nullptr},
    {"xtc-threshold", "P", nullptr, nullptr},
    {"grammar", "FILE", nullptr, "--grammar-file", "; -: stdin"},
    {"json-schema", "FILE", nullptr, "--json-schema-file", "; -: stdin"},
    {"samplers", "LIST", nullptr, nullptr},
    {"logprobs", nullptr, "none", nullptr},
    {"seed", "S", "random", "-s"},
    {"ignore-end", nullptr, nullptr, "--ignore-eos"},
    {"logit-bias", "BIAS", nullptr, nullptr},
    {"stop", nullptr, nullptr, nullptr, " (may be given several times)"},
};

void show(CLI::App& app, const std::string& key, CLI::Option* option) {
    for (const Shown& s : shown) {
        if (key != s.key) continue;
        if (s.type) option->type_name(s.type);
        if (s.value) option->default_str(s.value);
        if (s.also) add_hidden_names(app, s.also, option);
        option->description(option->get_description() + s.more);
    }
}

/// An option of the name and the limits of a field.
CLI::Option* add_field(CLI::App& app, const std::string& names, const Field& field) {
    if (auto* const* whole = std::get_if<std::int64_t*>(&field.target))
        return add_integer(app, names, **whole, static_cast<std::int64_t>(field.low),
                           static_cast<std::int64_t>(field.high), field.help);
    if (auto* const* real = std::get_if<double*>(&field.target))
        return add_real(app, names, **real, field.low, field.high, field.help);
    if (auto* const* text = std::get_if<std::string*>(&field.target))
        return add_text(app, names, **text, field.help);
    return app.add_flag(names, *std::get<bool*>(field.target), field.help);
}

}  // namespace

std::string text_key(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    for (const Shown& s : shown)
        if (s.also && s.also == "--" + name) return s.key;
    return name == "n" ? "tokens" : name;
}

void require_text_key(const std::string& key, std::span<const std::string> known, const std::string& place,
                      const std::string& spelled) {
    if (std::ranges::count(known, key) > 0) return;
    const std::string_view ours = option_for(key);
    const bool meant = !ours.empty() && std::ranges::count(known, ours) > 0;
    fail_input(place, spelled, "a known key", "an unknown one",
               meant ? "did you mean " + std::string(ours) + "?" : did_you_mean(key, known));
}

void add_text_options(CLI::App& app, TextSettings& settings) {
    for (const Field& field : text_fields(settings))
        show(app, field.key, add_field(app, (field.key == "tokens" ? "-n,--" : "--") + field.key, field));
    for (const TextList& list : text_lists(settings))
        show(app, list.key, add_texts(app, "--" + list.key, *list.target, list.help));
}

namespace {

/// The tokens that a bias names: by id, or in quotes by the bytes that they add to a text.
std::vector<TokenId> named_tokens(std::string_view name, const Tokenizer& tokenizer) {
    std::vector<TokenId> ids;
    if (name.size() > 2 && name.starts_with('"') && name.ends_with('"')) {
        name = name.substr(1, name.size() - 2);
        std::string text;
        for (TokenId id = 0; id < tokenizer.size(); id++) {
            text.clear();
            tokenizer.decode(id, false, text);
            if (text == name || tokenizer.piece(id) == name) ids.push_back(id);
        }
        return ids;
    }
    TokenId id = -1;
    const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (status == std::errc() && end == name.data() + name.size() && id >= 0 && id < tokenizer.size())
        ids.push_back(id);
    return ids;
}

void add_bias(const std::string& text, GrammarFiles& files, std::vector<LogitBias>& biases, Exit exit,
              const std::string& place, const std::string& where) {
    const std::size_t equals = text.rfind('=');
    const std::string hint = "ID=X or \"TOKEN\"=X";
    if (equals == std::string::npos)
        fail(exit, place, where, "a token, '=' and a number", quoted(text), hint);
    const auto bias = parse_whole<float>(text.substr(equals + 1));
    if (!bias || std::isnan(*bias) || *bias == HUGE_VALF)
        fail(exit, place, where, "a number or -inf behind '='", quoted(text.substr(equals + 1)), hint);
    const std::vector<TokenId>& ids = files.named(text.substr(0, equals));
    if (ids.empty())
        fail(exit, place, where,
             "a token of the vocabulary, an id below " + std::to_string(files.tokenizer().size()) +
                 " or its text in quotes",
             quoted(text.substr(0, equals)), hint);
    for (TokenId id : ids) biases.push_back({id, *bias});
}

}  // namespace

const std::vector<TokenId>& GrammarFiles::named(const std::string& name) {
    auto [at, first] = named_.try_emplace(name);
    if (first) at->second = named_tokens(name, tokenizer_);
    return at->second;
}

std::shared_ptr<TokenConstraint> GrammarFiles::read(const std::string& path, bool is_schema) {
    std::shared_ptr<TokenConstraint>& known = read_[{path, is_schema}];
    if (known) return known;
    const std::string text = read_input(path), name = input_name(path);
    const Grammar grammar = is_schema ? read_json_schema(text, name) : read_gbnf(text, name);
    if (!vocabulary_) vocabulary_ = std::make_shared<GrammarVocabulary>(tokenizer_);
    return known = std::make_shared<TokenConstraint>(grammar, tokenizer_, vocabulary_, name);
}

void resolve(TextSettings& settings, GrammarFiles& files, Exit exit, const std::string& place) {
    auto name = [&](const char* key) { return (place.empty() ? "--" : "") + std::string(key); };
    SamplerOptions& sampler = settings.generate.sampler;
    if (sampler.mirostat == 1) fail(exit, place, name("mirostat"), "0 or 2", "1", "version 1 is not there");
    sampler_chain(sampler.samplers, exit, place, name("samplers"));
    sampler.biases.clear();
    for (const std::string& bias : settings.logit_bias)
        add_bias(bias, files, sampler.biases, exit, place, name("logit-bias"));
    if (sampler.dry_breakers == std::vector<std::string>{"none"}) sampler.dry_breakers.clear();
    if (!settings.grammar.empty() && !settings.json_schema.empty())
        fail(exit, place, name("json-schema"), "a grammar or a schema", "both");
    settings.generate.grammar = nullptr;
    if (!settings.grammar.empty()) settings.generate.grammar = files.read(settings.grammar, false);
    if (!settings.json_schema.empty()) settings.generate.grammar = files.read(settings.json_schema, true);
}

}  // namespace linnet
