#include "commands/divergence_text.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace linnet {

std::string divergence_line(const Divergence& divergence) {
    char line[256];
    std::snprintf(
        line, sizeof line,
        "perplexity %.4f -> %.4f  KL divergence: mean %.6f, 99th percentile %.6f  same top token %.2f %%\n",
        std::exp(divergence.reference_nll), std::exp(divergence.candidate_nll), divergence.mean,
        divergence.percentile99, 100 * divergence.same_top);
    return line;
}

nlohmann::ordered_json divergence_json(const Divergence& divergence) {
    return {{"tokens", divergence.tokens},
            {"source_ppl", std::exp(divergence.reference_nll)},
            {"ppl", std::exp(divergence.candidate_nll)},
            {"kl_mean", divergence.mean},
            {"kl_p99", divergence.percentile99},
            {"same_top", divergence.same_top}};
}

}  // namespace linnet
