// Beam search: the likeliest of several continuations that are kept at a time (Graves 2012; with the length
// normalisation of Wu et al. 2016, section 7, in its simplest form).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/engine/engine.h"

namespace linnet {

struct BeamOptions {
    std::int64_t beams = 4;
    double length_penalty = 1;  // answers are compared by log probability / length^this
    std::int64_t tokens = 128;  // at most; -1: as many as fit
};

struct BeamAnswer {
    std::vector<TokenId> ids;  // with the end token, where it ended
    double score = 0;          // log probability / length^penalty
    bool ended = false;
};

/// Sequences that searches run over, one after another. Deterministic; of equal scores the older beam and the
/// lower id come first.
class BeamSearch {
  public:
    BeamSearch(std::shared_ptr<const Model> model, EngineOptions engine, const BeamOptions& options);

    /// The best answer. `source`: of an encoder–decoder, else empty; `prompt`: what stands before the answer.
    /// Errors as Sequence::encode and append.
    BeamAnswer run(std::span<const TokenId> source, std::span<const TokenId> prompt);

  private:
    struct Beam {
        std::vector<TokenId> ids;
        double logprob = 0;
    };
    struct Candidate {
        std::size_t beam;
        TokenId id;
        double logprob;
    };
    std::vector<Candidate> candidates(const std::vector<Beam>& beams, std::span<const float> logits) const;
    void finish(std::vector<BeamAnswer>& done, const Beam& beam, bool ended) const;

    BeamOptions options_;
    std::shared_ptr<const Model> model_;
    Engine engine_;
    std::vector<Sequence> now_, next_;  // of the beams, and of those that follow them
};

}  // namespace linnet
