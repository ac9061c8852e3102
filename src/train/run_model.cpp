#include "train/run_model.h"

#include <filesystem>

#include "base/error.h"
#include "train/checkpoint.h"

namespace linnet {

std::string model_of_run(const std::string& path) {
    std::error_code ignored;
    if (path.empty() || !std::filesystem::is_directory(path, ignored)) return path;
    std::string best = path + "/" + best_model;
    if (std::filesystem::exists(best, ignored)) return best;
    auto newest = newest_checkpoint(path + "/checkpoints");
    if (newest) return *newest + "/model.gguf";
    if (std::filesystem::exists(path + "/log.jsonl", ignored))
        fail_input(path, "", "a model, or a run that has one", "a run before its first evaluation");
    return path;
}

}  // namespace linnet
