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

/// The best answers that a search has found, as many as it has beams.
class BeamAnswers {
  public:
    explicit BeamAnswers(std::int64_t beams) : most_(static_cast<std::size_t>(beams)) {}
    void add(BeamAnswer answer);
    bool full() const { return best_.size() == most_; }
    /// Whether nothing is to be expected of beams that go on, the best of which would have the score `live`
    /// if it ended now: it would not be among the answers. Unlikely ends come early, so their number alone
    /// says nothing.
    bool settled(double live) const { return full() && best_.back().score >= live; }
    const BeamAnswer& best() const { return best_.front(); }

  private:
    std::size_t most_;
    std::vector<BeamAnswer> best_;  // the best first; of equal ones the older
};

/// Sequences that searches run over, one after another. Deterministic; of equal scores the older beam and the
/// lower id come first.
class BeamSearch {
  public:
    BeamSearch(std::shared_ptr<const Model> model, EngineOptions engine, const BeamOptions& options);

    /// The best answer. `source`: of an encoder–decoder, else empty; `prompt`: what stands before the answer.
    /// Errors as Sequence::encode and append. A signal ends the answer where it is; one that comes while the
    /// source is read (to its end all the same) or the prompt throws Stopped, and nothing is printed of it.
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
    double score(const Beam& beam) const;
    void move_states(const std::vector<std::size_t>& from);

    BeamOptions options_;
    std::shared_ptr<const Model> model_;
    Engine engine_;
    std::vector<Sequence> now_, next_;  // of the beams, and of those that follow them
};

}  // namespace linnet
