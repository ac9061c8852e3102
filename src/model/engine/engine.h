// Running a model: tokens in, logits out, for several sequences that share its weights and a thread team.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "ops/batch.h"

namespace linnet {

struct EngineOptions {
    std::int64_t context = 0;    // positions per sequence; 0: the model's own; more than that is an Error
    int threads = 0;             // 0: physical cores
    std::int64_t batch = 512;    // most rows read at once
    std::int64_t sequences = 1;  // most sequences at a time
    DType state = DType::f16;    // what keys and values are kept in: one of state_types()
};

class Sequence;
struct Node;

/// One model with room for several sequences. A sequence's logits are the same bits whatever runs beside it,
/// however its prompt is cut, for any number of threads. Not for use by several threads at once; must outlive
/// its sequences.
class Engine {
  public:
    Engine(std::shared_ptr<const Model> model, const EngineOptions& options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    std::int64_t context() const;  // positions there is room for in each sequence
    const Model& model() const;
    /// An empty sequence. More than `sequences` at a time are a std::logic_error.
    Sequence start();

    /// Tokens (at least one) for one sequence.
    struct Work {
        Sequence* sequence;
        std::span<const TokenId> tokens;
        bool every = false;  // logits after each of the tokens, not after the last alone (writing only)
    };
    /// Appends to several sequences, each named once. Given tokens are read, as many at a time as fit;
    /// sampled and drafted ones are written, all in one run (at most most_written() in all).
    /// Error(Exit::input) for an id outside [0, V) and where a context is full; then nothing was appended.
    /// Reading throws Stopped soon after a signal that asks the program to end: each sequence holds then what
    /// it held before, and perhaps some of its tokens, or less where its state cannot go back to just there.
    /// (Generator::read and ModelDrafter::draft catch that.)
    void run(std::span<const Work> work, Phase phase);
    std::int64_t most_written() const;
    /// Logits [V] after the last token of work[i] of the last run, or [tokens, V] after each; valid until the
    /// next run.
    std::span<const float> logits(std::size_t i) const;

    /// Where values stopped being finite numbers: the node that made the first such value, and how many of
    /// its values are none.
    struct NotFinite {
        std::string node;  // "blk.3.ffn.down"
        std::int64_t values;
    };
    /// Does a sequence's last run again, slowly, with a look at every value. `work`: what that run appended
    /// to it (it may have had company then). Nothing where all values are finite.
    std::optional<NotFinite> find_not_finite(const Work& work, Phase phase);

    /// A step of a run: its node, or what the node made in another storage type; the values (empty where
    /// they are integers), their rows, how long it took by itself.
    struct Step {
        const Node& node;
        bool converts;
        std::span<const float> values;
        SpaceId space;      // that it was run for
        std::int64_t rows;  // of it
        double seconds;
    };
    /// As run(), one step after another, with a look at each.
    void watch(std::span<const Work> work, Phase phase, const std::function<void(const Step&)>& see);

    /// How the bytes of Sequence::state() are to be read: equal for sequences that may exchange them.
    std::string state_layout() const;

  private:
    friend class Sequence;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// One sequence being read or written: a place in an engine's states. It gives the place back at its end.
class Sequence {
  public:
    Sequence(Sequence&& other) noexcept;
    Sequence& operator=(Sequence&& other) noexcept;
    ~Sequence();

    std::int64_t context() const;   // positions there is room for
    std::int64_t position() const;  // tokens held
    /// Appends tokens (at least one) and returns the logits [V] after the last one, valid until the engine's
    /// next run. Errors as Engine::run.
    std::span<const float> append(std::span<const TokenId> tokens, Phase phase);
    /// Reads tokens and returns the summed negative log-likelihood, in nats, of tokens[1..] given those
    /// before.
    double append_nll(std::span<const TokenId> tokens);
    /// Forgets all after the first `position` tokens, and where a state cannot go back to just there, some
    /// more. Returns the position reached, at most `position`: that itself for the tokens of the last run,
    /// and 0 where a window's older keys are gone (states.h).
    std::int64_t rewind(std::int64_t position);
    /// Of an encoder–decoder: reads the text that answers look at, before anything is appended; what was held
    /// is forgotten. Error(Exit::input) for an empty one and one longer than the context.
    void encode(std::span<const TokenId> source);
    /// Holds what another sequence of the same engine holds; a source that both have is not copied again.
    void become(const Sequence& other);
    /// The memory that holds what the tokens left behind: to be read, or after set_position() to be filled.
    std::vector<std::span<std::byte>> state();
    /// The sequence holds `position` tokens (at most context()), whose state is going to be written into
    /// state().
    void set_position(std::int64_t position);

  private:
    friend class Engine;
    explicit Sequence(Engine::Impl* engine);
    Engine::Impl* engine_;
    std::int32_t slot_;
};

}  // namespace linnet
