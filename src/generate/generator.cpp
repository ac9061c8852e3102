#include "generate/generator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log_sum.h"
#include "base/signals.h"
#include "model/encode/encoder_text.h"

namespace linnet {
namespace {

/// Tokens that are worth a copy of another slot's state, or a run to wait for: fewer are read again.
constexpr std::size_t worth_sharing = 16;

/// Tokens that are read before a signal is looked for.
constexpr std::size_t read_at_once = 512;

/// Guesses at a time: twice as many after all were right, one more than were right after others.
constexpr std::size_t first_draft = 3, most_drafted = 15;

std::size_t common(std::span<const TokenId> a, std::span<const TokenId> b) {
    auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

/// A sequence of the source, and the text that it serves.
struct Generator::Slot {
    std::vector<TokenId> source;  // of an encoder–decoder: what the state looks at
    std::vector<TokenId> held;    // in the state
    /// Of these, from the first, that were read: only they give another text the bits that it gets alone
    /// (written tokens leave other roundings behind).
    std::size_t read = 0;
    std::vector<float> logits;         // [V] after the tokens that were read; empty: not known
    std::vector<TokenId> planned;      // to be held after the next read run; empty: nothing is to be read
    std::optional<Continuation> text;  // none: free
    const Request* request = nullptr;
    std::size_t done = 0;  // tokens of the text that were read or written (not all may be held any more)
    std::vector<TokenId> writing;  // picked tokens that are not held yet, and guesses behind them
    std::size_t pending = 0;       // the first of these
    std::size_t ran = 0;           // of `held`, at its end: what the last run appended
    Phase phase = Phase::read;     // of that run
    std::unique_ptr<Drafter> drafter;
    std::size_t draft_length = first_draft;

    std::span<const TokenId> shared() const { return std::span(held).first(read); }
    bool full(std::int64_t context) const { return held.size() >= static_cast<std::size_t>(context); }
};

Generator::Generator(LogitSource& source, const Tokenizer& tokenizer, MakeDrafter make_drafter)
    : source_(source),
      tokenizer_(tokenizer),
      make_drafter_(std::move(make_drafter)),
      slots_(source.slots()) {}
Generator::~Generator() = default;

std::size_t Generator::index(const Slot& slot) const {
    return static_cast<std::size_t>(&slot - slots_.data());
}

/// First tokens of a text that a shift keeps.
std::size_t Generator::kept_first(std::span<const TokenId> text, const GenerateOptions& options) const {
    const auto context = static_cast<std::size_t>(source_.context());
    std::size_t keep = static_cast<std::size_t>(std::max<std::int64_t>(options.keep, 0));
    if (tokenizer_.bos() == text.front()) keep = std::max<std::size_t>(keep, 1);
    return std::min(keep, context - std::min<std::size_t>(context, 2));
}

/// What of a text is to be held: all of it, or where it does not fit and may be cut, its first tokens and the
/// newer half of what room is left. (The kept tokens are read again at their new positions. Moving the keys
/// there would be cheaper, but not the same as having read that text; and learned positions cannot be moved.)
std::vector<TokenId> Generator::fitted(std::span<const TokenId> text, const GenerateOptions& options) const {
    auto context = static_cast<std::size_t>(source_.context());
    if (text.size() <= context) return {text.begin(), text.end()};
    const std::size_t keep = kept_first(text, options);
    std::size_t rest = std::max<std::size_t>(1, (context - keep) / 2);
    std::vector<TokenId> tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(keep));
    tokens.insert(tokens.end(), text.end() - static_cast<std::ptrdiff_t>(rest), text.end());
    return tokens;
}

/// Plans that a slot holds these tokens, keeping what it has of them.
void Generator::place(Slot& slot, std::vector<TokenId> tokens) {
    std::size_t have = common(keeps_written_ ? std::span<const TokenId>(slot.held) : slot.shared(), tokens);
    if (have == tokens.size() && (have != slot.read || slot.logits.empty()))
        have--;  // the logits after the last one are needed
    have = static_cast<std::size_t>(source_.rewind(index(slot), static_cast<std::int64_t>(have)));
    if (have != slot.read) slot.logits.clear();
    slot.held.resize(have);
    slot.read = have;
    slot.ran = 0;
    slot.planned = std::move(tokens);
}

/// Gives the request a slot; false where none is free, or where waiting for another's prompt is better.
bool Generator::admit(const Request& request) {
    if (std::none_of(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.text; })) return false;
    std::vector<TokenId> tokens = fitted(request.prompt, request.options);
    Slot *free = nullptr, *best = nullptr, *spare = nullptr;
    std::size_t have = 0, share = 0, coming = 0;
    for (Slot& slot : slots_) {
        const bool alike = slot.source == request.source;  // only then what is held means the same
        if (slot.text && !alike) continue;
        const std::size_t same = alike ? common(slot.shared(), tokens) : 0;
        if (slot.text) {
            if (same > share) best = &slot, share = same;
            coming = std::max(coming, common(slot.planned, tokens));
        } else {
            if (!free || same > have) free = &slot, have = same;
            if (!spare || slot.read <= spare->read) spare = &slot;
        }
    }
    auto worth = [&](std::size_t more, std::size_t less) {
        return more > less && (more - less >= worth_sharing || more == tokens.size());
    };
    if (worth(coming, std::max(have, share))) return false;
    if (worth(share, have)) {
        free = spare;
        source_.fork(index(*best), index(*free));
        free->held = best->held, free->read = best->read, free->logits = best->logits;
        free->source = best->source;
    }
    if (free->source != request.source) {
        source_.encode(index(*free), request.source);
        free->source = request.source;
        free->held.clear(), free->logits.clear();
        free->read = 0;
    }
    begin(*free, request, std::move(tokens));
    return true;
}

/// The slot serves this request from now on, holding these tokens first.
void Generator::begin(Slot& slot, const Request& request, std::vector<TokenId> tokens) {
    place(slot, std::move(tokens));
    slot.request = &request;
    slot.text.emplace(tokenizer_, request.prompt, request.options, request.emit, request.emit_logprobs);
    slot.done = request.prompt.size();
    if (make_drafter_) slot.drafter = make_drafter_();
    slot.draft_length = first_draft;
}

/// A text that goes on behind a full context loses its oldest part, or ends.
void Generator::shift_full() {
    for (Slot& slot : slots_) {
        if (!slot.text || slot.text->ended() || !slot.planned.empty() || !slot.full(source_.context()))
            continue;
        std::vector<TokenId> tokens;
        if (slot.request->make_room) {
            tokens = slot.request->make_room(*slot.text);
        } else if (slot.text->options().shift) {
            const GenerateOptions& options = slot.text->options();
            tokens = fitted(slot.text->text(), options);
            if (options.remember >= 0)
                slot.text->forget(kept_first(slot.text->text(), options),
                                  static_cast<std::size_t>(std::max(options.remember, source_.context())));
        }
        if (tokens.empty()) {
            slot.text->finish(GenerateEnd::context);
            continue;
        }
        place(slot, std::move(tokens));
        slot.done = slot.text->text().size();
    }
}

void Generator::take(Slot& slot, std::span<const float> logits) {
    if (!slot.text->take(logits)) fail_not_finite(slot);
    totals_.written++;
}

void Generator::fail_not_finite(const Slot& slot) {
    source_.fail_not_finite({index(slot), std::span(slot.held).last(slot.ran), slot.phase == Phase::write},
                            slot.phase);
}

/// False: a signal came, and each slot holds what it can go back to.
bool Generator::read(std::span<const LogitSource::Work> work) {
    try {
        source_.run(work, Phase::read);
        return true;
    } catch (const Stopped&) {
        for (const LogitSource::Work& each : work) go_back(slots_[each.slot], slots_[each.slot].held.size());
        return false;
    }
}

/// The slot holds its first `wanted` tokens, or fewer where its state cannot go back to just there.
void Generator::go_back(Slot& slot, std::size_t wanted) {
    slot.held.resize(
        static_cast<std::size_t>(source_.rewind(index(slot), static_cast<std::int64_t>(wanted))));
    if (slot.held.size() < slot.read) slot.read = slot.held.size(), slot.logits.clear();
}

/// Reads what place() planned, and takes the first token after it. A signal ends that.
void Generator::read_planned() {
    std::vector<Slot*> who;
    for (Slot& slot : slots_)
        if (!slot.planned.empty()) who.push_back(&slot);
    const Clock::time_point start = Clock::now();
    for (std::vector<LogitSource::Work> work; !stop_signal(); work.clear()) {
        for (const Slot* slot : who) {
            const auto rest = std::span<const TokenId>(slot->planned).subspan(slot->held.size());
            if (!rest.empty())
                work.push_back({index(*slot), rest.first(std::min(rest.size(), read_at_once))});
        }
        if (work.empty() || !read(work)) break;
        for (std::size_t i = 0; i < work.size(); i++) {
            Slot& slot = slots_[work[i].slot];
            const std::span<const float> logits = source_.logits(i);
            slot.logits.assign(logits.begin(), logits.end());
            slot.held.insert(slot.held.end(), work[i].tokens.begin(), work[i].tokens.end());
            slot.read = slot.held.size();
            slot.ran = work[i].tokens.size();
            slot.phase = Phase::read;
            totals_.read += static_cast<std::int64_t>(slot.ran);
        }
    }
    if (!who.empty()) totals_.read_seconds += seconds_since(start);
    for (Slot* slot : who) slot->planned.clear();
    stop_at_signal();
    for (Slot* slot : who)
        if (slot->text && !slot->text->ended()) take(*slot, slot->logits);
}

/// Fills slot.writing, with at most `rows` tokens unless more are pending.
void Generator::prepare(Slot& slot, std::size_t rows) {
    const std::span<const TokenId> pending = std::span(slot.text->text()).subspan(slot.done);
    slot.writing.assign(pending.begin(), pending.end());
    slot.pending = pending.size();
    if (!slot.drafter || rows <= slot.pending) return;
    const std::size_t used = slot.held.size() + slot.pending,
                      room = static_cast<std::size_t>(source_.context());
    std::size_t most = std::min(slot.draft_length, rows - slot.pending);
    most = std::min(most, room - std::min(room, used));
    most = std::min<std::size_t>(most, slot.text->left() - 1);
    if (most > 0) slot.drafter->draft(*slot.text, most, slot.writing);
}

/// Writes the newest token of every text, with what may follow it, and takes the next ones.
void Generator::write_pending() {
    const Clock::time_point start = Clock::now();
    std::vector<Slot*> ready, together;
    for (Slot& slot : slots_)
        if (slot.text && !slot.text->ended() && !slot.full(source_.context())) ready.push_back(&slot);
    const auto room = static_cast<std::size_t>(source_.most_written());
    std::size_t rows = 0;
    for (Slot* slot : ready) {
        prepare(*slot, room / ready.size());
        if (rows + slot->writing.size() > room) {
            write(together);
            together.clear();
            rows = 0;
        }
        together.push_back(slot);
        rows += slot->writing.size();
    }
    if (!together.empty()) write(together);
    totals_.write_seconds += seconds_since(start);
}

void Generator::write(std::span<Slot* const> slots) {
    std::vector<LogitSource::Work> work;
    for (Slot* slot : slots)
        work.push_back({index(*slot), slot->writing, slot->writing.size() > slot->pending});
    source_.run(work, Phase::write);
    for (Slot* slot : slots) {
        slot->held.insert(slot->held.end(), slot->writing.begin(), slot->writing.end());
        slot->ran = slot->writing.size();
        slot->phase = Phase::write;
    }
    stop_at_signal();
    for (std::size_t i = 0; i < work.size(); i++) verify(*slots[i], source_.logits(i));
}

/// Picks after the pending tokens, and after every guess as long as guesses are what is picked; takes the
/// other guesses back. `logits`: after each token of slot.writing where there are guesses, else after the
/// last.
void Generator::verify(Slot& slot, std::span<const float> logits) {
    const std::size_t guesses = slot.writing.size() - slot.pending;
    const std::size_t width = guesses > 0 ? logits.size() / slot.writing.size() : logits.size();
    std::size_t right = 0;
    while (!slot.text->ended()) {
        take(slot, guesses > 0 ? logits.subspan((slot.pending + right - 1) * width, width) : logits);
        if (right == guesses || slot.text->text().back() != slot.writing[slot.pending + right]) break;
        right++;
    }
    slot.done += slot.pending + right;
    totals_.drafted += static_cast<std::int64_t>(guesses);
    totals_.accepted += static_cast<std::int64_t>(right);
    if (guesses > 0) slot.draft_length = std::min(right == guesses ? 2 * guesses : right + 1, most_drafted);
    if (right == guesses) return;
    const std::size_t wanted = slot.held.size() - (guesses - right);
    go_back(slot, wanted);
    slot.done -= wanted - slot.held.size();  // where fewer are left some are written once more
}

void Generator::stop_at_signal() {
    if (!stop_signal()) return;
    for (Slot& slot : slots_)
        if (slot.text && !slot.text->ended()) slot.text->finish(GenerateEnd::interrupted);
}

void Generator::free_ended() {
    for (Slot& slot : slots_) {
        if (!slot.text || !slot.text->ended()) continue;
        if (slot.request->done) slot.request->done(slot.text->result());
        slot.text.reset();
        slot.drafter.reset();
    }
}

std::span<const float> Generator::read(std::span<const TokenId> prompt) {
    require_room(prompt.size(), source_.context());
    place(slots_[0], {prompt.begin(), prompt.end()});
    read_planned();
    if (!slots_[0].logits.empty() && !std::isfinite(log_sum(slots_[0].logits))) fail_not_finite(slots_[0]);
    return slots_[0].logits;
}

void Generator::hold(std::vector<TokenId> tokens, std::span<const float> logits) {
    slots_[0].held = std::move(tokens);
    slots_[0].read = slots_[0].held.size();
    slots_[0].logits.assign(logits.begin(), logits.end());
}

void Generator::run(const std::vector<Request>& requests) {
    for (const Request& request : requests)
        if (!request.options.shift) require_room(request.prompt.size(), source_.context());
    try {
        serve(requests);
    } catch (...) {  // an output that fails, logits that are not finite: whoever asks next begins anew
        abandon();
        throw;
    }
}

/// Frees all slots. Nothing is known of what their states hold any more.
void Generator::abandon() {
    for (Slot& slot : slots_) {
        slot.text.reset(), slot.drafter.reset();
        slot.request = nullptr;
        slot.planned.clear(), slot.source.clear(), slot.held.clear(), slot.logits.clear();
        slot.read = 0;
        source_.rewind(index(slot), 0);
    }
}

void Generator::serve(const std::vector<Request>& requests) {
    std::size_t next = 0;
    auto busy = [&] {
        return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.text.has_value(); });
    };
    while (busy() || (next < requests.size() && !stop_signal())) {
        while (next < requests.size() && !stop_signal() && admit(requests[next])) next++;
        shift_full();
        read_planned();
        free_ended();
        write_pending();
        free_ended();
    }
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool special) {
    EncodeOptions options;
    options.add_special = true;
    options.parse_special = special;
    std::vector<TokenId> ids;
    tokenizer.encode(text, ids, options);
    if (!ids.empty()) return ids;
    if (auto begin = tokenizer.bos()) return {*begin};
    if (auto end = tokenizer.eos()) return {*end};
    try {
        tokenizer.encode("\n", ids);
    } catch (const Error&) {  // a character vocabulary without line breaks
    }
    return ids.empty() ? std::vector<TokenId>{0} : ids;
}

void require_room(std::size_t prompt, std::int64_t context, std::string_view file, std::string_view where) {
    if (prompt <= static_cast<std::size_t>(context)) return;
    fail_input(file, where.empty() ? "prompt" : where,
               "at most " + std::to_string(context) + (context == 1 ? " token" : " tokens"),
               std::to_string(prompt),
               "the model's context; shorten the prompt, raise --ctx where the model has more, or let "
               "--ctx-shift drop its oldest part");
}

Generated generate(LogitSource& source, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const Emit& emit) {
    Generated result;
    Generator generator(source, tokenizer);
    generator.run(
        {{{prompt.begin(), prompt.end()}, options, emit, [&](const Generated& g) { result = g; }, {}}});
    return result;
}

std::string write_sample(const std::shared_ptr<const Model>& model, const std::string& prompt,
                         std::int64_t tokens, int threads) {
    GenerateOptions options;
    options.tokens = tokens;
    options.shift = options.ignore_end = true;
    EngineOptions engine;
    engine.threads = threads;
    EngineSource source(model, engine);
    std::string text;
    Request request;
    request.options = options;
    request.emit = [&](std::optional<TokenId>, std::string_view piece) { text += piece; };
    request.done = [](const Generated&) {};
    const Tokenizer& tokenizer = model->tokenizer();
    if (model->config().has_encoder()) {
        request.source = text_input(tokenizer, prompt, false).tokens;
        request.prompt = {answer_marks(tokenizer, model->config(), model->path()).start};
        request.options.shift = request.options.ignore_end = false;
        request.options.sampler.temperature = 0;
    } else {
        request.prompt = encode_prompt(tokenizer, prompt, false);
    }
    Generator(source, tokenizer).run({request});
    return text;
}

}  // namespace linnet
