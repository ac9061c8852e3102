// What a run learns from labelled examples: pairs, classes, tags, pictures.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/labelled/images.h"
#include "data/labelled/lines.h"
#include "model/model.h"
#include "train/task/run_data.h"
#include "train/task/task.h"

namespace linnet {

/// Whether an objective reads examples rather than a text.
bool reads_examples(const TrainConfig& config);

/// The examples of a run: read, split into those to train on and those held out.
class ExampleData {
  public:
    /// Errors as read_labelled, read_idx_pictures and read_picture_folders; also for labels without their
    /// pictures.
    ExampleData(const RunConfig& config, DataOptions options);

    const std::string& sha256() const { return sha256_; }
    std::uint64_t bytes() const { return bytes_; }
    std::string description() const;
    const DataOptions& options() const { return options_; }
    /// As the config says, made of the texts to train on.
    TokenizerPtr tokenizer(const RunConfig& config, int threads) const;
    /// Names of classes or tags, sorted; of pictures in IDX files their numbers. Empty for pairs.
    const std::vector<std::string>& labels() const { return labels_; }
    /// Of classes, whether they are of two texts.
    bool two_texts() const;
    /// Names and numbers them as `base`, whose head is kept. Errors as label_numbers.
    void keep_labels(const Model& base);
    /// Sets the number of classes, and numbers for those that labels() lacks. Error where the config has
    /// another, or another picture size.
    void fit(RunConfig& config);
    /// The examples encoded, as a task; the texts are let go. Error naming file and line for one that is too
    /// long.
    std::unique_ptr<Task> task(const RunConfig& config, const TokenizerPtr& tokenizer,
                               const std::string& tokenizer_name);

  private:
    void read_pictures(const RunConfig& config);
    void read_idx_files(const PictureShape& wanted);
    void split(double fraction);

    DataOptions options_;
    LabelledData examples_;
    Pictures pictures_;
    std::vector<std::int32_t> picture_labels_;
    bool numbered_ = false;  // its classes are numbers, not all of which need to be seen
    std::vector<std::string> labels_;
    std::vector<std::uint32_t> order_[2];  // examples of each split
    std::string sha256_;
    std::uint64_t bytes_ = 0;
};

}  // namespace linnet
