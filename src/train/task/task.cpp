#include "train/task/task.h"

#include <algorithm>

namespace linnet {

std::int64_t target_count(const Batch& batch) {
    return std::count_if(batch.targets.begin(), batch.targets.end(), [](std::int32_t t) { return t >= 0; });
}

std::int64_t Task::targets(std::int64_t step, std::int64_t examples) const {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < examples; i++) {
        Batch one;
        add(DataSplit::train, static_cast<std::uint64_t>(step * examples + i), one);
        count += target_count(one);
    }
    return std::max<std::int64_t>(1, count);
}

}  // namespace linnet
