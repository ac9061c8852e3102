// How a comparison of two models' predictions is printed.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/quantize/divergence.h"

namespace linnet {

/// One line, with its end: perplexities of both, KL divergence, how often both think the same token
/// likeliest.
std::string divergence_line(const Divergence& divergence);

/// The same as members: tokens, source_ppl, ppl, kl_mean, kl_p99, same_top.
nlohmann::ordered_json divergence_json(const Divergence& divergence);

}  // namespace linnet
