#include "generate/source.h"

#include <utility>

namespace linnet {

EngineSource::EngineSource(std::shared_ptr<const Model> model, const EngineOptions& options)
    : engine_(std::move(model), options) {
    for (std::int64_t i = 0; i < options.sequences; i++) sequences_.emplace_back(engine_.start());
}

void EngineSource::fork(std::size_t from, std::size_t to) {
    sequences_[to].reset();  // the engine has no room for one more
    sequences_[to].emplace(sequences_[from]->fork());
}

void EngineSource::run(std::span<const Work> work, Phase phase) {
    work_.clear();
    for (const Work& w : work) work_.push_back({&sequence(w.slot), w.tokens, w.every});
    engine_.run(work_, phase);
}

}  // namespace linnet
