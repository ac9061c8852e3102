#include "train/task/example_task.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/split.h"
#include "base/terminal.h"
#include "data/labelled/picture_folders.h"
#include "data/permutation.h"
#include "model/convert/source.h"
#include "model/encode/encoder_text.h"
#include "text/naming.h"
#include "text/train/make.h"
#include "train/task/objectives.h"

namespace linnet {
namespace {

constexpr std::uint64_t order_stream = 0x6f72646572;  // "order": this purpose's stream of the seed

/// Of a run that reads_examples.
LabelledKind kind_of(const RunConfig& config) {
    return objective_of(config.train.objective).examples.value();
}

/// Examples with numbers, those to train on each epoch in an order of its own.
class ShuffledTask : public Task {
  public:
    ShuffledTask(const RunConfig& config, std::vector<std::uint32_t> train,
                 std::vector<std::uint32_t> validation)
        : Task(config), order_{std::move(train), std::move(validation)} {}

    std::uint64_t size(DataSplit split) const override { return order_[static_cast<int>(split)].size(); }
    std::uint64_t held_out() const override { return order_[1].size(); }

  protected:
    /// The number of the example that is the index-th of its split.
    std::size_t place(DataSplit split, std::uint64_t index) const {
        const std::vector<std::uint32_t>& order = order_[static_cast<int>(split)];
        if (split == DataSplit::validation) return order[index];
        const std::uint64_t epoch = index / order.size();
        const Rng rng(static_cast<std::uint64_t>(config().train.seed), order_stream + epoch);
        return order[permuted(rng, index % order.size(), order.size())];
    }

  private:
    std::vector<std::uint32_t> order_[2];
};

/// Encoded examples.
class ExampleTask : public ShuffledTask {
  public:
    struct Encoded {
        EncoderInput input;                // of pairs: the source's tokens
        std::vector<std::int32_t> labels;  // of pairs: the answer's tokens with the end
    };

    ExampleTask(const RunConfig& config, std::vector<Encoded> examples, std::vector<std::uint32_t> train,
                std::vector<std::uint32_t> validation, TokenId start, std::string sample)
        : ShuffledTask(config, std::move(train), std::move(validation)),
          kind_(kind_of(config)),
          examples_(std::move(examples)),
          start_(start),
          sample_(std::move(sample)) {}

    std::string sample_source() const override { return sample_; }

    void add(DataSplit split, std::uint64_t index, Batch& work) const override {
        const Encoded& e = examples_[place(split, index)];
        if (kind_ == LabelledKind::pairs) return add_pair(e.input.tokens, e.labels, start_, work);
        add_to_batch(config().model, e.input, work);
        work.targets.insert(work.targets.end(), e.labels.begin(), e.labels.end());
    }

  private:
    LabelledKind kind_;
    std::vector<Encoded> examples_;
    TokenId start_;
    std::string sample_;
};

/// Examples that --skip-bad leaves out for one reason.
struct LeftOut {
    std::uint64_t count = 0;
    std::string first;

    void add(const std::string& where) {
        if (count++ == 0) first = where;
    }
    void say(const std::string& why) const {
        if (count > 0)
            note(grouped(count) + (count == 1 ? " example" : " examples") + " left out: " + why +
                 "; the first: " + first);
    }
};

/// An example's ids and targets. Error(Exit::input) calling it "text" where the vocabulary lacks a character.
ExampleTask::Encoded encoded_example(const LabelledExample& e, const RunConfig& config,
                                     const Tokenizer& tokenizer, const EncoderMarks& marks,
                                     AnswerMarks answer,
                                     const std::map<std::string_view, std::int32_t>& numbers) {
    ExampleTask::Encoded one;
    switch (kind_of(config)) {
        case LabelledKind::pairs:
            one.input = text_input(tokenizer, e.first, false);
            tokenizer.encode(e.second, one.labels);
            one.labels.push_back(answer.end);
            break;
        case LabelledKind::classes:
            one.input = pair_input(tokenizer, marks, e.first, e.other());
            one.input.wanted = {0};
            one.labels = {numbers.at(e.label)};
            break;
        case LabelledKind::tags:
            one.input = words_input(tokenizer, marks, e.first);
            for (std::string_view tag : linnet::split(e.label, ' ')) one.labels.push_back(numbers.at(tag));
            break;
    }
    return one;
}

/// Pictures, cut into patches when they are needed.
class PictureTask : public ShuffledTask {
  public:
    PictureTask(const RunConfig& config, Pictures pictures, std::vector<std::int32_t> labels,
                std::vector<std::uint32_t> train, std::vector<std::uint32_t> validation)
        : ShuffledTask(config, std::move(train), std::move(validation)),
          pictures_(std::move(pictures)),
          labels_(std::move(labels)) {}

    void add(DataSplit split, std::uint64_t index, Batch& work) const override {
        const ModelConfig& m = config().model;
        const std::size_t at = place(split, index);
        std::vector<std::uint8_t> moved;
        if (split == DataSplit::train) moved = augmented(at, index);
        EncoderInput input;
        input.patches = patches_of(pictures_.shape, split == DataSplit::train ? moved : pictures_[at],
                                   m.image.patch, m.pooling == "first");
        input.wanted = {0};
        add_to_batch(m, input, work);
        work.targets.push_back(labels_[at]);
    }

  private:
    /// Moved by up to two pixels each way, and mirrored half of the time, where train.augment says so.
    std::vector<std::uint8_t> augmented(std::size_t at, std::uint64_t index) const {
        const std::string& way = config().train.augment;
        const PictureShape& s = pictures_.shape;
        const std::span<const std::uint8_t> from = pictures_[at];
        std::vector<std::uint8_t> to(from.begin(), from.end());
        if (way == "none") return to;
        const Rng rng(static_cast<std::uint64_t>(config().train.seed), order_stream - 1);
        const bool shift = way != "flip", flip = way != "shift" && rng.below(2, 3 * index) == 1;
        const std::int64_t dx = shift ? static_cast<std::int64_t>(rng.below(5, 3 * index + 1)) - 2 : 0;
        const std::int64_t dy = shift ? static_cast<std::int64_t>(rng.below(5, 3 * index + 2)) - 2 : 0;
        for (std::int64_t y = 0; y < s.height; y++)
            for (std::int64_t x = 0; x < s.width; x++) {
                const std::int64_t u = (flip ? s.width - 1 - x : x) + dx, v = y + dy;
                const bool inside = u >= 0 && u < s.width && v >= 0 && v < s.height;
                for (std::int64_t c = 0; c < s.channels; c++)
                    to[static_cast<std::size_t>((y * s.width + x) * s.channels + c)] =
                        inside ? from[static_cast<std::size_t>((v * s.width + u) * s.channels + c)]
                               : std::uint8_t{0};
            }
        return to;
    }

    Pictures pictures_;
    std::vector<std::int32_t> labels_;
};

}  // namespace

bool reads_examples(const TrainConfig& config) {
    return objective_of(config.objective).examples.has_value();
}

ExampleData::ExampleData(const RunConfig& config, DataOptions options) : options_(std::move(options)) {
    if (config.model.reads_patches()) {
        read_pictures(config);
    } else {
        LabelledOptions wanted{options_.inputs, options_.fields, options_.read.format, options_.read.skip_bad,
                               options_.read.except};
        const LabelledKind kind = kind_of(config);
        examples_ = read_labelled(kind, wanted);
        sha256_ = examples_.sha256;
        bytes_ = examples_.bytes;
        std::set<std::string> names;
        for (const LabelledExample& e : examples_.all)
            if (kind == LabelledKind::classes)
                names.insert(e.label);
            else if (kind == LabelledKind::tags)
                for (std::string_view tag : linnet::split(e.label, ' ')) names.emplace(tag);
        labels_.assign(names.begin(), names.end());
    }
    split(config.train.validation_fraction);
}

void ExampleData::read_pictures(const RunConfig& config) {
    const auto& image = config.model.image;
    const PictureShape wanted{image.width, image.height, image.channels};
    if (!is_folder(options_.inputs[0])) return read_idx_files(wanted);
    LabelledPictures read = read_picture_folders(options_.inputs, wanted, options_.resize,
                                                 options_.read.skip_bad, options_.read.except);
    pictures_ = std::move(read.pictures);
    picture_labels_ = std::move(read.labels);
    labels_ = std::move(read.classes);
    static_cast<Skipped&>(examples_) = read;
    bytes_ = pictures_.pixels.size();
    Sha256 sum;
    sum.update(pictures_.pixels.data(), pictures_.pixels.size());
    for (const std::int32_t label : picture_labels_) {
        const std::string& name = labels_[static_cast<std::size_t>(label)];
        sum.update(name.c_str(), name.size() + 1);
    }
    sha256_ = sum.hex();
}

void ExampleData::read_idx_files(const PictureShape& wanted) {
    Sha256 sum;
    numbered_ = true;
    for (const std::string& path : options_.inputs) {
        const std::string beside = labels_beside(path);
        Pictures more = options_.resize ? read_pictures_file(path, wanted, true) : read_idx_pictures(path);
        const std::vector<std::uint8_t> labels = read_idx_labels(beside, more.count());
        if (pictures_.count() > 0 && !(more.shape == pictures_.shape))
            fail_input(path, "size", "that of the first file's pictures", "another");
        pictures_.shape = more.shape;
        pictures_.pixels.insert(pictures_.pixels.end(), more.pixels.begin(), more.pixels.end());
        picture_labels_.insert(picture_labels_.end(), labels.begin(), labels.end());
        sum.update(more.pixels.data(), more.pixels.size()), sum.update(labels.data(), labels.size());
    }
    sha256_ = sum.hex();
    bytes_ = pictures_.pixels.size();
    const std::int32_t most = *std::max_element(picture_labels_.begin(), picture_labels_.end());
    for (std::int32_t i = 0; i <= most; i++) labels_.push_back(std::to_string(i));
}

void ExampleData::split(double fraction) {
    const std::size_t count = pictures_.count() > 0 ? pictures_.count() : examples_.all.size();
    for (std::size_t i = 0; i < count; i++) {
        const bool held =
            pictures_.count() > 0
                ? linnet::held_out(
                      hash_bytes({reinterpret_cast<const char*>(pictures_[i].data()), pictures_[i].size()}),
                      fraction)
                : linnet::held_out(examples_.all[i], fraction);
        order_[held ? 1 : 0].push_back(static_cast<std::uint32_t>(i));
    }
    if (order_[0].empty())
        fail_input(options_.inputs[0], "", "an example to train on", "all of them held out",
                   "a smaller train.validation_fraction");
}

std::string ExampleData::description() const {
    std::string said =
        grouped(order_[0].size() + order_[1].size()) + (pictures_.count() > 0 ? " pictures" : " examples");
    if (!labels_.empty()) said += " of " + grouped(labels_.size()) + " classes";
    said += ", " + human_bytes(static_cast<double>(bytes_));
    if (examples_.skipped > 0) said += "; " + examples_.told("one");
    return said;
}

TokenizerPtr ExampleData::tokenizer(const RunConfig& config, int threads) const {
    if (config.tokenizer.kind == "file") return tokenizer_at(config.tokenizer.file);
    if (pictures_.count() > 0) return byte_tokenizer();
    std::string text;
    for (const std::vector<std::uint32_t>& part : order_) {
        // Characters must all be known; merges are learned from the training part alone.
        if (&part == &order_[1] && !config.tokenizer.knows_all()) break;
        for (std::uint32_t i : part) {
            const LabelledExample& e = examples_.all[i];
            text += e.first + "\n";
            if (!e.second.empty()) text += e.second + "\n";
        }
    }
    return make_vocabulary(config, text, threads);
}

bool ExampleData::two_texts() const {
    return std::ranges::any_of(examples_.all, &LabelledExample::two);
}

void ExampleData::keep_labels(const Model& base) {
    const std::vector<std::int32_t> numbers = label_numbers(labels_, base, options_.inputs[0]);
    for (std::int32_t& label : picture_labels_) label = numbers[static_cast<std::size_t>(label)];
    labels_ = labels_of(base);
}

void ExampleData::fit(RunConfig& config) {
    ModelConfig& m = config.model;
    const auto count = static_cast<std::int64_t>(labels_.size());
    if (m.reads_patches()) {
        const PictureShape wanted{m.image.width, m.image.height, m.image.channels};
        if (!(pictures_.shape == wanted))
            fail_input(
                options_.inputs[0], "size",
                std::to_string(wanted.width) + " x " + std::to_string(wanted.height) + ", model.image's",
                std::to_string(pictures_.shape.width) + " x " + std::to_string(pictures_.shape.height),
                "--resize changes it");
    }
    if (labels_.empty()) return;
    if (m.head.classes > 0 && (numbered_ ? count > m.head.classes : count != m.head.classes))
        fail_input(options_.inputs[0], "labels", std::to_string(m.head.classes) + ", model.head.classes",
                   std::to_string(count));
    if (m.head.classes == 0) m.head.classes = count;
    // Of pictures some classes may not have been seen.
    for (std::int64_t i = count; i < m.head.classes; i++) labels_.push_back(std::to_string(i));
}

std::unique_ptr<Task> ExampleData::task(const RunConfig& config, const TokenizerPtr& tokenizer,
                                        const std::string& tokenizer_name) {
    if (pictures_.count() > 0)
        return std::make_unique<PictureTask>(config, std::move(pictures_), std::move(picture_labels_),
                                             std::move(order_[0]), std::move(order_[1]));
    const bool pairs = kind_of(config) == LabelledKind::pairs;
    const EncoderMarks marks(*tokenizer);
    AnswerMarks answer{0, 0};
    if (pairs) answer = answer_marks(*tokenizer, config.model, tokenizer_name);
    std::map<std::string_view, std::int32_t> numbers;
    for (std::size_t i = 0; i < labels_.size(); i++) numbers[labels_[i]] = static_cast<std::int32_t>(i);
    std::vector<ExampleTask::Encoded> encoded;
    std::vector<std::uint32_t> order[2];
    std::string sample;
    LeftOut too_long, unknown;
    for (int part = 0; part < 2; part++)
        for (std::uint32_t i : order_[part]) {
            const LabelledExample& e = examples_.all[i];
            ExampleTask::Encoded one;
            try {
                one = naming(examples_.place(e),
                             [&] { return encoded_example(e, config, *tokenizer, marks, answer, numbers); });
            } catch (const Error& error) {
                if (!options_.read.skip_bad) throw;
                unknown.add(error.what());
                continue;
            }
            const std::size_t longest = std::max(one.input.tokens.size(), pairs ? one.labels.size() : 0);
            const auto room = static_cast<std::size_t>(config.train.sequence);
            if (longest > room || one.input.tokens.empty()) {
                const std::string where = examples_.place(e);
                if (!options_.read.skip_bad)
                    fail_input(where, "", "1 to " + std::to_string(room) + " tokens, train.sequence",
                               std::to_string(longest), "--skip-bad leaves such out");
                too_long.add(where);
                continue;
            }
            if (part == 1 && sample.empty()) sample = e.first;
            order[part].push_back(static_cast<std::uint32_t>(encoded.size()));
            encoded.push_back(std::move(one));
        }
    too_long.say("longer than train.sequence (" + std::to_string(config.train.sequence) +
                 " tokens), or empty");
    unknown.say("characters that the vocabulary lacks");
    if (order[0].empty())
        fail_input(options_.inputs[0], "",
                   "an example of at most train.sequence tokens, all in the vocabulary", "none");
    examples_ = {};
    return std::make_unique<ExampleTask>(config, std::move(encoded), std::move(order[0]), std::move(order[1]),
                                         answer.start, pairs ? sample : "");
}

}  // namespace linnet
