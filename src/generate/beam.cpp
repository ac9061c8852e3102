#include "generate/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/log_sum.h"
#include "base/signals.h"
#include "generate/continuation.h"
#include "generate/source.h"

namespace linnet {
namespace {

EngineOptions with_room(EngineOptions engine, std::int64_t beams) {
    engine.sequences = 2 * beams;
    return engine;
}

}  // namespace

void BeamAnswers::add(BeamAnswer answer) {
    const auto place = std::ranges::upper_bound(best_, answer.score, std::greater(), &BeamAnswer::score);
    best_.insert(place, std::move(answer));
    if (best_.size() > most_) best_.pop_back();
}

BeamSearch::BeamSearch(std::shared_ptr<const Model> model, EngineOptions engine, const BeamOptions& options)
    : options_(options), model_(std::move(model)), engine_(model_, with_room(engine, options.beams)) {
    for (std::int64_t i = 0; i < options_.beams; i++) {
        now_.push_back(engine_.start());
        next_.push_back(engine_.start());
    }
}

/// The 2 · beams best ways on, the best first: so many, as half of them may be ends.
std::vector<BeamSearch::Candidate> BeamSearch::candidates(const std::vector<Beam>& beams,
                                                          std::span<const float> logits) const {
    const std::size_t wanted = 2 * static_cast<std::size_t>(options_.beams);
    const std::size_t vocabulary = logits.size() / beams.size();
    std::vector<Candidate> all;
    for (std::size_t b = 0; b < beams.size(); b++) {
        const std::span<const float> own = logits.subspan(b * vocabulary, vocabulary);
        const double whole = log_sum(own);
        if (!std::isfinite(whole))
            fail_input(model_->path(), "logits", "finite numbers", "NaN or infinity",
                       not_finite_hint(*model_));
        for (TokenId id : likeliest(own, wanted))
            all.push_back(
                {b, id, beams[b].logprob + static_cast<double>(own[static_cast<std::size_t>(id)]) - whole});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; });
    all.resize(std::min(all.size(), wanted));
    return all;
}

double BeamSearch::score(const Beam& beam) const {
    const auto length = static_cast<double>(std::max<std::size_t>(1, beam.ids.size()));
    return beam.logprob / std::pow(length, options_.length_penalty);
}

/// The sequences of the beams that go on, of which the k-th goes on from beam from[k].
void BeamSearch::move_states(const std::vector<std::size_t>& from) {
    // The last of those that go on from a beam takes its state; the others copy it.
    for (std::size_t k = 0; k < from.size(); k++) {
        if (std::count(from.begin() + static_cast<std::ptrdiff_t>(k) + 1, from.end(), from[k]) > 0)
            next_[k].become(now_[from[k]]);
        else
            std::swap(next_[k], now_[from[k]]);
    }
    std::swap(now_, next_);
}

BeamAnswer BeamSearch::run(std::span<const TokenId> source, std::span<const TokenId> prompt) {
    const Tokenizer& tokenizer = model_->tokenizer();
    const auto width = static_cast<std::size_t>(options_.beams);
    if (!source.empty()) now_[0].encode(source);
    now_[0].rewind(0);
    std::span<const float> first = now_[0].append(prompt, Phase::read);
    std::vector<float> logits(first.begin(), first.end());
    std::vector<Beam> beams(1);
    BeamAnswers done(options_.beams);
    const std::int64_t room = engine_.context() - static_cast<std::int64_t>(prompt.size());
    const std::int64_t most = options_.tokens < 0 ? room : std::min(options_.tokens, room);
    for (std::int64_t step = 0; step < most && !stop_signal(); step++) {
        std::vector<Beam> kept;
        std::vector<std::size_t> from;  // of each that is kept, the beam that it goes on from
        for (const Candidate& c : candidates(beams, logits)) {
            if (kept.size() == width) break;
            Beam beam{beams[c.beam].ids, c.logprob};
            beam.ids.push_back(c.id);
            if (tokenizer.is_end(c.id)) {
                done.add({beam.ids, score(beam), true});
                continue;
            }
            from.push_back(c.beam);
            kept.push_back(std::move(beam));
        }
        move_states(from);
        beams = std::move(kept);
        if (step + 1 == most || beams.empty() || done.settled(score(beams.front()))) break;
        std::vector<Engine::Work> work;
        for (std::size_t i = 0; i < beams.size(); i++) work.push_back({&now_[i], {&beams[i].ids.back(), 1}});
        engine_.run(work, Phase::write);
        logits.clear();
        for (std::size_t i = 0; i < work.size(); i++)
            logits.insert(logits.end(), engine_.logits(i).begin(), engine_.logits(i).end());
    }
    if (!done.full())
        for (const Beam& beam : beams) done.add({beam.ids, score(beam), false});
    return done.best();
}

}  // namespace linnet
