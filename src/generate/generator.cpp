#include "generate/generator.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/error.h"
#include "base/signals.h"
#include "generate/stream.h"

namespace linnet {
namespace {

/// Reads a token; where the context is full, first forgets all but the newer half of `text` (and its begin
/// token). Recomputing the half costs one prompt every half context; shifting cached positions would be
/// cheaper, but is not the same as having read that text (and learned positions cannot be shifted at all).
std::span<const float> append_sliding(LogitSource& source, const Tokenizer& tokenizer,
                                      std::span<const TokenId> text) {
    if (source.position() < source.context()) return source.append(text.last(1), Phase::write);
    std::size_t keep = std::max<std::size_t>(1, static_cast<std::size_t>(source.context()) / 2);
    std::span<const TokenId> newest = text.last(std::min(text.size(), keep));
    std::vector<TokenId> again(newest.begin(), newest.end());
    if (keep > 1 && tokenizer.bos() == text.front()) again.front() = text.front();
    source.rewind(0);
    return source.append(again, Phase::read);
}

}  // namespace

std::string_view name(GenerateEnd end) {
    constexpr std::array<std::string_view, 5> names{"length", "end-token", "stop", "context", "interrupted"};
    return names[static_cast<std::size_t>(end)];
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool special) {
    EncodeOptions options;
    options.add_special = true;
    options.parse_special = special;
    std::vector<TokenId> ids;
    tokenizer.encode(text, ids, options);
    if (!ids.empty()) return ids;
    if (auto begin = tokenizer.bos()) return {*begin};
    if (auto end = tokenizer.eos()) return {*end};
    try {
        tokenizer.encode("\n", ids);
    } catch (const Error&) {  // a character vocabulary without line breaks
    }
    return ids.empty() ? std::vector<TokenId>{0} : ids;
}

std::span<const float> read_prompt(LogitSource& source, std::span<const TokenId> prompt) {
    std::int64_t length = static_cast<std::int64_t>(prompt.size());
    if (source.position() + length > source.context())
        fail_input("", "prompt",
                   "at most " + std::to_string(source.context() - source.position()) + " tokens",
                   std::to_string(length),
                   "the model's context; shorten the prompt or raise --ctx where the model has more");
    return source.append(prompt, Phase::read);
}

Generated generate(LogitSource& source, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const Emit& emit) {
    Generated result;
    Sampler sampler(options.sampler);
    StopFilter stops(options.stops);
    Utf8Stream characters;
    std::vector<TokenId> text(prompt.begin(), prompt.end());
    bool first =
        std::all_of(prompt.begin(), prompt.end(), [&](TokenId id) { return tokenizer.is_control(id); });

    Clock::time_point start = Clock::now();
    std::span<const float> logits = read_prompt(source, prompt);
    result.prompt_seconds = seconds_since(start);
    start = Clock::now();
    for (std::int64_t n = 0; options.tokens < 0 || n < options.tokens; n++) {
        if (n > 0) {
            if (source.position() == source.context() && !options.slide) {
                result.end = GenerateEnd::context;
                break;
            }
            logits = append_sliding(source, tokenizer, text);
        }
        if (stop_signal()) {
            result.end = GenerateEnd::interrupted;
            break;
        }
        TokenId id = sampler.pick(logits, text, static_cast<std::uint64_t>(n));
        text.push_back(id);
        result.ids.push_back(id);
        if (tokenizer.is_end(id) && !options.ignore_end) {
            result.end = GenerateEnd::end_token;
            break;
        }
        std::string bytes;
        tokenizer.decode(id, first, bytes);
        first = first && bytes.empty();
        emit(id, characters.push(stops.push(bytes)));
        if (stops.stopped()) {
            result.end = GenerateEnd::stop;
            break;
        }
    }
    emit(std::nullopt, characters.push(stops.finish()) + characters.finish());
    result.seconds = seconds_since(start);
    return result;
}

std::string write_sample(const std::shared_ptr<const Model>& model, const std::string& prompt,
                         std::int64_t tokens, int threads) {
    GenerateOptions options;
    options.tokens = tokens;
    options.slide = options.ignore_end = true;
    EngineOptions engine;
    engine.threads = threads;
    SequenceSource source(model, engine);
    std::string text;
    generate(source, model->tokenizer(), encode_prompt(model->tokenizer(), prompt, false), options,
             [&](std::optional<TokenId>, std::string_view piece) { text += piece; });
    return text;
}

}  // namespace linnet
