#include "model/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/signals.h"
#include "graph/executor.h"
#include "model/engine/states.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"

namespace linnet {
namespace {

constexpr std::int64_t least_written = 16;  // rows of a write run that drafts may fill

}  // namespace

struct Engine::Impl {
    std::shared_ptr<const Model> model;
    std::int64_t context, batch, written;
    std::vector<std::int64_t> position;  // of each slot
    struct Source {
        std::int64_t length = 0, number = 0;
    };
    std::vector<Source> source;  // of each slot, of an encoder–decoder: its tokens, and which it is
    std::int64_t sources = 0;    // read so far
    std::vector<char> taken;
    std::optional<States> states;
    std::optional<Executor<float>> reader, writer, scorer, encoder;
    Batch work;
    std::vector<std::span<const float>> logits;
    std::vector<float> copied;             // of logits that a further run would replace
    std::function<void(const Step&)> see;  // runs show every step to it, where there is one

    Impl(std::shared_ptr<const Model> m, const EngineOptions& options) : model(std::move(m)) {
        const ModelConfig& config = model->config();
        if (!config.has_decoder())
            fail_input(model->path(), "model.kind", "decoder or encoder-decoder, to write or to score texts",
                       config.kind, "linnet embed and linnet predict serve it");
        context = options.context == 0 ? config.context : options.context;
        if (context < 1 || context > config.context)
            fail(Exit::usage, "", "--ctx", "1 to " + std::to_string(config.context) + ", the model's",
                 std::to_string(context));
        batch = std::clamp<std::int64_t>(options.batch, 1, context * options.sequences);
        written = std::max(options.sequences, least_written);
        position.assign(static_cast<std::size_t>(options.sequences), 0);
        source.assign(static_cast<std::size_t>(options.sequences), {});
        taken.assign(static_cast<std::size_t>(options.sequences), 0);
        states.emplace(model->traced().graph,
                       StateRoom{context, options.sequences, std::max(batch, written), options.state});
        lower(threads_or_cores(options.threads));
    }

    /// The same programs for reading and for writing, over one arena.
    void lower(int threads) {
        const Graph& graph = model->traced().graph;
        Lowering lowering;
        lowering.states = true;
        lowering.positions = context;
        for (const Tensor& t : model->parameters()) lowering.stored.push_back(t.type);
        auto plan = [&](const char* program, Phase phase, std::int64_t rows, std::int64_t outputs) {
            lowering.phase = phase;
            lowering.chosen_only = phase == Phase::read;  // of what is written, every row is
            lowering.capacity = capacities(graph, {.tokens = rows, .outputs = outputs});
            return make_plan(graph, graph.program(program), lowering);
        };
        auto sequences = static_cast<std::int64_t>(position.size());
        Plan read = plan("logits", Phase::read, batch, sequences);
        Plan write = plan("logits", Phase::write, written, written);
        Plan score = plan("score", Phase::read, batch, 0);
        std::vector<const Plan*> all{&read, &write, &score};
        std::optional<Plan> encode;
        if (model->config().has_encoder()) {
            lowering.phase = Phase::read;
            lowering.capacity = capacities(graph, {.beside = context});
            all.push_back(&encode.emplace(make_plan(graph, graph.program("encode"), lowering)));
        }
        Binding<float> binding;
        binding.parameters = model->parameters();
        binding.states = states->views();
        binding.tables = std::make_shared<Tables<float>>();
        binding.memory = make_run_memory<float>(graph, all, threads);
        binding.heeds_signals = true;  // 512 rows may take seconds
        reader.emplace(graph, std::move(read), binding, threads);
        binding.heeds_signals = false;
        writer.emplace(graph, std::move(write), binding, threads);
        scorer.emplace(graph, std::move(score), binding, threads);
        if (encode) encoder.emplace(graph, std::move(*encode), binding, threads);
    }

    std::int64_t& at(std::int32_t slot) { return position[static_cast<std::size_t>(slot)]; }
    Source& source_of(std::int32_t slot) { return source[static_cast<std::size_t>(slot)]; }

    /// Reads a source; what its slot held is gone.
    void encode(std::int32_t slot, std::span<const TokenId> tokens) {
        if (!encoder) throw std::logic_error("a source for a model without an encoder");
        require_ids(model->config(), tokens);
        const auto length = static_cast<std::int64_t>(tokens.size());
        if (length < 1 || length > context)
            fail_input("", "source", "1 to " + std::to_string(context) + " tokens, the model's context",
                       std::to_string(length));
        work = Batch();
        work.rows.add(0, 0, slot);
        work.space("source").add(length, 0, slot);
        work.stream("source").assign(tokens.begin(), tokens.end());
        encoder->run(work);
        source_of(slot) = {length, ++sources};
        states->clear(slot);
        at(slot) = 0;
    }

    void admit(std::int32_t slot, std::span<const TokenId> tokens) {
        require_ids(model->config(), tokens);
        if (encoder && source_of(slot).length == 0)
            fail_input(model->path(), "model.kind", "decoder", "encoder-decoder",
                       "its answers need a source: linnet generate");
        std::int64_t end = at(slot) + static_cast<std::int64_t>(tokens.size());
        if (end > context)
            fail_input("", "context", "at most " + std::to_string(context) + " tokens", std::to_string(end));
    }

    /// Adds a piece to the batch that is being made.
    void add(std::int32_t slot, std::span<const TokenId> piece) {
        states->remember(slot, at(slot), static_cast<std::int64_t>(piece.size()));
        work.add(piece.data(), static_cast<std::int64_t>(piece.size()), at(slot), slot);
        if (encoder) work.space("source").add(0, source_of(slot).length, slot);
    }

    void run(Executor<float>& executor) {
        if (see)
            executor.watch(work, [&](const Executor<float>::Watched& made) {
                see({executor.graph().node(made.step.node), made.step.kind == StepKind::convert, made.values,
                     made.step.space, made.rows, made.seconds});
            });
        else
            try {
                executor.run(work);
            } catch (const Stopped&) {  // parts of states are overwritten
                for (const Segment& s : work.rows.segments)
                    at(s.slot) = states->rewind(s.slot, at(s.slot) + s.length, at(s.slot));
                throw;
            }
        for (const Segment& s : work.rows.segments) at(s.slot) += s.length;
    }

    std::span<const float> rows_of(const Executor<float>& executor, std::int64_t first,
                                   std::int64_t count) const {
        std::int64_t vocabulary = model->config().vocabulary;
        return {executor.value(model->traced().logits) + first * vocabulary,
                static_cast<std::size_t>(count * vocabulary)};
    }

    void append(std::span<const Work> all, Phase phase) {
        for (const Work& w : all) admit(w.sequence->slot_, w.tokens);
        logits.assign(all.size(), {});
        phase == Phase::write ? write(all) : read(all);
    }

    void read(std::span<const Work> all) {
        std::vector<std::size_t> done(all.size(), 0);
        std::size_t finished = 0;
        auto vocabulary = static_cast<std::size_t>(model->config().vocabulary);
        copied.resize(all.size() > 1 ? all.size() * vocabulary : 0);
        while (finished < all.size()) {
            work = Batch();
            std::vector<std::size_t> ended;
            auto room = static_cast<std::size_t>(batch);
            for (std::size_t i = 0; i < all.size() && room > 0; i++) {
                std::span<const TokenId> rest = all[i].tokens.subspan(done[i]);
                if (rest.empty()) continue;
                auto piece = rest.first(std::min(rest.size(), room));
                add(all[i].sequence->slot_, piece);
                room -= piece.size(), done[i] += piece.size();
                if (done[i] < all[i].tokens.size()) continue;
                work.outputs.push_back(static_cast<std::int32_t>(work.rows.count - 1));
                ended.push_back(i);
            }
            run(*reader);
            for (std::size_t k = 0; k < ended.size(); k++) {
                std::span<const float> row = rows_of(*reader, static_cast<std::int64_t>(k), 1);
                if (all.size() > 1) {
                    float* to = copied.data() + ended[k] * vocabulary;
                    std::copy(row.begin(), row.end(), to);
                    row = {to, vocabulary};
                }
                logits[ended[k]] = row;
            }
            finished += ended.size();
        }
    }

    void write(std::span<const Work> all) {
        work = Batch();
        for (const Work& w : all) {
            std::int64_t first = work.rows.count;
            add(w.sequence->slot_, w.tokens);
            for (std::int64_t r = w.every ? first : work.rows.count - 1; r < work.rows.count; r++)
                work.outputs.push_back(static_cast<std::int32_t>(r));
        }
        if (work.rows.count > written)
            throw std::logic_error("a write run of more rows than it has room for");
        run(*writer);
        std::int64_t row = 0;
        for (std::size_t i = 0; i < all.size(); i++) {
            std::int64_t count = all[i].every ? static_cast<std::int64_t>(all[i].tokens.size()) : 1;
            logits[i] = rows_of(*writer, row, count);
            row += count;
        }
    }
};

Engine::Engine(std::shared_ptr<const Model> model, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Engine::~Engine() = default;

std::int64_t Engine::context() const {
    return impl_->context;
}
const Model& Engine::model() const {
    return *impl_->model;
}
std::int64_t Engine::most_written() const {
    return impl_->written;
}
Sequence Engine::start() {
    return Sequence(impl_.get());
}
std::span<const float> Engine::logits(std::size_t i) const {
    return impl_->logits.at(i);
}

void Engine::run(std::span<const Work> work, Phase phase) {
    impl_->append(work, phase);
}

std::optional<Engine::NotFinite> Engine::find_not_finite(const Work& work, Phase phase) {
    const std::int64_t first = work.sequence->position() - static_cast<std::int64_t>(work.tokens.size());
    if (work.sequence->rewind(first) != first) return std::nullopt;  // the state cannot go back there
    std::optional<NotFinite> found;
    watch({&work, 1}, phase, [&](const Step& step) {
        if (found) return;
        auto wrong = std::ranges::count_if(step.values, [](float x) { return !std::isfinite(x); });
        if (wrong > 0) found = {step.node.path, wrong};
    });
    return found;
}

void Engine::watch(std::span<const Work> work, Phase phase, const std::function<void(const Step&)>& see) {
    struct Watching {
        Impl& impl;
        ~Watching() { impl.see = nullptr; }
    } watching{*impl_};
    impl_->see = see;
    run(work, phase);
}

std::string Engine::state_layout() const {
    const ModelConfig& config = impl_->model->config();
    const bool by_long = config.position.long_factors && impl_->context > config.original_context();
    return impl_->states->layout() + (by_long ? "keys turned by the long factors\n" : "");
}

Sequence::Sequence(Engine::Impl* engine) : engine_(engine) {
    auto place = std::find(engine->taken.begin(), engine->taken.end(), 0);
    if (place == engine->taken.end()) throw std::logic_error("an engine without room for another sequence");
    *place = 1;
    slot_ = static_cast<std::int32_t>(place - engine->taken.begin());
    engine_->at(slot_) = 0;
    engine_->source_of(slot_) = {};
    engine_->states->clear(slot_);
}
Sequence::Sequence(Sequence&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_) {}
Sequence& Sequence::operator=(Sequence&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(slot_, other.slot_);
    return *this;
}
Sequence::~Sequence() {
    if (engine_) engine_->taken[static_cast<std::size_t>(slot_)] = 0;
}

std::int64_t Sequence::context() const {
    return engine_->context;
}
std::int64_t Sequence::position() const {
    return engine_->at(slot_);
}

std::span<const float> Sequence::append(std::span<const TokenId> tokens, Phase phase) {
    const Engine::Work work{this, tokens};
    engine_->append({&work, 1}, phase);
    return engine_->logits[0];
}

double Sequence::append_nll(std::span<const TokenId> tokens) {
    Engine::Impl& e = *engine_;
    e.admit(slot_, tokens);
    double sum = 0;
    auto most = static_cast<std::size_t>(e.batch);
    for (std::size_t first = 0; first < tokens.size(); first += most) {
        auto piece = tokens.subspan(first, std::min(tokens.size() - first, most));
        e.work = Batch();
        e.add(slot_, piece);
        for (std::size_t i = first + 1; i <= first + piece.size(); i++)
            e.work.targets.push_back(i < tokens.size() ? tokens[i] : -1);
        e.run(*e.scorer);
        for (std::size_t i = 0; i < piece.size(); i++) sum += e.scorer->value(e.model->traced().loss)[i];
    }
    return sum;
}

std::int64_t Sequence::rewind(std::int64_t position) {
    std::int64_t& now = engine_->at(slot_);
    return now = engine_->states->rewind(slot_, now, std::clamp<std::int64_t>(position, 0, now));
}

std::vector<std::span<std::byte>> Sequence::state() {
    return engine_->states->pieces(slot_, position());
}

void Sequence::set_position(std::int64_t position) {
    engine_->states->clear(slot_);
    engine_->states->remember(slot_, 0, position);  // as one run that filled it
    engine_->at(slot_) = position;
}

void Sequence::encode(std::span<const TokenId> source) {
    engine_->encode(slot_, source);
}

void Sequence::become(const Sequence& other) {
    if (slot_ == other.slot_) return;
    const auto& source = engine_->source_of(other.slot_);
    const bool same = engine_->source_of(slot_).number == source.number;
    engine_->states->copy(other.slot_, slot_, other.position(), !same);
    engine_->at(slot_) = other.position();
    engine_->source_of(slot_) = source;
}

}  // namespace linnet
