#include "train/task/task.h"

#include <algorithm>

namespace linnet {

std::int64_t target_count(const Batch& batch) {
    return std::count_if(batch.targets.begin(), batch.targets.end(), [](std::int32_t t) { return t >= 0; });
}

void Task::build(std::int64_t step, std::int64_t micro, Batch& work) const {
    const TrainConfig& t = config_.train;
    work = Batch();
    for (std::int64_t b = 0; b < t.batch; b++)
        add(DataSplit::train, static_cast<std::uint64_t>((step * t.accumulate + micro) * t.batch + b), work);
}

void Task::fill(std::int64_t step, std::int64_t micro, Batch& work) const {
    const TrainConfig& t = config_.train;
    if (counted_ != step && t.accumulate > 1) {
        targets_ = 0;
        for (std::int64_t m = 0; m < t.accumulate; m++) {
            build(step, m, work);
            targets_ += target_count(work);
        }
    }
    build(step, micro, work);
    if (t.accumulate == 1) targets_ = target_count(work);
    counted_ = step;
    work.loss_scale = 1.0 / static_cast<double>(std::max<std::int64_t>(1, targets_));
    work.seed = static_cast<std::uint64_t>(t.seed);
    work.step = static_cast<std::uint64_t>(step * t.accumulate + micro);
    work.training = true;
}

bool Task::fill_validation(std::int64_t i, std::int64_t batches, Batch& work) const {
    const std::int64_t size = config_.train.batch;
    const auto count = static_cast<std::int64_t>(held_out()), all = (count + size - 1) / size;
    if (batches == 0 || batches > all) batches = all;
    if (i >= batches) return false;
    const std::int64_t first = i * all / batches * size;
    work = Batch();
    for (std::int64_t b = first; b < std::min(first + size, count); b++)
        add(DataSplit::validation, static_cast<std::uint64_t>(b), work);
    return true;
}

}  // namespace linnet
