#include "generate/sampling/chain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/nearest.h"
#include "base/split.h"

namespace linnet {
namespace {

/// Keskar et al. 2019, CTRL, section 4.1: logit / p where positive, else logit · p, once however often a
/// token is there; then OpenAI's presence and frequency penalties ("Advanced usage: frequency and presence
/// penalties" of its API guide).
void penalties(Draw& draw) {
    const SamplerOptions& o = *draw.options;
    const std::size_t window = std::min(draw.history.size(), static_cast<std::size_t>(o.repeat_window));
    std::map<TokenId, int> seen;
    for (TokenId id : draw.history.last(window)) seen[id]++;
    const auto penalty = static_cast<float>(o.repeat_penalty);
    draw.apply_temperature();
    draw.adjust(seen, [&](int count, float logit) {
        const auto minus = static_cast<float>(count * o.frequency_penalty + o.presence_penalty);
        return Draw::bounded((logit > 0 ? logit / penalty : logit * penalty) - minus);
    });
}

/// Tang et al. 2024, "Top-nσ: not all logits are you need", algorithm 1.
void top_n_sigma(Draw& draw) {
    std::vector<TokenCandidate>& list = draw.list();
    double sum = 0, squares = 0, count = 0;
    for (const TokenCandidate& c : list)
        if (!Draw::banned(c.logit)) sum += static_cast<double>(c.logit), count++;
    if (count == 0) return;
    const double mean = sum / count;
    for (const TokenCandidate& c : list)
        if (!Draw::banned(c.logit)) squares += std::pow(static_cast<double>(c.logit) - mean, 2);
    const double floor =
        static_cast<double>(draw.top) - draw.options->top_n_sigma * std::sqrt(squares / count);
    std::erase_if(list, [&](const TokenCandidate& c) { return static_cast<double>(c.logit) < floor; });
}

void top_k(Draw& draw) {
    draw.keep_top_k(static_cast<std::size_t>(draw.options->top_k));
}

/// Of the candidates' probabilities, in nats.
double entropy_of(Draw& draw) {
    const double whole = draw.sum();
    double entropy = 0;
    for (const TokenCandidate& c : draw.list())
        if (const double p = draw.weight(c) / whole; p > 0) entropy -= p * std::log(p);
    return entropy;
}

/// Meister et al. 2023, "Locally typical sampling", section 4: those whose surprise is nearest the entropy.
void typical_p(Draw& draw) {
    struct Scored {
        double distance, share;
        TokenCandidate candidate;
    };
    const double whole = draw.sum(), entropy = entropy_of(draw);
    std::vector<Scored> scored;
    for (const TokenCandidate& c : draw.list()) {
        const double p = draw.weight(c) / whole;
        scored.push_back({p > 0 ? std::abs(-std::log(p) - entropy) : HUGE_VAL, p, c});
    }
    std::sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
        return a.distance < b.distance || (a.distance == b.distance && likelier(a.candidate, b.candidate));
    });
    double held = 0;
    draw.list().clear();
    for (const Scored& s : scored) {
        draw.list().push_back(s.candidate);
        if ((held += s.share) > draw.options->typical_p) break;
    }
    draw.refresh_top();
}

/// Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1. Sorted in growing
/// pieces: the run is short when the model knows what it wants, and then the rest need not be in order.
void top_p(Draw& draw) {
    std::vector<TokenCandidate>& list = draw.list();
    const double whole = draw.sum();
    double held = 0;
    std::size_t sorted = 0, n = list.size(), piece = 64;
    for (std::size_t i = 0; i < n; i++) {
        if (i == sorted) {
            sorted = std::min(n, sorted + piece);
            piece *= 4;
            const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i);
            const auto end = list.begin() + static_cast<std::ptrdiff_t>(sorted);
            if (end != list.end()) std::nth_element(begin, end - 1, list.end(), likelier);
            std::sort(begin, end, likelier);
        }
        held += draw.weight(list[i]);
        if (held >= draw.options->top_p * whole) {
            list.resize(i + 1);
            return;
        }
    }
}

/// Nguyen et al. 2024, "Turning up the heat: min-p sampling", section 3.
void min_p(Draw& draw) {
    const double floor = static_cast<double>(draw.top) + std::log(draw.options->min_p) * draw.temperature;
    std::erase_if(draw.list(), [&](const TokenCandidate& c) { return static_cast<double>(c.logit) < floor; });
}

/// Exclude top choices (p-e-w 2024, github.com/oobabooga/text-generation-webui/pull/6335): sometimes, all
/// that reach the threshold but the least likely of them.
void xtc(Draw& draw) {
    const SamplerOptions& o = *draw.options;
    if (draw.uniform(RandomPurpose::xtc) >= o.xtc_probability) return;
    std::vector<TokenCandidate>& list = draw.list();
    std::sort(list.begin(), list.end(), likelier);
    const double whole = draw.sum();
    std::size_t reach = 0;
    while (reach < list.size() && draw.weight(list[reach]) >= o.xtc_threshold * whole) reach++;
    if (reach < 2) return;
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(reach - 1));
    draw.refresh_top();
}

/// With a range: Zhang et al. 2024, "EDT: improving large language models' generation by entropy-based
/// dynamic temperature sampling", in llama.cpp's form: from T - range where one token has it all to T + range
/// where all are alike.
void temperature(Draw& draw) {
    const SamplerOptions& o = *draw.options;
    double t = o.temperature;
    if (o.dynatemp_range > 0 && draw.list().size() > 1) {
        const double entropy = entropy_of(draw);
        const double low = std::max(0.0, t - o.dynatemp_range), high = t + o.dynatemp_range;
        const double share =
            std::clamp(entropy / std::log(static_cast<double>(draw.list().size())), 0.0, 1.0);
        t = low + (high - low) * std::pow(share, o.dynatemp_exponent);
    }
    if (t > 0)
        draw.temperature *= t;
    else
        draw.keep_top_k(1);
}

using O = SamplerOptions;

constexpr SamplerRow table[] = {
    {"penalties", "", Effect::reweighs,
     [](const O& o) {
         return o.repeat_window > 0 &&
                (o.repeat_penalty != 1 || o.frequency_penalty != 0 || o.presence_penalty != 0);
     },
     penalties, nullptr},
    {"dry", "", Effect::reweighs,
     [](const O& o) { return o.dry_multiplier > 0 && o.dry_penalty_last_n != 0; }, apply_dry, nullptr},
    {"top_n_sigma", "top_nsigma", Effect::cuts, [](const O& o) { return o.top_n_sigma > 0; }, top_n_sigma,
     nullptr},
    {"top_k", "", Effect::cuts, [](const O& o) { return o.top_k > 0; }, top_k,
     [](const O& o) { return o.top_k == 1; }},
    {"typical_p", "typ_p typical", Effect::cuts_best, [](const O& o) { return o.typical_p < 1; }, typical_p,
     nullptr},
    {"top_p", "", Effect::cuts, [](const O& o) { return o.top_p < 1; }, top_p, nullptr},
    {"min_p", "", Effect::cuts, [](const O& o) { return o.min_p > 0; }, min_p, nullptr},
    {"xtc", "", Effect::cuts_best, [](const O& o) { return o.xtc_probability > 0 && o.xtc_threshold <= 0.5; },
     xtc, nullptr},
    {"temperature", "temp", Effect::scales, [](const O&) { return true; }, temperature,
     [](const O& o) { return o.temperature == 0 && o.dynatemp_range == 0; }},
};

bool named(const SamplerRow& row, std::string_view name) {
    if (name == row.name) return true;
    for (std::string_view rest = row.other_names; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(' '));
        if (name == one) return true;
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    return false;
}

}  // namespace

std::span<const SamplerRow> samplers() {
    return table;
}

SamplerChain sampler_chain(std::string_view list, Exit exit, std::string_view file, std::string_view where) {
    SamplerChain chain;
    while (!list.empty()) {
        std::string name(list.substr(0, list.find_first_of(";,")));
        list.remove_prefix(std::min(list.size(), name.size() + 1));
        std::erase(name, ' ');
        std::replace(name.begin(), name.end(), '-', '_');
        if (name.empty()) continue;
        const auto* row = std::find_if(std::begin(table), std::end(table),
                                       [&](const SamplerRow& r) { return named(r, name); });
        if (row == std::end(table)) {
            const std::vector<std::string> known = names_of(table);
            fail(exit, file, where, "samplers out of " + joined(known), quoted(name),
                 did_you_mean(name, known));
        }
        if (std::find(chain.begin(), chain.end(), row) != chain.end())
            fail(exit, file, where, "each sampler once", quoted(name) + " twice");
        chain.push_back(row);
    }
    return chain;
}

TokenId take_mirostat(Draw& draw, double& mu) {
    const SamplerOptions& o = *draw.options;
    const double whole = draw.sum();
    const TokenCandidate best = *std::min_element(draw.list().begin(), draw.list().end(), likelier);
    std::erase_if(draw.list(),
                  [&](const TokenCandidate& c) { return -std::log2(draw.weight(c) / whole) > mu; });
    if (draw.list().empty()) draw.list().push_back(best);
    const double kept = draw.sum();
    const TokenId id = draw.take();
    for (const TokenCandidate& c : draw.list())
        if (c.id == id) mu -= o.mirostat_lr * (-std::log2(draw.weight(c) / kept) - o.mirostat_ent);
    return id;
}

}  // namespace linnet
