// Masked tokens, also of two texts of which the second may follow the first (Devlin et al. 2019, BERT,
// section 3.1), replaced ones (Clark et al. 2020, ELECTRA, section 2) and spans (Raffel et al. 2020, T5,
// section 3.1.4), of windows of text.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"
#include "model/encode/encoder_text.h"
#include "model/trace/trace.h"
#include "text/encode/pipeline.h"
#include "text/unicode/unicode.h"
#include "train/task/objectives.h"
#include "train/task/task.h"

namespace linnet {
namespace {

constexpr std::uint64_t mask_stream = 0x6d61736b;    // "mask": this purpose's stream of the seed
constexpr std::uint64_t held_out_seed = 0x68656c64;  // held-out windows are masked alike in every run

/// Random numbers of one window: a counter that goes up.
class Draws {
  public:
    Draws(std::uint64_t seed, std::uint64_t index) : rng_(seed, mask_stream), next_(index << 20) {}
    double uniform() { return rng_.uniform(next_++); }
    std::uint64_t below(std::uint64_t n) { return rng_.below(n, next_++); }

    /// [0, n) in a random order.
    std::vector<std::size_t> order(std::size_t n) {
        std::vector<std::size_t> all(n);
        std::iota(all.begin(), all.end(), std::size_t{0});
        for (std::size_t i = n; i > 1; i--) std::swap(all[i - 1], all[below(i)]);
        return all;
    }
    /// `parts` positive whole numbers that sum to `total`.
    std::vector<std::int64_t> partition(std::int64_t total, std::int64_t parts) {
        std::vector<std::size_t> cuts = order(static_cast<std::size_t>(total - 1));
        cuts.resize(static_cast<std::size_t>(parts - 1));
        std::sort(cuts.begin(), cuts.end());
        std::vector<std::int64_t> lengths;
        std::int64_t before = 0;
        for (std::size_t cut : cuts) {
            lengths.push_back(static_cast<std::int64_t>(cut) + 1 - before);
            before = static_cast<std::int64_t>(cut) + 1;
        }
        lengths.push_back(total - before);
        return lengths;
    }

  private:
    Rng rng_;
    std::uint64_t next_;
};

/// Whether a token begins a word. WordPiece's spelling tells, as its decoder takes away the space before
/// punctuation; others begin words with the space before them.
bool begins_word(const Tokenizer& tokenizer, TokenId id) {
    const auto* pipeline = dynamic_cast<const Pipeline*>(&tokenizer);
    if (pipeline && pipeline->parts().decoder.kind == Decoder::Kind::pieces) {
        const Decoder& decoder = pipeline->parts().decoder;
        const TokenType type = pipeline->parts().vocabulary->type(id);
        const std::string_view piece = tokenizer.piece(id);
        if (type != TokenType::normal && type != TokenType::unused) return true;
        if (decoder.word_mark) return piece.starts_with(space_mark);
        return decoder.marker.empty() || !piece.starts_with(decoder.marker) ||
               piece.size() == decoder.marker.size();
    }
    std::string text;
    tokenizer.decode(id, false, text);
    return text.empty() || text[0] == ' ' || text[0] == '\n';
}

class WindowTask : public Task {
  public:
    WindowTask(const RunConfig& config, WindowSampler windows, TokenizerPtr tokenizer)
        : Task(config), windows_(std::move(windows)), tokenizer_(std::move(tokenizer)) {}

    std::uint64_t size(DataSplit split) const override { return windows_.source().size(split); }

    std::uint64_t held_out() const override { return windows_.validation_windows(); }

    bool in_memory() const override { return windows_.source().in_memory(); }

  protected:
    std::vector<std::int32_t> window(DataSplit split, std::uint64_t index) const {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(config().train.sequence)), next(ids.size());
        if (split == DataSplit::train)
            windows_.train_window(index, ids, next);
        else
            windows_.validation_window(index, ids, next);
        return ids;
    }

    /// The number of another window that has nothing in common with this one; its own where there is none.
    std::uint64_t other(DataSplit split, std::uint64_t index, Draws& draw) const {
        const std::uint64_t all =
            split == DataSplit::train ? windows_.epoch_windows() : windows_.validation_windows();
        if (all < 2) return index;
        const std::uint64_t place = index % all;
        return index - place + (place + 1 + draw.below(all - 1)) % all;
    }

    Draws draws(DataSplit split, std::uint64_t index) const {
        const bool train = split == DataSplit::train;
        return Draws(train ? static_cast<std::uint64_t>(config().train.seed) : held_out_seed, index);
    }

    const Tokenizer& tokenizer() const { return *tokenizer_; }

  private:
    WindowSampler windows_;
    TokenizerPtr tokenizer_;
};

class MaskedTask : public WindowTask {
  public:
    MaskedTask(const RunConfig& config, WindowSampler windows, const TokenizerPtr& tokenizer,
               const std::string& name)
        : WindowTask(config, std::move(windows), tokenizer), marks_(*tokenizer) {
        if (!marks_.mask)
            fail_input(name, "vocabulary",
                       "a mask token, [MASK] or <mask>, for train.objective " + config.train.objective,
                       "none", "linnet tokenizer train --kind wordpiece makes one that has it");
        if (config.model.head.next && (!marks_.first || !marks_.separator))
            fail_input(name, "vocabulary", "[CLS] and [SEP], as model.head.next is true", "none of them");
        for (TokenId id = 0; id < tokenizer->size(); id++) {
            control_.push_back(tokenizer->is_control(id));
            if (!control_.back()) plain_.push_back(id);
            begins_.push_back(begins_word(*tokenizer, id));
        }
    }

    void add(DataSplit split, std::uint64_t index, Batch& work) const override {
        std::vector<std::int32_t> ids = window(split, index);
        Draws draw = draws(split, index);
        EncoderInput input;
        if (config().model.head.next) {
            const bool follows = make_pair(split, index, ids, input.segments, draw);
            work.stream("next").push_back(follows ? next_follows : next_elsewhere);
        } else {
            mark(ids);
        }
        const std::vector<std::size_t> chosen = choose(ids, draw);
        input.tokens = ids;
        for (std::size_t at : chosen) {
            input.wanted.push_back(static_cast<std::int32_t>(at));
            work.targets.push_back(ids[at]);
            const double u = draw.uniform();
            if (u < 0.8)
                input.tokens[at] = *marks_.mask;
            else if (u < 0.9)
                input.tokens[at] = plain_[draw.below(plain_.size())];
        }
        add_to_batch(config().model, input, work);
    }

  protected:
    void mark(std::vector<std::int32_t>& ids) const {
        if (marks_.first) ids.front() = *marks_.first;
        if (marks_.separator) ids.back() = *marks_.separator;
    }

    TokenId mask() const { return *marks_.mask; }

    /// The positions to predict, ascending: `share` of those that are no control tokens, at least one.
    std::vector<std::size_t> choose(const std::vector<std::int32_t>& ids, Draws& draw) const {
        std::vector<std::vector<std::size_t>> words;  // or tokens
        std::size_t candidates = 0;
        bool joins = false;
        for (std::size_t i = 0; i < ids.size(); i++) {
            const auto id = static_cast<std::size_t>(ids[i]);
            if (control_[id]) {
                joins = false;
                continue;
            }
            if (!joins || !config().train.masked.words || begins_[id]) words.emplace_back();
            words.back().push_back(i);
            joins = true, candidates++;
        }
        const auto wanted = static_cast<std::size_t>(
            std::max(1.0, std::round(static_cast<double>(candidates) * config().train.masked.share)));
        std::vector<std::size_t> chosen;
        for (std::size_t word : draw.order(words.size())) {
            if (chosen.size() >= wanted) break;
            chosen.insert(chosen.end(), words[word].begin(), words[word].end());
        }
        std::sort(chosen.begin(), chosen.end());
        return chosen;
    }

  private:
    /// Makes a window [CLS] a [SEP] b [SEP], cut somewhere in its middle half. Half of the time b is what
    /// stands as far in another window; whether it follows a is returned.
    bool make_pair(DataSplit split, std::uint64_t index, std::vector<std::int32_t>& ids,
                   std::vector<std::int32_t>& segments, Draws& draw) const {
        const std::size_t text = ids.size() - 3, quarter = std::max<std::size_t>(1, text / 4);
        const std::size_t first = quarter + draw.below(text - 2 * quarter + 1);
        std::uint64_t from = index;
        if (draw.below(2) == 1) from = other(split, index, draw);
        const std::vector<std::int32_t> second = from == index ? ids : window(split, from);
        std::vector<std::int32_t> pair{*marks_.first};
        auto take = [&](const std::vector<std::int32_t>& of, std::size_t begin, std::size_t end) {
            pair.insert(pair.end(), of.begin() + static_cast<std::ptrdiff_t>(begin),
                        of.begin() + static_cast<std::ptrdiff_t>(end));
            pair.push_back(*marks_.separator);
        };
        take(ids, 0, first);
        segments.assign(pair.size(), 0);
        take(second, first, text);
        segments.resize(pair.size(), 1);
        ids = std::move(pair);
        return from == index;
    }

    EncoderMarks marks_;
    std::vector<char> control_, begins_;  // of each token: is one; begins a word
    std::vector<TokenId> plain_;
};

/// The streams of GeneratorStreams (model/trace/generator.h): a generator reads the window with all chosen
/// tokens masked, the model what that makes of it, and every row has a loss.
class ReplacedTask : public MaskedTask {
  public:
    using MaskedTask::MaskedTask;

    void add(DataSplit split, std::uint64_t index, Batch& work) const override {
        std::vector<std::int32_t> ids = window(split, index);
        mark(ids);
        Draws draw = draws(split, index);
        const std::vector<std::size_t> chosen = choose(ids, draw);
        EncoderInput input;
        input.tokens = ids;
        input.wanted.resize(ids.size());
        std::iota(input.wanted.begin(), input.wanted.end(), 0);
        std::vector<std::int32_t> given = ids, labels(ids.size(), 0), masks, originals, numbers;
        const std::size_t before = work.stream("masks").size();
        for (std::size_t at : chosen) {
            input.tokens[at] = mask();
            given[at] = labels[at] = -1 - static_cast<std::int32_t>(before + masks.size());
            masks.push_back(static_cast<std::int32_t>(work.rows.count) + static_cast<std::int32_t>(at));
            originals.push_back(ids[at]);
            numbers.push_back(static_cast<std::int32_t>(draw.below(std::uint64_t{1} << 31)));
        }
        append(masks, work.stream("masks"));
        append(originals, work.stream("originals"));
        append(numbers, work.stream("draws"));
        append(given, work.stream("given"));
        append(labels, work.stream("labels"));
        work.targets.resize(work.targets.size() + ids.size(), 0);  // which the graph makes: only counted
        add_to_batch(config().model, input, work);
    }

  private:
    static void append(const std::vector<std::int32_t>& more, std::vector<std::int32_t>& to) {
        to.insert(to.end(), more.begin(), more.end());
    }
};

class SpansTask : public WindowTask {
  public:
    SpansTask(const RunConfig& config, WindowSampler windows, const TokenizerPtr& tokenizer,
              const std::string& name)
        : WindowTask(config, std::move(windows), tokenizer),
          marks_(answer_marks(*tokenizer, config.model, name)) {
        const auto length = static_cast<double>(config.train.sequence - 1);
        noise_ = std::clamp<std::int64_t>(std::llround(length * config.train.masked.share), 1,
                                          config.train.sequence - 2);
        spans_ =
            std::clamp<std::int64_t>(std::llround(static_cast<double>(noise_) / config.train.masked.length),
                                     1, std::min(noise_, config.train.sequence - 1 - noise_));
        for (std::int64_t i = 0; i < spans_; i++) {
            const std::string spelling = "<extra_id_" + std::to_string(i) + ">";
            auto id = find_token(*tokenizer, {spelling});
            if (!id)
                fail_input(
                    name, "vocabulary",
                    std::to_string(spans_) + " sentinels, <extra_id_0> and on, for train.objective spans",
                    "no " + spelling);
            sentinels_.push_back(*id);
        }
    }

    /// Kept and dropped stretches in turn, a kept one first. The source has a sentinel for each dropped one,
    /// the answer each sentinel and what stood there.
    void add(DataSplit split, std::uint64_t index, Batch& work) const override {
        std::vector<std::int32_t> ids = window(split, index);
        ids.pop_back();  // room for the end token
        Draws draw = draws(split, index);
        const std::vector<std::int64_t> dropped = draw.partition(noise_, spans_);
        const std::vector<std::int64_t> kept =
            draw.partition(static_cast<std::int64_t>(ids.size()) - noise_, spans_);
        std::vector<std::int32_t> source, answer;
        std::size_t at = 0;
        for (std::size_t i = 0; i < sentinels_.size(); i++) {
            for (std::int64_t k = 0; k < kept[i]; k++) source.push_back(ids[at++]);
            source.push_back(sentinels_[i]), answer.push_back(sentinels_[i]);
            for (std::int64_t k = 0; k < dropped[i]; k++) answer.push_back(ids[at++]);
        }
        source.push_back(marks_.end), answer.push_back(marks_.end);
        add_pair(source, answer, marks_.start, work);
    }

  private:
    AnswerMarks marks_;
    std::int64_t noise_, spans_;
    std::vector<TokenId> sentinels_;
};

}  // namespace

void add_pair(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& answer, TokenId start,
              Batch& work) {
    const auto slot = static_cast<std::int32_t>(work.rows.segments.size());
    std::vector<std::int32_t>& words = work.stream("source");
    words.insert(words.end(), source.begin(), source.end());
    work.space("source").add(static_cast<std::int64_t>(source.size()), 0, slot);
    std::vector<std::int32_t> given{start};
    given.insert(given.end(), answer.begin(), answer.end() - 1);
    work.add(given.data(), static_cast<std::int64_t>(given.size()), 0, slot);
    work.targets.insert(work.targets.end(), answer.begin(), answer.end());
}

std::unique_ptr<Task> window_task(const RunConfig& config, WindowSampler windows,
                                  const TokenizerPtr& tokenizer, const std::string& tokenizer_name) {
    const Objective& objective = objective_of(config.train.objective);
    if (objective.sentinels)
        return std::make_unique<SpansTask>(config, std::move(windows), tokenizer, tokenizer_name);
    if (objective.generator)
        return std::make_unique<ReplacedTask>(config, std::move(windows), tokenizer, tokenizer_name);
    return std::make_unique<MaskedTask>(config, std::move(windows), tokenizer, tokenizer_name);
}

}  // namespace linnet
