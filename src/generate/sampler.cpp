#include "generate/sampler.h"

namespace linnet {
namespace {

/// Whether a chain comes to the likeliest token: what leaves one alone stands behind what keeps that one.
bool takes_likeliest(const SamplerChain& chain, const SamplerOptions& options) {
    bool cut = false;
    for (const SamplerRow* row : chain) {
        if (row->effect == Effect::cuts_best || (row->effect == Effect::reweighs && cut)) return false;
        if (row->leaves_one && row->leaves_one(options)) return true;
        cut |= row->effect != Effect::reweighs;
    }
    return false;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, const Tokenizer* tokenizer)
    : options_(options), tokenizer_(tokenizer) {
    for (const SamplerRow* row : sampler_chain(options_.samplers))
        if (row->active(options_) &&
            (options_.mirostat != 2 || row->effect == Effect::reweighs || row->effect == Effect::scales))
            chain_.push_back(row);
    likeliest_ = takes_likeliest(chain_, options_);
    state_.mu = 2 * options_.mirostat_ent;
}

std::optional<TokenId> Sampler::pick(std::span<const float> logits, std::span<const TokenId> history,
                                     std::uint64_t step, const TokenMask* mask) {
    draw_.begin(options_, tokenizer_, logits, history, step, mask);
    bool ready = false;  // the largest logit is known, and a number
    for (const SamplerRow* row : chain_) {
        const bool reweighs = row->effect == Effect::reweighs;
        if (!reweighs && likeliest_) return draw_.best();
        if (!reweighs && !ready && !(ready = draw_.find_top())) return std::nullopt;
        row->change(draw_);
        ready = ready && !reweighs;  // the largest may be another now
    }
    if (!ready && !draw_.find_top()) return std::nullopt;
    if (options_.mirostat == 2) return take_mirostat(draw_, state_.mu);
    return draw_.take();
}

}  // namespace linnet
