#include "model/quantize/divergence.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log_sum.h"
#include "base/processors.h"
#include "base/signals.h"
#include "base/team.h"
#include "model/engine/engine.h"

namespace linnet {
namespace {

/// One row of logits of each model, and the token that followed.
struct Compared {
    double divergence, reference_nll, candidate_nll;
    bool same_top;
};

Compared compare(std::span<const float> p, std::span<const float> q, TokenId next) {
    auto top_p = std::max_element(p.begin(), p.end()), top_q = std::max_element(q.begin(), q.end());
    const double log_p = log_sum(p), log_q = log_sum(q);
    double divergence = 0;
    for (std::size_t i = 0; i < p.size(); i++) {
        double a = static_cast<double>(p[i]) - log_p, b = static_cast<double>(q[i]) - log_q;
        divergence += std::exp(a) * (a - b);
    }
    auto at = static_cast<std::size_t>(next);
    return {std::max(divergence, 0.0), log_p - static_cast<double>(p[at]), log_q - static_cast<double>(q[at]),
            top_p - p.begin() == top_q - q.begin()};
}

Divergence summary(std::vector<Compared> all) {
    Divergence result;
    result.tokens = static_cast<std::int64_t>(all.size());
    for (const Compared& c : all) {
        result.mean += c.divergence;
        result.reference_nll += c.reference_nll, result.candidate_nll += c.candidate_nll;
        result.same_top += c.same_top;
    }
    const double n = static_cast<double>(std::max<std::size_t>(all.size(), 1));
    for (double* sum : {&result.mean, &result.reference_nll, &result.candidate_nll, &result.same_top})
        *sum /= n;
    std::sort(all.begin(), all.end(), [](auto& x, auto& y) { return x.divergence < y.divergence; });
    if (!all.empty()) result.percentile99 = all[std::min(all.size() - 1, all.size() * 99 / 100)].divergence;
    return result;
}

}  // namespace

Divergence measure_divergence(const std::shared_ptr<const Model>& reference,
                              const std::shared_ptr<const Model>& candidate, std::span<const TokenId> ids,
                              const EngineOptions& options, std::int64_t windows,
                              const std::function<void(double done, double all)>& progress) {
    Engine one(reference, options), other(candidate, options);
    std::size_t vocabulary = static_cast<std::size_t>(reference->tokenizer().size()),
                size = static_cast<std::size_t>(options.context);
    if (candidate->tokenizer().size() != reference->tokenizer().size())
        fail_input(candidate->path(), "", "a vocabulary of " + std::to_string(vocabulary) + " tokens",
                   std::to_string(candidate->tokenizer().size()));
    std::size_t count = ids.size() / size,
                rows = static_cast<std::size_t>(std::min(one.most_written(), other.most_written()));
    if (windows > 0) count = std::min(count, static_cast<std::size_t>(windows));
    Sequence a = one.start(), b = other.start();
    std::vector<Compared> all;
    for (std::size_t w = 0; w < count; w++) {
        a.rewind(0), b.rewind(0);
        for (std::size_t first = 0; first + 1 < size; first += rows) {
            std::size_t some = std::min(rows, size - 1 - first);
            auto tokens = ids.subspan(w * size + first, some);
            const Engine::Work of_a[] = {{&a, tokens, true}}, of_b[] = {{&b, tokens, true}};
            one.run(of_a, Phase::write);
            other.run(of_b, Phase::write);
            std::span<const float> p = one.logits(0), q = other.logits(0);
            std::size_t begin = all.size();
            all.resize(begin + some);
            run_team(threads_or_cores(options.threads), [&](Worker worker) {
                Range range = worker.share(static_cast<std::int64_t>(some));
                for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
                     i++)
                    all[begin + i] =
                        compare(p.subspan(i * vocabulary, vocabulary), q.subspan(i * vocabulary, vocabulary),
                                ids[w * size + first + i + 1]);
            });
            for (const Compared& c : std::span(all).subspan(begin)) {
                if (!std::isfinite(c.reference_nll)) fail_not_finite(*reference);
                if (!std::isfinite(c.candidate_nll) || !std::isfinite(c.divergence))
                    fail_not_finite(*candidate);
            }
        }
        progress(static_cast<double>(w + 1), static_cast<double>(count));
        if (int signal = stop_signal()) throw Stopped{signal};
    }
    return summary(std::move(all));
}

}  // namespace linnet
