// Where logits come from.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/engine/engine.h"
#include "text/tokenizer.h"

namespace linnet {

/// What may make a model's logits that are not finite, as a hint for errors.
std::string not_finite_hint(const Model& model);

/// Several sequences, each in a slot of its own: those of an engine, or anything else that keeps some (a
/// test's own). The members are Engine's and Sequence's.
class LogitSource {
  public:
    struct Work {
        std::size_t slot;
        std::span<const TokenId> tokens;
        bool every = false;  // logits after each of the tokens, not after the last alone (writing only)
    };
    virtual ~LogitSource() = default;
    virtual std::int64_t context() const = 0;  // positions that each slot has room for
    virtual std::size_t slots() const = 0;
    virtual std::int64_t most_written() const = 0;  // tokens of one write run, at least slots()
    virtual std::int64_t rewind(std::size_t slot, std::int64_t position) = 0;
    virtual void fork(std::size_t from, std::size_t to) = 0;
    /// Of an encoder–decoder: the text that the slot's answer looks at; the slot is empty then.
    virtual void encode(std::size_t slot, std::span<const TokenId> source);
    virtual void run(std::span<const Work> work, Phase phase) = 0;
    virtual std::span<const float> logits(std::size_t work) const = 0;
    /// Throws Error(Exit::input) for logits that are not finite: those that a slot's last run, which appended
    /// `work`, came to.
    [[noreturn]] virtual void fail_not_finite(const Work& work, Phase phase) = 0;
};

/// The sequences of an engine; `options.sequences` slots.
class EngineSource : public LogitSource {
  public:
    EngineSource(std::shared_ptr<const Model> model, const EngineOptions& options);
    std::int64_t context() const override { return engine_.context(); }
    std::size_t slots() const override { return sequences_.size(); }
    std::int64_t most_written() const override { return engine_.most_written(); }
    std::int64_t rewind(std::size_t slot, std::int64_t position) override {
        return sequence(slot).rewind(position);
    }
    void fork(std::size_t from, std::size_t to) override { sequence(to).become(sequence(from)); }
    void encode(std::size_t slot, std::span<const TokenId> source) override { sequence(slot).encode(source); }
    void run(std::span<const Work> work, Phase phase) override;
    std::span<const float> logits(std::size_t work) const override { return engine_.logits(work); }
    /// Names the node where they began.
    [[noreturn]] void fail_not_finite(const Work& work, Phase phase) override;
    const Engine& engine() const { return engine_; }
    Sequence& sequence(std::size_t slot) { return sequences_[slot]; }

  private:
    Engine engine_;
    std::vector<Sequence> sequences_;
    std::vector<Engine::Work> work_;
};

}  // namespace linnet
