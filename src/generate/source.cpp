#include "generate/source.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"

namespace linnet {

std::string not_finite_hint(const Model& model) {
    const std::string scale = model.adapters().empty() ? "" : "an adapter's scale is too large, ";
    return scale + "the model's weights are damaged, which `linnet inspect --check` finds, or its keys and " +
           "values too large for f16: --kv-type f32";
}

void LogitSource::encode(std::size_t, std::span<const TokenId>) {
    throw std::logic_error("a source for logits that look at none");
}

EngineSource::EngineSource(std::shared_ptr<const Model> model, const EngineOptions& options)
    : engine_(std::move(model), options) {
    for (std::int64_t i = 0; i < options.sequences; i++) sequences_.push_back(engine_.start());
}

void EngineSource::run(std::span<const Work> work, Phase phase) {
    work_.clear();
    for (const Work& w : work) work_.push_back({&sequence(w.slot), w.tokens, w.every});
    engine_.run(work_, phase);
}

void EngineSource::fail_not_finite(const Work& work, Phase phase) {
    const Model& model = engine_.model();
    if (!work.tokens.empty())
        if (auto found = engine_.find_not_finite({&sequence(work.slot), work.tokens, work.every}, phase))
            fail_input(model.path(), found->node, "finite values",
                       std::to_string(found->values) + " that are not", not_finite_hint(model));
    fail_input(model.path(), "logits", "finite numbers", "NaN or infinity", not_finite_hint(model));
}

}  // namespace linnet
